"""Which tokens the home's keys stand for: exactly those that they signed, byte for byte."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crocevia.runtime.signing_keys import PUBLISH_SECONDS, Jwk, Signer, base64url
from crocevia.storage.home import Home

CLAIMS: dict[str, Any] = {"sub": "usr_è", "jti": "key_x", "iat": 1_790_000_000, "scopes": ["read", "write"]}


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    home = Home(tmp_path_factory.mktemp("home"))
    home.keys.mkdir(parents=True)
    return Signer(home)


def spelled(part: object) -> str:
    return base64url(json.dumps(part, separators=(",", ":"), ensure_ascii=False).encode())


def by_hand(signer: Signer, header: object, claims: object = CLAIMS) -> str:
    """A token signed by the home's key with whatever stands in its header."""
    unsigned = f"{spelled(header)}.{spelled(claims)}"
    return f"{unsigned}.{signer.sign(unsigned.encode()).sig}"


def test_a_token_says_what_was_claimed_in_the_bytes_that_earlier_versions_wrote(signer: Signer) -> None:
    header = {"alg": "EdDSA", "kid": signer.current().id, "typ": "JWT"}
    assert signer.sign_jwt(CLAIMS) == by_hand(signer, header)
    assert signer.verify_jwt(by_hand(signer, header)) == CLAIMS


def headers(kid: str) -> dict[str, object]:
    return {
        "no algorithm": {"kid": kid},
        "none": {"alg": "none", "kid": kid},
        "another name for the curve": {"alg": "Ed25519", "kid": kid},
        "a secret's algorithm": {"alg": "HS256", "kid": kid},
        "no key": {"alg": "EdDSA"},
        "nobody's key": {"alg": "EdDSA", "kid": "sig_nobody"},
        "a list as key": {"alg": "EdDSA", "kid": [kid]},
        "a list as algorithm": {"alg": ["EdDSA"], "kid": kid},
        "a list": ["alg", "kid"],
        "a text": "alg",
        "null": None,
        "unencoded payload": {"alg": "EdDSA", "kid": kid, "b64": False, "crit": ["b64"]},
        "something critical": {"alg": "EdDSA", "kid": kid, "crit": ["exp"], "exp": 1},
        "a key of its own": {"alg": "EdDSA", "jwk": {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43}},
    }


@pytest.mark.parametrize("case", headers("x"))
def test_a_header_that_we_never_write_is_refused_whatever_signed_it(signer: Signer, case: str) -> None:
    assert signer.verify_jwt(by_hand(signer, headers(signer.current().id)[case])) is None


@pytest.mark.parametrize("claims", [[], "x", 1, None])
def test_claims_are_an_object(signer: Signer, claims: object) -> None:
    assert signer.verify_jwt(by_hand(signer, {"alg": "EdDSA", "kid": signer.current().id}, claims)) is None


@pytest.mark.parametrize(
    "text", ["", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d", "é.é.é", "\ud800..", "\0", "x" * 200_000, "[" * 100_000]
)
def test_what_is_no_token_is_refused(signer: Signer, text: str) -> None:
    assert signer.verify_jwt(text) is None


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_one_other_character_anywhere_ends_it(signer: Signer, data: st.DataObject) -> None:
    """Also where it decodes to the same bytes: padding, spaces, the unused bits of a last character."""
    token = signer.sign_jwt(CLAIMS)
    at = data.draw(st.integers(0, len(token)))
    other = data.draw(st.sampled_from("ABQgwxyz0189-_=+/. \n\té"))
    assert signer.verify_jwt(token[:at] + other + token[at:]) is None
    changed = token[:at] + other + token[at + 1 :]
    assert changed == token or signer.verify_jwt(changed) is None
    assert at == len(token) or signer.verify_jwt(token[:at] + token[at + 1 :]) is None


def test_the_published_set_is_the_public_half_and_nothing_else(signer: Signer) -> None:
    (key,) = signer.keys()
    x = base64.urlsafe_b64encode(key.private.public_key().public_bytes_raw()).rstrip(b"=").decode()
    assert signer.published() == [Jwk(x=x, kid=key.id)]
    secret = base64url(key.private.private_bytes_raw())
    assert not any(secret in text for text in (repr(signer.published()), repr(key), repr(key.jwk)))


def test_a_key_whose_file_is_gone_stands_for_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.keys.mkdir(parents=True)
    now = [1_790_000_000.0]
    signer = Signer(home, clock=lambda: now[0])
    token, kid = signer.sign_jwt(CLAIMS), signer.current().id
    signer.rotate()
    now[0] += 10**9 + PUBLISH_SECONDS
    signer.remove(kid)
    assert signer.verify_jwt(token) is None
    assert signer.verify_jwt(signer.sign_jwt(CLAIMS)) == CLAIMS
