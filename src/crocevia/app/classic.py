"""The classic API in a serving process: its memory, and the search backend where one is configured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from crocevia.app.periodic_cleanup import periodic_cleanup
from crocevia.config import Search, Settings
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.logger import Logger
from crocevia.engines.upstream.http import HttpClient
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.classic import Classic
from crocevia.runtime.classic.conversations import Conversations
from crocevia.runtime.classic.websearch import Get, WebSearch
from crocevia.runtime.gateway import Gateway
from crocevia.storage.database import Database

_MOST_BYTES: Final = 2 * 1024 * 1024


@asynccontextmanager
async def open_classic(
    settings: Settings, database: Database, catalogue: CatalogueHolder, gateway: Gateway, log: Logger
) -> AsyncIterator[Classic]:
    """The classic calls, with everything behind them."""
    http = HttpClient()
    conversations = Conversations(database, lambda: catalogue.current.projects)
    search = _search(settings.search, http)
    classic = Classic(gateway, lambda: catalogue.current.recipes, conversations, search)
    try:
        async with periodic_cleanup((conversations.drop_expired,), log):
            yield classic
    finally:
        await http.close()


def _search(settings: Search, http: HttpClient) -> WebSearch | None:
    if settings.url is None:
        return None
    get = _getter(http, settings.timeout_seconds)
    return WebSearch(settings.url, get, results=settings.results, language=settings.language)


def _getter(http: HttpClient, seconds: float) -> Get:
    async def get(url: str) -> bytes:
        deadline = asyncio.get_running_loop().time() + seconds
        answer = await http.open("GET", url, {"Accept": "application/json"}, deadline=deadline)
        try:
            if answer.status != 200:
                raise GatewayError(Reason.UPSTREAM_FAILED)
            return await answer.read(_MOST_BYTES)
        finally:
            answer.close()

    return get
