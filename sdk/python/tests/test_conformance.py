"""Every shared fixture, on both clients, by the runner that all SDKs share. The ids are the names of the fixtures."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from conformance.runner.cases import Case, all_cases
from conformance.runner.program import Program
from driver import SdkDriver
from scenario import EDITIONS, load


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("case", all_cases(), ids=lambda case: f"{case.group} {case.name}")
def test_case(case: Case, edition: str, tmp_path: Path) -> None:
    asyncio.run(case.play(SdkDriver(edition), tmp_path))


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_driver_is_a_program_too(edition: str, tmp_path: Path) -> None:
    cases = {case.name: case for case in all_cases()}
    turn = cases["a verified request runs its handler and delivers"]

    async def play() -> int:
        async with Program(
            [sys.executable, "-W", "error", str(Path(__file__).parent / "driver.py"), edition]
        ) as program:
            assert (await program.ask({"do": "nothing"}, lambda _: None))["unknown"]
            await turn.play(program, tmp_path)
        return program.status

    assert asyncio.run(play()) == 0


def test_every_bullet_of_the_suite_has_a_fixture() -> None:
    groups = {case.group for case in all_cases()}
    assert groups == {*load("bullets.json"), "events", "jcs", "ed25519", "webhooks", "surface"}
