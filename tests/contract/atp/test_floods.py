"""Whatever is sent, every answer is one of the contract, and nothing of ours breaks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crocevia.doors.atp.resources import TABLE
from tests.contract.requirements import requirement
from tests.doors.atp.house import THREE, House, live

WRITES = [operation for operation in TABLE if operation.body is not None]
NAMES = sorted({name for operation in WRITES for name in operation.body.__struct_fields__})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), JSON, max_size=6)
PATHS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


@requirement("A-ERR-1", "A-BODY-1")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(bodies=st.lists(st.tuples(st.sampled_from(WRITES), BODIES), min_size=5, max_size=5))
def test_any_json_is_taken_or_refused_in_the_words_of_the_contract(bodies: list[tuple[Any, Any]]) -> None:
    async def work(place: House) -> None:
        for operation, body in bodies:
            reply = await place.call(operation.method, _filled(place, operation.path), body, headers=THREE)
            assert reply.status in (201, 200, 404, 422)

    live(work)


@requirement("A-ERR-1")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    query=st.dictionaries(st.sampled_from(["per_page", "page", "status", "before", "started_at[from]"]) | PATHS, PATHS)
)
def test_any_query_is_taken_or_refused_in_the_words_of_the_contract(query: dict[str, str]) -> None:
    from urllib.parse import urlencode

    async def work(place: House) -> None:
        path = f"/workspaces/{place.made.workspace_id}/chats"
        for address in (path, f"{path}/cht_x/completions", "/agents"):
            reply = await place.call("GET", f"{address}?{urlencode(query)}", headers=THREE)
            assert reply.status in (200, 404, 422)

    live(work)


@requirement("A-ERR-1")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(raw=st.binary(max_size=60))
def test_any_bytes_in_a_path_find_what_is_there_or_nothing(raw: bytes) -> None:
    from tests.doors.atp.house import exchange

    async def work(place: House) -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/v1/agents/?",
            "raw_path": b"/api/v1/agents/" + raw.replace(b"?", b""),
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {place.ada.key}".encode())],
        }
        assert (await exchange(place.door, scope, [])).status == 404

    live(work)


@requirement("A-BODY-1")
def test_a_hundred_writers_at_once_all_get_their_own() -> None:
    async def work(place: House) -> None:
        asked = [place.ask("POST", "/workspaces", {"name": f"w{index}"}) for index in range(100)]
        replies = await asyncio.gather(*asked)
        assert [reply.data["name"] for reply in replies] == [f"w{index}" for index in range(100)]
        assert len({reply.data["id"] for reply in replies}) == 100
        assert len(json.loads((await place.ask("GET", "/workspaces")).raw)["data"]) == 101

    live(work)


def _filled(place: House, path: str) -> str:
    named = {"{workspace_id}": place.made.workspace_id, "{team_id}": place.made.team_id}
    for name, value in named.items():
        path = path.replace(name, value)
    return path.replace("{", "").replace("}", "")
