"""The server that the tests of our own client share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aio import run

from .breeder import Breeder
from .own_sdk import DECLARATION, Place, furnish
from .turns_rig import Rig, session


@pytest.fixture(scope="session")
def breeder() -> Iterator[Breeder]:
    breeder = Breeder()
    yield breeder
    breeder.close()


@pytest.fixture(scope="session")
def own_rig(tmp_path_factory: pytest.TempPathFactory, breeder: Breeder) -> Iterator[Rig]:
    """One that may be killed and started again: its home and its port stay. Its log must hold no traceback."""
    rig = Rig(tmp_path_factory.mktemp("own") / "home", DECLARATION, breeder)

    async def up() -> None:
        async with session() as probe:
            await rig.up(probe)

    try:
        rig.start()
        run(up(), timeout=40)
        yield rig
    finally:
        rig.stop()


@pytest.fixture(scope="session")
def place(own_rig: Rig) -> Place:
    return furnish(own_rig.url, own_rig.secrets)
