"""`crocevia keys`: rotation with an overlap, on a server that goes on running."""

from __future__ import annotations

import base64
import json
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from crocevia.cli import main
from crocevia.runtime.control.audit import entries
from crocevia.runtime.control.init import init
from crocevia.runtime.signing_keys import PUBLISH_SECONDS, Signer, unbase64url
from crocevia.storage.database import snapshot
from crocevia.storage.home import Home
from tests.live import LiveServer, live_server


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home")
    init(Home(path), "http://x")
    return path


@pytest.fixture
def home(tmp_path: Path, initialised: Path) -> Path:
    return Path(shutil.copytree(initialised, tmp_path / "home"))


def keys(home: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["keys", *args, "--home", str(home)])


def listed(home: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(keys(home, "list", "--json").stdout)["keys"]
    return found


def test_a_new_key_waits_then_signs_and_the_old_one_goes_on_verifying(home: Path) -> None:
    before = Signer(Home(home))
    token, old = before.sign_jwt({"sub": "usr_x"}), before.current().id
    made = json.loads(keys(home, "rotate", "--json").stdout)
    assert [(key["kid"], key["state"]) for key in listed(home)] == [(old, "signs"), (made["kid"], "waits")]
    later = Signer(Home(home), clock=lambda: time.time() + PUBLISH_SECONDS + 1)
    assert later.sign(b"x").kid == made["kid"]
    assert before.sign(b"x").kid == old
    for signer in (before, later):
        assert signer.verify_jwt(token) == {"sub": "usr_x"}
        assert [key.kid for key in signer.published()] == [old, made["kid"]]
    with snapshot(Home(home).database) as tx:
        assert [(line.action, line.kind, line.name) for line in entries(tx)] == [("rotate", "signing key", made["kid"])]


def test_the_key_that_signs_and_one_that_is_not_there_cannot_be_removed(home: Path) -> None:
    (only,) = listed(home)
    for kid, words in (
        (only["kid"], "signs now"),
        ("sig_01j00000000000000000000000", "no signing key"),
        ("../x", "no"),
    ):
        refused = keys(home, "remove", kid)
        assert refused.exit_code != 0 and words in refused.output
    assert listed(home) == [only]
    with snapshot(Home(home).database) as tx:
        assert entries(tx) == []


def test_many_rotations_in_a_row_are_all_seen_by_one_signer(home: Path) -> None:
    signer = Signer(Home(home))
    made = [signer.rotate() for _ in range(5)]
    assert [key.kid for key in signer.published()][1:] == sorted(made)


def test_people_read_when_the_new_key_signs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "it_IT.UTF-8")
    assert "senza riavvio" in keys(home, "rotate").stdout
    assert [line.split("  ")[1].split()[0] for line in keys(home, "list").stdout.splitlines()] == ["firma", "firma"]


def test_a_home_that_was_never_initialised_is_told_so(tmp_path: Path) -> None:
    for command in (["list"], ["rotate"], ["remove", "sig_x"]):
        assert keys(tmp_path, *command).exit_code == 1


def asked(server: LiveServer, path: str, body: Any = None) -> urllib.request.Request:
    headers = {"Authorization": f"Bearer {server.secrets['api_key']}"}
    return urllib.request.Request(f"{server.url}{path}", None if body is None else json.dumps(body).encode(), headers)


def get(server: LiveServer, path: str, body: Any = None) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(asked(server, path, body), timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.slow
def test_a_running_server_publishes_the_new_key_and_takes_old_tokens_until_their_key_is_removed(tmp_path: Path) -> None:
    with live_server(tmp_path / "home") as server:
        (old,) = (key["kid"] for key in get(server, "/.well-known/jwks.json")[1]["keys"])
        assert get(server, "/api/v1/workspaces")[0] == 200
        new = json.loads(keys(server.home, "rotate", "--json").stdout)["kid"]
        published = {key["kid"]: key["x"] for key in get(server, "/.well-known/jwks.json")[1]["keys"]}
        assert list(published) == [old, new]
        head, body, signature = server.secrets["api_key"][len("envai_sk_") + 26 :].split(".")
        public = Ed25519PublicKey.from_public_bytes(unbase64url(published[old]))
        public.verify(base64.urlsafe_b64decode(signature + "=="), f"{head}.{body}".encode())
        assert get(server, "/api/v1/workspaces")[0] == 200
        # As if ten minutes had passed: the new key gets a name of long ago, so that it signs now.
        (server.home / "keys" / f"{new}.pem").rename(server.home / "keys" / "sig_01j00000000000000000000000.pem")
        assert get(server, "/api/v1/workspaces")[0] == 200
        where, team = server.secrets["workspace_id"], {"team_id": server.secrets["team_id"]}
        chat = get(server, f"/api/v1/workspaces/{where}/chats", team)[1]["data"]["id"]
        with urllib.request.urlopen(asked(server, f"/api/v1/chats/{chat}/events"), timeout=10) as stream:
            assert b'"type":"ping"' in stream.readline()
            assert keys(server.home, "remove", old).exit_code == 0
            removed = time.monotonic()
            assert stream.read() == b"\n"  # the end of that event, and of the stream
            assert time.monotonic() - removed < 3  # a second, and what a busy machine adds to it
        assert get(server, "/api/v1/workspaces")[0] == 401
