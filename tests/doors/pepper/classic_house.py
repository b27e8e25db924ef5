"""A house whose classic API answers: recipes, a real store for its conversations, a search backend if one is given."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crocevia.core.catalogue import RecipeSpec
from crocevia.runtime.classic import Classic
from crocevia.runtime.classic.conversations import Conversations
from crocevia.runtime.classic.websearch import WebSearch
from crocevia.storage.database import Database
from tests.app.serving import empty_database
from tests.doors.pepper.asgi import App, Exchange, ask
from tests.doors.pepper.house import House, house, site_of

RECIPE = RecipeSpec(encode="riassunto", instructions="Riassumi in una riga.")
ASKED: dict[str, Any] = {"progetto": "casa", "encode": "riassunto", "contenuto": "Piove a Roma."}


@dataclass
class ClassicHouse:
    """clock: of the conversations, one value that tests move."""

    house: House
    endpoint: App
    conversations: Conversations
    database: Database
    path: Path
    clock: list[float]

    async def ask(self, body: dict[str, Any] | None = None, **how: Any) -> Exchange:
        how.setdefault("project", None)
        return await ask(self.endpoint, ASKED | (body or {}), path="/api.php", **how)


@asynccontextmanager
async def classic_house(
    engine: Any = None, *, search: WebSearch | None = None, model: dict[str, Any] | None = None, **project: Any
) -> AsyncIterator[ClassicHouse]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crocevia.db"
        path.write_bytes(empty_database())
        place = house(engine, model=model, **project)
        database = Database(path)
        clock = [1_793_000_000.0]
        known = {"casa": place.gateway.authenticate(b"chiave")}
        conversations = Conversations(database, lambda: known, clock=lambda: clock[0])
        classic = Classic(place.gateway, lambda: {"riassunto": RECIPE}, conversations, search)
        try:
            site = site_of(place.gateway, classic)

            async def endpoint(scope: Any, receive: Any, send: Any) -> None:
                await site(scope | {"path": "/api.php"}, receive, send)

            yield ClassicHouse(place, endpoint, conversations, database, path, clock)
        finally:
            await database.close()
