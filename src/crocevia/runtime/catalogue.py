"""What is declared, in memory: one immutable value that the hot path reads, swapped whole when it changes."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec

from crocevia.core.catalogue import EngineSpec, ModelSpec, ProjectSpec, RecipeSpec, UserSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.storage import declared, meta, project_keys, users
from crocevia.storage.database import Database, Transaction
from crocevia.storage.home import Home, engine_keys, key_secret

POLL_SECONDS: Final = 0.5  # a change is live, and a revoked key dead, within a second


class ProjectKey(msgspec.Struct, frozen=True):
    """Whose a key is."""

    project: str
    expires_at: float | None = None
    """Unix seconds, None for never."""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything declared at one revision. Never changed: a new one takes its place."""

    revision: int
    engines: dict[str, EngineSpec] = {}
    models: dict[str, ModelSpec] = {}
    projects: dict[str, ProjectSpec] = {}
    recipes: dict[str, RecipeSpec] = {}
    users: dict[str, UserSpec] = {}
    """By id."""
    keys: dict[bytes, ProjectKey] = {}
    secret: bytes = b""
    engine_keys: dict[str, str] = {}
    proved: dict[bytes, ProjectKey] = {}
    """By the keys themselves, those that were right before: a digest is not cheap."""

    def __repr__(self) -> str:
        return f"Catalogue(revision={self.revision})"

    def owner_of(self, key: bytes, *, now: float | None = None) -> ProjectSpec | None:
        """The project whose key this is, if it is one and still valid."""
        found = self.proved.get(key) or self.keys.get(digest(self.secret, key))
        if found is None:
            return None
        self.proved[key] = found
        if found.expires_at is not None and found.expires_at <= (time.time() if now is None else now):
            return None
        return self.projects.get(found.project)

    def engine_key(self, name: str, environment: Mapping[str, str] = os.environ) -> str | None:
        """The secret of the engine `name`: from the environment where it says so, else the stored one.

        Without the line break that a file or a shell put after it. None: there is none.
        """
        spec = self.engines[name]
        key = environment.get(spec.api_key_env) if spec.api_key_env is not None else self.engine_keys.get(name)
        return (key or "").strip() or None

    def check_key(self, name: str, environment: Mapping[str, str] = os.environ) -> str | None:
        """The same, if it needs one. Raises GatewayError(UNAVAILABLE) where it has none that can be sent."""
        spec, key = self.engines[name], self.engine_key(name, environment)
        if key is None and spec.api_key_env is not None:
            raise GatewayError(Reason.ENGINE_KEY_MISSING, engine=name, variable=spec.api_key_env)
        if key is not None and not (key.isascii() and key.isprintable()):
            raise GatewayError(Reason.ENGINE_KEY_MALFORMED, engine=name)
        return key


Subscriber: TypeAlias = Callable[[Catalogue, Catalogue], None]
"""Told (before, after), on the event loop, right after the swap."""


def digest(secret: bytes, key: bytes) -> bytes:
    """HMAC-SHA256: what is stored of a key. The secret lives in `keys/`, never in the database."""
    return hmac.digest(secret, key, "sha256")


def load(tx: Transaction, home: Home) -> Catalogue:
    """Everything declared. Raises GatewayError(UNAVAILABLE) if a row or a key file cannot be read."""
    try:
        return Catalogue(
            revision=meta.revision(tx),
            engines=declared.load(tx, EngineSpec),
            models=declared.load(tx, ModelSpec),
            projects=declared.load(tx, ProjectSpec),
            recipes=declared.load(tx, RecipeSpec),
            users=users.allowances(tx),
            keys={bytes.fromhex(row.digest): ProjectKey(row.project, row.expires_at) for row in project_keys.load(tx)},
            secret=key_secret(home),
            engine_keys=engine_keys(home),
        )
    except (msgspec.DecodeError, ValueError, OSError) as error:
        raise GatewayError(Reason.UNAVAILABLE) from error


def changed_engines(before: Catalogue, after: Catalogue) -> set[str]:
    """Names of engines that are new, gone, declared differently, or have another stored key."""
    names = before.engines.keys() | after.engines.keys()
    return {
        name
        for name in names
        if before.engines.get(name) != after.engines.get(name)
        or before.engine_keys.get(name) != after.engine_keys.get(name)
    }


def generates_images(catalogue: Catalogue, spec: ModelSpec) -> bool:
    """Whether this is a model of pictures. A scripted model is one if its upstream id is `image`."""
    engine = catalogue.engines.get(spec.engine)
    if engine is None:
        return False
    which = engine.traits.image_models
    return which == "all" or (which == "named" and spec.upstream == "image")


class CatalogueHolder:
    """The catalogue of this moment. Follows the store off the hot path; a change it cannot read changes nothing.

    on_failure: told once when following fails, and again with None when it works again.
    """

    def __init__(
        self,
        database: Database,
        home: Home,
        *,
        poll_seconds: float = POLL_SECONDS,
        on_failure: Callable[[Exception | None], None] = lambda error: None,
    ) -> None:
        self.current = Catalogue(revision=-1)
        self._database = database
        self._home = home
        self._poll_seconds = poll_seconds
        self._on_failure = on_failure
        self._failed = False
        self._subscribers: list[Subscriber] = []
        self._task: asyncio.Task[None] | None = None
        self._reading = asyncio.Lock()

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` after every swap. It must not raise."""
        self._subscribers.append(subscriber)

    async def start(self) -> None:
        """Load, then follow. Raises GatewayError if the first load fails."""
        await self.refresh()
        self._task = asyncio.create_task(self._follow(), name="catalogue")

    async def refresh(self) -> Catalogue:
        """Take what the store holds now if its revision differs; what is current then."""
        async with self._reading:
            before = self.current
            if await self._database.read(meta.revision) != before.revision:
                self.current = await self._database.read(lambda tx: load(tx, self._home))
                for subscriber in self._subscribers:
                    subscriber(before, self.current)
            return self.current

    async def close(self) -> None:
        """Stop following. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            try:
                await self.refresh()
            except Exception as error:  # whatever it is, the calls under way keep the catalogue they know
                if not self._failed:
                    self._on_failure(error)
                self._failed = True
                continue
            if self._failed:
                self._failed = False
                self._on_failure(None)
