"""What the operator sees of MCP servers: which are there, what they offer, how one was lost; and a way to look now."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from crocevia.config import Settings
from crocevia.core.mcp import McpServer
from tests.aio import run
from tests.live import free_port

from .site import HOSTILE, Place, site

pytest.importorskip("mcp")
OLD = (sys.executable, str(Path(__file__).parents[1] / "runtime" / "turns" / "mcp_old_child.py"))
SERVERS = {
    "calc": McpServer(command=OLD, start_seconds=40),
    "gone": McpServer(command=("/nowhere/at/all", "--token=sk-never-shown")),
    "ended": McpServer(command=(sys.executable, "-c", "pass"), start_seconds=40),
    "silent": McpServer(command=(sys.executable, "-c", "import sys; sys.stdin.read()"), start_seconds=0.5),
    "closed": McpServer(url=f"http://127.0.0.1:{free_port()}/mcp", headers={"authorization": "sk-never-shown"}),
}


async def rows(place: Place) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in (await place.get("/panel/mcp.json")).json()["rows"]}


@pytest.mark.slow
def test_each_server_is_listed_with_its_state_its_tools_and_how_it_was_lost() -> None:
    async def work() -> None:
        async with site(Settings(mcp=SERVERS)) as place:
            await place.enter()
            seen = await rows(place)
            assert list(seen) == list(SERVERS)
            assert {row["state"] for row in seen.values()} == {"idle"}
            assert "Not needed yet" in (await place.get("/panel/mcp")).text
            for name in SERVERS:
                answer = await place.post(f"/panel/mcp/look?name={name}")
                assert answer.status_code == 303
                assert ("done=" in answer.headers["location"]) is (name == "calc")
            seen = await rows(place)
            assert (seen["calc"]["state"], seen["calc"]["failure"]) == ("ready", None)
            assert "mcp_calc_count" in seen["calc"]["tools"]
            lost = {name: row["failure"] for name, row in seen.items() if row["state"] == "unreachable"}
            assert lost == {
                "gone": "FileNotFoundError",
                "ended": "MCPError",
                "silent": "TimeoutError",
                "closed": "ConnectError",
            }
            assert all(seen[name]["failed_at"] for name in lost)
            for language, words in {
                "en": ("mcp_calc_count", "Not reachable", "Its command is not there.", "It did not answer in time."),
                "it": (
                    "mcp_calc_count",
                    "Non raggiungibile",
                    "Il suo comando non c&#39;è.",
                    "Non ha risposto in tempo.",
                ),
            }.items():
                page = (await place.get("/panel/mcp", **{"accept-language": language})).text
                assert all(word in page for word in words), language
                assert "sk-never-shown" not in page

    run(work(), 50)


@pytest.mark.slow
def test_a_look_lists_the_tools_again_and_one_that_died_is_started_again() -> None:
    async def work() -> None:
        async with site(Settings(mcp={"calc": SERVERS["calc"]})) as place:
            await place.enter()
            await place.post("/panel/mcp/look?name=calc")
            before = (await rows(place))["calc"]["tools"]
            tools = await place.service.mcp.tools("calc")
            await tools["mcp_calc_learn"].run(None, {})  # type: ignore[arg-type]
            await place.post("/panel/mcp/look?name=calc")
            assert (await rows(place))["calc"]["tools"] == [*before, "mcp_calc_sing"]

    run(work(), 50)


def test_without_servers_the_page_says_how_to_declare_one_and_an_unknown_name_is_nothing() -> None:
    async def work() -> None:
        async with site() as place:
            await place.enter()
            assert "crocevia.toml" in (await place.get("/panel/mcp")).text
            for name in ("nobody", HOSTILE):
                answer = await place.client.post(
                    "/panel/mcp/look", params={"name": name}, headers={"sec-fetch-site": "same-origin"}
                )
                assert answer.headers["location"] == "/panel/mcp"

    run(work(), 30)
