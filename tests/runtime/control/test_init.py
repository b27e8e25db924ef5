from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import OKPKey

from crocevia.core.errors import Code, GatewayError
from crocevia.core.ids import is_id
from crocevia.runtime.catalogue import digest, load
from crocevia.runtime.control.init import Initialised, init, is_initialised
from crocevia.storage import meta
from crocevia.storage.database import snapshot
from crocevia.storage.home import Home, key_secret

SECRETS = ("operator_token", "api_key", "project_key")


def test_init_makes_every_first_object(made: tuple[Home, Initialised]) -> None:
    home, result = made
    assert [is_id(result.user_id, "usr"), is_id(result.workspace_id, "wsp"), is_id(result.team_id, "team")] == [
        True
    ] * 3
    with snapshot(home.database) as tx:
        catalogue = load(tx, home)
        stored = meta.get(tx, meta.OPERATOR_TOKEN)
    project = catalogue.owner_of(result.project_key.encode())
    assert project is not None
    assert project.name == "default"
    assert (project.mode, project.model, catalogue.models[project.model].engine) == ("agent", "Pepper mini", "embedded")
    assert stored == digest(key_secret(home), result.operator_token.encode()).hex()


def test_the_api_key_is_signed_by_the_key_of_the_home(made: tuple[Home, Initialised]) -> None:
    home, result = made
    (pem,) = home.keys.glob("sig_*.pem")
    assert load_pem_private_key(pem.read_bytes(), None)
    token = result.api_key.removeprefix("envai_sk_")
    with pytest.warns(SecurityWarning):
        decoded = jwt.decode(token[26:], OKPKey.import_key(pem.read_bytes()), algorithms=["EdDSA"])
    assert decoded.header["kid"] == pem.stem
    assert decoded.claims["sub"] == result.user_id
    assert decoded.claims["jti"] == f"key_{token[:26]}"


def test_no_secret_is_kept_readable(made: tuple[Home, Initialised]) -> None:
    home, result = made
    secrets = [getattr(result, name) for name in SECRETS] + [result.setup_url.partition("token=")[2]]
    assert len(set(secrets)) == len(secrets)
    for path in home.path.rglob("*"):
        if path.is_file():
            assert not any(secret.encode() in path.read_bytes() for secret in secrets), path.name
    assert not any(secret in repr(result) for secret in secrets)
    assert home.database.stat().st_mode & 0o077 == 0


def test_the_printed_object_has_the_promised_names(made: tuple[Home, Initialised]) -> None:
    assert list(json.loads(msgspec.json.encode(made[1]))) == [
        "setup_url",
        "operator_token",
        "api_key",
        "user_id",
        "workspace_id",
        "team_id",
        "project",
        "project_key",
    ]


def test_a_second_init_changes_nothing(home: Home) -> None:
    before = {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()}
    with pytest.raises(GatewayError) as caught:
        init(home, "http://127.0.0.1:8111")
    assert (caught.value.code, caught.value.message.reason) == (Code.CONFLICT, "home_initialised")
    assert {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()} == before


def test_an_interrupted_init_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")

    def interrupted(*args: object, **kwargs: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("crocevia.runtime.control.init.mint", interrupted)
        init(home, "http://127.0.0.1:8111")
    assert not is_initialised(home)
    init(home, "http://127.0.0.1:8111")
    assert is_initialised(home)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GatewayError) as caught:
        init(Home(tmp_path / "file" / "home"), "http://127.0.0.1:8111")
    assert caught.value.message.reason == "home_not_written"
