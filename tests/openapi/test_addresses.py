"""What a door's document describes and what its router answers are the same, both ways: no ghost, nothing untold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crocevia.asgi.http import SOCKET
from crocevia.core.errors import Code
from crocevia.doors.atp import errors as atp_errors
from crocevia.doors.pepper import errors as pepper_errors
from crocevia.doors.responses import errors as responses_errors
from tests.aio import run
from tests.doors.responses.house import House, house

DOCUMENTS = ("/api/v1/openapi.json", "/v1/openapi.json", "/pepper/openapi.json")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
NAMES = {DOCUMENTS[0]: "atp", DOCUMENTS[1]: "responses", DOCUMENTS[2]: "pepper"}
# What errors of a door may answer, by its tables.
STATUSES: Mapping[str, set[int]] = {
    DOCUMENTS[0]: {row[0] for row in (*atp_errors.TABLE.values(), *atp_errors.NAMED.values())},
    DOCUMENTS[1]: {row[0] for row in responses_errors.TABLE.values()},
    DOCUMENTS[2]: {row[0] for row in pepper_errors.TABLE.values()},
}
# 405 is what undescribed methods get. 502: this door asks no provider while a caller waits; pictures come later.
NEVER = {DOCUMENTS[0]: {502}, DOCUMENTS[1]: {405}, DOCUMENTS[2]: {405}}

Table = dict[str, dict[str, Any]]


async def described(home: House, address: str) -> Table:
    answer = await home.get(address, token=None)
    assert answer.status == 200
    found: Table = answer.json()["paths"]
    return found


def concrete(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "some", path)


def methods(item: dict[str, Any]) -> set[str]:
    return {method.upper() for method in item}


@pytest.mark.parametrize("address", DOCUMENTS)
def test_what_a_document_describes_is_there(address: str, tmp_path: Path) -> None:
    """Who has no key is told so, which nobody is told at an address or with a method that is not there."""

    async def work() -> None:
        async with house(tmp_path) as home:
            for path, item in (await described(home, address)).items():
                for method, operation in item.items():
                    answer = await home.ask(concrete(path), method=method.upper(), token=None)
                    told = (path, method, answer.status)
                    if operation.get("security") == []:
                        assert str(answer.status) in operation["responses"], told
                    else:
                        assert answer.status == 401, told

    run(work(), timeout=50)


@pytest.mark.parametrize("address", DOCUMENTS)
def test_what_a_document_does_not_describe_is_refused(address: str, tmp_path: Path) -> None:
    """Every other method at a described address is a 405 that names exactly the described ones."""

    async def work() -> None:
        async with house(tmp_path) as home:
            for path, item in (await described(home, address)).items():
                known = methods(item)
                for method in sorted(set(METHODS) - known):
                    answer = await home.ask(concrete(path), method=method)
                    assert answer.status == 405, (path, method)
                    allowed = set(answer.headers["allow"].split(", ")) - {"HEAD"}  # goes with GET
                    assert allowed == known, (path, method, allowed)

    run(work(), timeout=50)


@pytest.mark.parametrize("address", DOCUMENTS)
def test_every_row_of_a_table_is_described(address: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with house(tmp_path) as home:
            door = next(door for door in home.service.site.doors if door.name == NAMES[address])
            rows = {
                (place.replace("+}", "}"), row.method)
                for row in door.table
                for place in (row.path, *row.aliases)
                if not row.absent and row.method != SOCKET
            }
            told = await described(home, address)
            assert rows == {(path, method) for path, item in told.items() for method in methods(item)}

    run(work(), timeout=50)


def test_what_is_only_refused_is_refused_as_what_is_not_there(tmp_path: Path) -> None:
    async def work() -> None:
        async with house(tmp_path) as home:
            door = next(door for door in home.service.site.doors if door.name == "atp")
            absent = [row for row in door.table if row.absent]
            assert absent
            for row in absent:
                headers = {"x-envai-contract-version": "3"}
                path = concrete(row.path)
                answer = await home.ask(path, method=row.method, token=home.secrets.api_key, headers=headers)
                assert answer.status == 404, row.id

    run(work(), timeout=50)


@pytest.mark.parametrize("address", DOCUMENTS)
def test_statuses_are_those_of_the_errors(address: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with house(tmp_path) as home:
            told: set[int] = set()
            for path, item in (await described(home, address)).items():
                for method, operation in item.items():
                    refusals = {int(status) for status in operation["responses"] if int(status) >= 400}
                    assert refusals <= STATUSES[address], (path, method)
                    assert (401 in refusals) or operation.get("security") == [], (path, method)
                    told |= refusals
            assert told == STATUSES[address] - NEVER[address]
            assert set(responses_errors.TABLE) == set(pepper_errors.TABLE) == set(Code)

    run(work(), timeout=50)
