"""A home written by an earlier version opens, shows what it held, and goes on (tests/fixtures/homes/make.py)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from crocevia.runtime.control import apply, spending
from crocevia.runtime.control.declarations import parse
from crocevia.storage.database import snapshot
from crocevia.storage.home import Home
from crocevia.storage.migrate import ensure
from tests.fixtures.homes import make
from tests.live import clean_env, free_port, wait_until_up

HOMES = sorted((Path(__file__).parents[1] / "fixtures" / "homes").glob("*.tar.gz"))
PAGES = (
    "/panel",
    "/panel/calls",
    "/panel/chats",
    "/panel/projects",
    "/panel/agents",
    "/panel/keys",
    "/panel/files",
    "/panel/webhooks",
    "/panel/audit",
    "/panel/settings",
)


@dataclass
class Kept:
    """A home of an earlier version, brought to today's schema and served; `kept` is what it said in its time."""

    home: Home
    kept: dict[str, Any]
    client: httpx.Client
    figures: dict[str, Any]
    days: Any
    doctor: tuple[int, str]

    @property
    def operator(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.kept['made']['operator_token']}"}

    @property
    def key(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.kept['made']['api_key']}"} | make.THREE

    def events(self, chat: str, ends: int) -> list[dict[str, Any]]:
        """The first events of a chat, up to its last of `ends` turns."""
        found: list[dict[str, Any]] = []
        url = f"/api/v1/atp/v3/chats/{chat}/events?after=0"
        with self.client.stream("GET", url, headers=self.key) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line.startswith("data: ") and (event := json.loads(line[6:]))["seq"]:
                    found.append(event)
                    if _ends(found) == ends:
                        return found
        raise AssertionError("the stream ended")


def _ends(events: list[dict[str, Any]]) -> int:
    return sum(event["type"] in ("turn.completed", "turn.failed", "turn.cancelled") for event in events)


@pytest.fixture(scope="module", params=HOMES, ids=lambda path: str(path.name).partition(".")[0])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, filter="data")
    home = Home(folder)
    kept = json.loads((folder / "kept.json").read_bytes())
    ensure(home.database)
    figures = make.figures(folder)
    with snapshot(home.database) as tx:
        days = msgspec.to_builtins(spending.report(tx, "casa", kept["at"], 1).days)
    command = [sys.executable, "-m", "crocevia.cli"]
    doctor = subprocess.run(
        [*command, "doctor", "--home", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        env=clean_env(),
        check=False,
    )
    port = free_port()
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "serve", "--home", str(folder), "--port", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=clean_env(),
        )
        url = f"http://127.0.0.1:{port}"
        try:
            wait_until_up(url, process, folder)
            with httpx.Client(base_url=url, timeout=20) as client:
                yield Kept(home, kept, client, figures, days, (doctor.returncode, doctor.stdout))
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=5)


def test_its_rows_and_sums_are_what_they_were(place: Kept) -> None:
    assert place.figures["calls"] == place.kept["calls"]
    rows = place.figures["rows"]
    assert {name: count for name, count in place.kept["rows"].items() if rows[name] != count} == {}


def test_doctor_finds_nothing_wrong_with_it(place: Kept) -> None:
    code, said = place.doctor
    assert code == 0, said
    assert "BAD" not in said


def test_the_streams_of_its_chats_replay_as_they_were(place: Kept) -> None:
    assert len(place.kept["chats"]) == 3
    for chat, events in place.kept["chats"].items():
        assert place.events(chat, _ends(events)) == events


def test_its_completions_agents_and_teams_are_shown_as_they_were(place: Kept) -> None:
    where = f"/api/v1/workspaces/{place.kept['made']['workspace_id']}/chats"
    for chat, completions in place.kept["completions"].items():
        shown = place.client.get(f"{where}/{chat}/completions", headers=place.key).json()["data"]
        known = {completion["id"] for completion in completions}
        assert [completion for completion in shown if completion["id"] in known] == completions
    for kind in ("agents", "teams"):
        assert place.client.get(f"/api/v1/{kind}", headers=place.key).json()["data"] == place.kept[kind]


def test_its_stored_answers_are_read_and_gone_on_from(place: Kept) -> None:
    for name, answer in place.kept["answers"].items():
        assert place.client.get(f"/v1/responses/{name}", headers=place.operator).json() == answer
    body = {"model": "openclaw/helper", "input": "more", "previous_response_id": next(iter(place.kept["answers"]))}
    answer = place.client.post("/v1/responses", json=body, headers=place.operator)
    assert answer.status_code == 200, answer.text


def test_its_sessions_remember(place: Kept) -> None:
    body: dict[str, Any] = {"model": "openclaw/helper", "input": "three", "user": "ada"}
    answer = place.client.post("/v1/responses", json=body, headers=place.operator)
    assert "The third time." in answer.text
    classic = {"encode": "riassunto", "contenuto": "three", "conversazione": "verbali"}
    headers = {"x-pepper-key": place.kept["casa"], "x-pepper-project": "casa"}
    answer = place.client.post("/api.php", json=classic, headers=headers)
    assert "The third time." in answer.text


def test_its_chats_go_on_after_their_last_event(place: Kept) -> None:
    chat, events = next(iter(place.kept["chats"].items()))
    message = {"message": "and after all this time?"}
    headers = place.key | {"idempotency-key": "after-all"}
    answer = place.client.post(f"/api/v1/atp/v3/chats/{chat}/messages", json=message, headers=headers)
    assert answer.status_code == 202, answer.text
    seen = place.events(chat, _ends(events) + 1)
    assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1]["type"] == "turn.completed"


def test_its_declaration_is_still_what_is_declared(place: Kept) -> None:
    applied = apply.apply(place.home, parse(place.kept["export"].encode()))
    assert {change.what for change in applied.changes} == {"unchanged"}


def test_the_money_of_its_days_is_what_it_was(place: Kept) -> None:
    assert place.days == place.kept["spend"]["days"][:1]


def test_its_panel_opens_with_the_password_and_shows_every_page(place: Kept) -> None:
    ours = {"sec-fetch-site": "same-origin", "origin": str(place.client.base_url)}
    signed = place.client.post("/panel/login", data={"password": place.kept["password"]}, headers=ours)
    assert signed.status_code in (302, 303), signed.text
    for path in PAGES:
        page = place.client.get(path)
        assert page.status_code == 200, (path, page.text)
    assert "casa" in place.client.get("/panel/calls").text
