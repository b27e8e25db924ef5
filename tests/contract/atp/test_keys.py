"""Keys: shown once, gone at once, seen by open streams; and the public keys that they are checked with."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from crocevia.asgi.http import Operation, Stream
from crocevia.core.errors import GatewayError
from crocevia.doors.atp.caller import Request
from crocevia.runtime.control.api_keys import ApiKeys
from crocevia.runtime.signing_keys import PUBLISH_SECONDS, Signer
from tests.contract.requirements import requirement
from tests.doors.atp.house import House, live, site_of

DAY = 86_400


def seconds_between(created: str, expires: str) -> float:
    return (datetime.fromisoformat(expires) - datetime.fromisoformat(created)).total_seconds()


@requirement("A-KEY-1")
@pytest.mark.parametrize(
    ("body", "days"), [({}, 30), ({"expires_at": "30d"}, 30), ({"expires_at": "90d"}, 90), ({"expires_at": "1y"}, 365)]
)
def test_a_key_holds_as_long_as_it_says(body: dict[str, Any], days: int) -> None:
    async def work(place: House) -> None:
        made = (await place.call("POST", "/api-keys", {"name": "k"} | body)).data
        assert days * DAY - 1 <= seconds_between(made["created_at"], made["expires_at"]) <= days * DAY

    live(work)


@requirement("A-KEY-1")
def test_a_token_is_in_one_answer_and_nowhere_else() -> None:
    async def work(place: House) -> None:
        made = (await place.call("POST", "/api-keys", {"name": "k"})).data
        token = made.pop("token")
        assert token.startswith("envai_sk_" + made["id"].removeprefix("key_"))
        assert (await place.call("GET", "/workspaces", key=token)).status == 200
        listed = await place.call("GET", "/api-keys")
        assert listed.data[0] == made
        assert token.encode() not in listed.raw
        place.control.database.post(lambda tx: tx.connection.execute("PRAGMA wal_checkpoint"))
        await place.stored()
        assert token.encode() not in place.control.home.database.read_bytes()

    live(work)


@requirement("A-KEY-2")
def test_a_revoked_key_opens_nothing_and_stays_in_the_list() -> None:
    async def work(place: House) -> None:
        made = (await place.call("POST", "/api-keys", {"name": "k"})).data
        assert (await place.call("GET", "/workspaces", key=made["token"])).status == 200
        assert (await place.call("DELETE", f"/api-keys/{made['id']}")).status == 204
        assert (await place.call("GET", "/workspaces", key=made["token"])).status == 401
        first = next(key for key in (await place.call("GET", "/api-keys")).data if key["id"] == made["id"])
        assert first["revoked_at"] is not None
        assert (await place.call("DELETE", f"/api-keys/{made['id']}")).status == 204
        again = next(key for key in (await place.call("GET", "/api-keys")).data if key["id"] == made["id"])
        assert again["revoked_at"] == first["revoked_at"]

    live(work)


@requirement("A-KEY-2")
def test_an_expired_key_opens_nothing_even_if_it_was_known() -> None:
    async def work(place: House) -> None:
        now = [1_800_000_000.0]
        control = place.control
        keys = ApiKeys(control.database, control.home, control.signer, clock=lambda: now[0])
        place.door = site_of(msgspec.structs.replace(control, keys=keys))
        _, token = await keys.create(place.ada.id, "k", "30d")
        assert (await place.call("GET", "/workspaces", key=token)).status == 200
        now[0] += 30 * DAY
        assert (await place.call("GET", "/workspaces", key=token)).status == 401

    live(work)


@requirement("A-KEY-2")
@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_an_open_stream_ends_with_its_key(how: str) -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def stream(request: Request) -> Stream:
        return Stream(endless(), ((b"content-type", b"text/plain"),))

    async def work(place: House) -> None:
        now = [1_800_000_000.0]
        control = place.control
        keys = ApiKeys(control.database, control.home, control.signer, clock=lambda: now[0])
        door = site_of(msgspec.structs.replace(control, keys=keys), (Operation("s", "GET", "/s", stream, ""),))
        key, token = await keys.create(place.ada.id, "k", "30d")
        sent: asyncio.Queue[Any] = asyncio.Queue()
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/v1/s",
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {token}".encode())],
        }
        serving = asyncio.create_task(door(scope, receive, sent.put))
        assert (await sent.get())["status"] == 200
        assert (await sent.get())["body"] == b"first"
        if how == "revoked":
            await keys.revoke(place.ada.id, key.id)
        else:
            now[0] += 30 * DAY
            keys.look_again()
        await serving
        assert (await sent.get()).get("more_body") is None
        assert closed.is_set()

    live(work)


@requirement("A-KEY-2")
def test_a_key_that_ends_while_it_is_being_recognised_is_not_remembered() -> None:
    async def work(place: House) -> None:
        keys = place.control.keys
        for _ in range(20):
            key, token = await keys.create(place.ada.id, "k", "30d")
            await asyncio.gather(keys.authenticate(token), keys.revoke(place.ada.id, key.id), return_exceptions=True)
            with pytest.raises(GatewayError):
                await keys.authenticate(token)

    live(work)


@requirement("A-JWKS-1")
def test_a_new_signing_key_is_published_first_and_signs_later() -> None:
    async def work(place: House) -> None:
        home = place.control.home
        first = place.control.signer.current()
        now = [first.born + 1]
        signer = Signer(home, clock=lambda: now[0])
        os.utime(home.keys, ns=(1, 1))
        new = signer.rotate()
        listed = [key["kid"] for key in (await place.call("GET", "/.well-known/jwks.json", key=None)).json["keys"]]
        assert set(listed) == {first.id, new}
        assert signer.sign(b"x").kid == first.id
        now[0] = time.time() + PUBLISH_SECONDS + 60
        assert signer.sign(b"x").kid == new
        assert (await place.call("GET", "/workspaces")).status == 200  # a key signed by the old one

    live(work)


@requirement("A-JWKS-1")
def test_what_is_signed_can_be_checked_with_what_is_published() -> None:
    async def work(place: House) -> None:
        (key,) = (await place.call("GET", "/.well-known/jwks.json", key=None)).json["keys"]
        public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
        signed = place.control.signer.sign(b"bytes")
        assert (signed.kid, len(base64.urlsafe_b64decode(signed.sig + "=="))) == (key["kid"], 64)
        public.verify(base64.urlsafe_b64decode(signed.sig + "=="), b"bytes")
        head, body, signature = place.ada.key[len("envai_sk_") + 26 :].split(".")
        public.verify(base64.urlsafe_b64decode(signature + "=="), f"{head}.{body}".encode())
        claims = json.loads(base64.urlsafe_b64decode(body + "=="))
        assert claims["sub"] == place.ada.id

    live(work)


@requirement("A-JWKS-1", "A-AUTH-1")
def test_a_signing_key_that_is_removed_takes_its_tokens_along() -> None:
    async def work(place: House) -> None:
        home = place.control.home
        (pem,) = home.keys.glob("sig_*.pem")
        pem.unlink()
        os.utime(home.keys, ns=(1, 1))
        place.control.keys.look_again()
        assert (await place.call("GET", "/workspaces")).status == 401

    live(work)
