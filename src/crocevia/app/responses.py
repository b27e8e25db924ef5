"""The OpenAI-like door, built from the settings that its specification names."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import msgspec

from crocevia.app.periodic_cleanup import periodic_cleanup
from crocevia.asgi.cors import ANY
from crocevia.asgi.http import Door
from crocevia.config import Auth, Files, Images, ResponsesSettings, ServerSettings, Settings
from crocevia.core.forwarding import address, networks
from crocevia.core.logger import Logger
from crocevia.documents.fetch import FetchPolicy
from crocevia.doors.responses.door import responses_door
from crocevia.doors.responses.run import Background
from crocevia.doors.responses.services import Services
from crocevia.doors.responses.targets import Targets
from crocevia.engines.e5.engine import E5Engine, is_installed
from crocevia.runtime.answers_store import Responses
from crocevia.runtime.control.context import Control
from crocevia.runtime.control.operators import LockoutRules, Rules, open_operators
from crocevia.runtime.control.rosters import Rosters
from crocevia.runtime.embeddings import Embeddings
from crocevia.runtime.gateway import RESPONSES_FILES, EngineSource, Gateway, Limits
from crocevia.runtime.sealing import Sealer
from crocevia.runtime.turns.run_service import RunService

DAY: Final = 86_400.0


@asynccontextmanager
async def open_responses(
    settings: Settings, control: Control, gateway: Gateway, runs: RunService, engines: EngineSource, log: Logger
) -> AsyncIterator[tuple[Door, Background]]:
    """The door, and what it answers in the background. Raises GatewayError(UNAVAILABLE) if the home was never
    initialised.
    """
    endpoints = settings.gateway.http.endpoints
    names = settings.gateway.http.models
    responses = Responses(control.database, keep_seconds=endpoints.responses.store_days * DAY)
    local = E5Engine()
    background: Background | None = None
    try:
        services = Services(
            gateway=gateway,
            runs=runs,
            operators=await open_operators(control, rules(settings), lockout(settings.gateway.auth)),
            targets=Targets(Rosters(control), gateway, prefix=names.prefix, exposed=names.expose_catalog),
            responses=responses,
            sealer=Sealer(control.home),
            file_limits=limits(endpoints.responses),
        )
        embeddings = Embeddings(gateway, control.catalogue, engines, local=lambda: local if is_installed() else None)
        background = Background(services)
        door = responses_door(
            services,
            background,
            embeddings,
            max_body=endpoints.responses.max_body_bytes,
            chat_only=not endpoints.responses.enabled,
        )
        await background.resume()
        async with periodic_cleanup((responses.drop_expired,), log):
            yield door, background
    finally:
        if background is not None:
            await background.close()
        await responses.close()
        await local.close()


def is_enabled(settings: Settings) -> bool:
    """Whether anything of the door is on."""
    endpoints = settings.gateway.http.endpoints
    return endpoints.responses.enabled or endpoints.chat_completions.enabled


def rules(settings: Settings) -> Rules:
    """Who may come in."""
    auth = settings.gateway.auth
    proxy = auth.trusted_proxy
    return Rules(
        mode=auth.mode,
        hosts=_own_names(settings.server),
        origins=frozenset(settings.server.cors_origins) - {ANY},  # `*` never opens what has no secret
        only_loopback=_is_loopback(settings.server.host),
        token=auth.token,
        password=auth.password,
        proxies=networks((*settings.gateway.trusted_proxies, *settings.server.trusted_proxies)),
        user_header=proxy.user_header,
        required_headers=proxy.required_headers,
        allow_users=proxy.allow_users,
        allow_loopback=proxy.allow_loopback,
    )


def _own_names(server: ServerSettings) -> frozenset[str]:
    """By which the server knows itself, in lower case."""
    public = urlsplit(server.public_url).hostname if server.public_url else None
    names = {server.host.lower(), *([public.lower()] if public else [])}
    if not _is_loopback(server.host):
        own = socket.gethostname().lower()
        names |= {own, f"{own}.local"}
    return frozenset(names)


def _is_loopback(host: str) -> bool:
    found = address(host)
    return host == "localhost" or (found is not None and found.is_loopback)


def lockout(auth: Auth) -> LockoutRules:
    """How many wrong secrets are too many."""
    limit = auth.rate_limit
    return LockoutRules(
        max_attempts=limit.max_attempts,
        window=limit.window_ms / 1000,
        lockout=limit.lockout_ms / 1000,
        exempt_loopback=limit.exempt_loopback,
    )


def limits(settings: ResponsesSettings) -> Limits:
    """What files and pictures may be."""
    files, images = settings.files, settings.images
    return msgspec.structs.replace(
        RESPONSES_FILES,
        max_urls=settings.max_url_parts,
        document_types=frozenset(files.allowed_mimes),
        image_types=frozenset(images.allowed_mimes),
        document_bytes=files.max_bytes,
        image_bytes=images.max_bytes,
        document_fetch=_policy(files),
        image_fetch=_policy(images),
        max_chars=files.max_chars,
        min_text_chars=files.pdf.min_text_chars,
        max_rendered=files.pdf.max_pages,
        page_pixels=files.pdf.max_pixels,
    )


def _policy(settings: Files | Images) -> FetchPolicy | None:
    if not settings.allow_url:
        return None
    return FetchPolicy(
        schemes=("http", "https"),
        allowed_hosts=settings.url_allowlist,
        max_bytes=settings.max_bytes,
        max_redirects=settings.max_redirects,
        timeout=settings.timeout_ms / 1000,
    )
