"""Pictures over the door: ordered, made, told of, had by a signed address; and all that is refused before it costs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import io
import json
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from PIL import Image

from crocevia.asgi.http import Front
from crocevia.core.forwarding import networks
from crocevia.runtime.control import images
from crocevia.runtime.control.images import uploads
from crocevia.runtime.signing_keys import base64url, unbase64url
from tests.contract.atp.forms import form, headers
from tests.contract.atp.studio import ORDER, Studio, paint
from tests.contract.requirements import requirement
from tests.doors.atp.house import House, live, site_of


def png(side: int = 2, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (side, side), "red").save(out, kind)
    return out.getvalue()


def b64(data: bytes) -> dict[str, str]:
    return {"type": "base64", "payload": base64.b64encode(data).decode()}


def on_disk(place: House) -> list[str]:
    return sorted(path.name for path in place.control.home.files.rglob("*") if path.is_file())


def local(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


@requirement("A-IMG-1")
def test_a_picture_is_ordered_made_told_of_and_had() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        place.door = site_of(place.control, front=Front(proxies=networks(["192.0.2.7"])))
        host = {"host": "inside", "x-forwarded-host": "gate.example:8443", "x-forwarded-proto": "https"}
        taken = await place.call("POST", "/images/generations", ORDER, headers=host)
        assert taken.status == 202
        base = "https://gate.example:8443/api/v1"
        assert taken.data["status_url"] == f"{base}/images/generations/{taken.data['id']}"
        done = await studio.finished(f"/images/generations/{taken.data['id']}", "succeeded")
        assert (done["result"]["prompt"], done["provider"], done["routed"]) == ("a red square", "easel", False)
        assert done["cost_usd"] == 0.000006 and done["price"]["amount"] == "0.000006"
        (file,) = done["files"]
        shown = (await place.call("GET", f"/images/generations/{taken.data['id']}", headers=host)).data["files"][0]
        assert shown["download_url"].startswith(f"{base}/artifacts/download?artifact=art_")
        had = await place.ask("GET", local(shown["download_url"]), key=None)
        assert (had.status, len(had.raw), had.header("content-type")) == (200, file["size"], "image/png")
        assert had.header("content-disposition").startswith("attachment; filename=")
        assert "default-src 'none'" in had.header("content-security-policy")
        assert Image.open(io.BytesIO(had.raw)).size == (64, 64)
        async with asyncio.timeout(10):
            while not studio.post.sent:
                await asyncio.sleep(0)
        ((url, body, lines),) = studio.post.sent
        assert url == ORDER["webhook_url"]
        event = json.loads(body)
        assert (event["type"], event["data"]["files"][0]["download_url"]) == (
            "image.generation.succeeded",
            shown["download_url"],
        )
        key = next(k for k in place.control.signer.published() if k.kid == lines["X-Crocevia-Key"])
        signed = b".".join((lines["X-Crocevia-Timestamp"].encode(), lines["X-Crocevia-Event"].encode(), body))
        Ed25519PublicKey.from_public_bytes(unbase64url(key.x)).verify(
            unbase64url(lines["X-Crocevia-Signature"]), signed
        )

    paint(work, told=True)


@requirement("A-IMG-1")
def test_a_picture_that_fails_says_why_and_costs_nothing() -> None:
    async def work(studio: Studio) -> None:
        taken = await studio.place.call("POST", "/images/generations", ORDER | {"prompt": "never"})
        done = await studio.finished(f"/images/generations/{taken.data['id']}", "failed")
        assert done["error"]["code"] == "refused"
        assert not {"files", "price", "cost_usd", "result"} & set(done)

    paint(work)


@requirement("A-IMG-2")
@pytest.mark.parametrize("tampered", ["artifact", "generation", "expires", "signature", "no expires", "more time"])
def test_a_signed_address_opens_that_picture_and_nothing_else(tampered: str) -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        taken = await place.call("POST", "/images/generations", ORDER)
        done = await studio.finished(f"/images/generations/{taken.data['id']}", "succeeded")
        path, _, query = local(done["files"][0]["download_url"]).partition("?")
        fields = dict(parse_qsl(query))
        if tampered == "no expires":
            del fields["expires"]
        elif tampered == "more time":
            fields["expires"] = str(int(fields["expires"]) + 1)
        else:
            fields[tampered] = fields[tampered][:-1] + ("0" if fields[tampered][-1] != "0" else "1")
        assert (await place.call("GET", f"{path}?{urlencode(fields)}", key=None)).status == 403

    paint(work)


@requirement("A-IMG-2")
def test_everything_is_forgotten_after_two_hours() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        await place.call("POST", "/images/uploads", headers=headers(None), raw=[form(png(), "a.png")])
        taken = await place.call("POST", "/images/generations", ORDER)
        path = f"/images/generations/{taken.data['id']}"
        done = await studio.finished(path, "succeeded")
        assert len(on_disk(place)) == 2
        later = place.control.clock() + 7201
        place.control = msgspec.structs.replace(place.control, clock=lambda: later)
        place.door = site_of(place.control)
        assert (await place.call("GET", path)).status == 404
        assert (await place.call("GET", local(done["files"][0]["download_url"]), key=None)).status == 404
        await studio.work.drop_expired()
        assert on_disk(place) == []

    paint(work)


@requirement("A-IMG-3")
def test_inputs_come_as_bytes_addresses_and_uploads_and_are_used_once() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        studio.post.pages["https://pictures.example/a.jpg"] = png(kind="JPEG")
        up = await place.call("POST", "/images/uploads", headers=headers(None), raw=[form(png(), "a.png")])
        assert (up.status, up.data["mime_type"], up.data["original_filename"]) == (201, "image/png", "a.png")
        inputs: list[Any] = [
            b64(png()) | {"mime_type": "image/jpeg", "reference": "style"},
            {"type": "base64", "payload": "data:image/png;base64," + base64.b64encode(png()).decode()},
            {"type": "url", "payload": "https://pictures.example/a.jpg"},
            {"type": "upload_id", "payload": up.data["id"]},
        ]
        taken = await place.call("POST", "/images/generations", ORDER | {"input_images": inputs})
        assert taken.status == 202, taken.raw
        await studio.finished(f"/images/generations/{taken.data['id']}", "succeeded")
        assert not [name for name in on_disk(place) if name.startswith("inp_")]
        again = await place.call("POST", "/images/generations", ORDER | {"input_images": inputs[3:]})
        assert (again.status, again.details) == (422, {"input_images.0.payload": ["Upload record not found."]})
        masked = ORDER | {"input_image": b64(png()), "mask_image": b64(png())}
        assert (await place.call("POST", "/images/generations", masked)).status == 202

    paint(work)


CLOSED = (
    "http://hooks.example/x",
    "https://127.0.0.1/x",
    "https://localhost/x",
    "https://[::1]/x",
    "https://[::ffff:127.0.0.1]/x",
    "https://10.0.0.1/x",
    "https://169.254.169.254/latest/meta-data",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://user:pass@hooks.example/",
    "https://hooks.example:22/",
    "https://hooks.internal/",
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "//hooks.example/x",
    "https://",
    "https://hooks.example/\r\nX: y",
    "nonsense",
)


@requirement("A-IMG-4")
def test_addresses_that_lead_inside_are_refused_before_anything_is_kept() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        place.control.throttle.admit = lambda who, what, limit: None  # type: ignore[method-assign]
        for url in CLOSED:
            hook = await place.call("POST", "/images/generations", ORDER | {"webhook_url": url})
            assert (hook.status, list(hook.details)) == (422, ["webhook_url"]), url
            if url != "http://hooks.example/x":  # pictures may come over http
                source = {"type": "url", "payload": url}
                fetched = await place.call("POST", "/images/generations", ORDER | {"input_image": source})
                assert (fetched.status, list(fetched.details)) == (422, ["input_image.payload"]), url
        assert (studio.post.sent, on_disk(place)) == ([], [])

    paint(work)


WRONG: dict[str, dict[str, Any]] = {
    "model": {"model": "embedded"},
    "prompt": {"prompt": "  "},
    "providers": {"providers": ["other"]},
    "format": {"format": "svg"},
    "quality": {"quality": 101},
    "extra": {"extra": 1},
    "input_images": {"input_image": b64(png()), "input_images": [b64(png())]},
    "mask_image": {"mask_image": b64(png())},
    "objects_image": {"input_images": [b64(png())], "objects_image": b64(png())},
    "input_image.payload": {"input_image": {"type": "base64", "payload": "%%%"}},
    "input_images.0.payload": {"input_images": [b64(b"GIF89a")]},
    "input_images.1.payload": {"input_images": [b64(png()), b64(png()[:20])]},
    "input_image": {"input_image": 5},
    "dimensions.width": {"dimensions": {"width": 0, "height": 1}},
}


@requirement("A-IMG-3")
@pytest.mark.parametrize("place_of", WRONG)
def test_a_wrong_order_names_its_field_and_leaves_nothing(place_of: str) -> None:
    async def work(studio: Studio) -> None:
        reply = await studio.place.call("POST", "/images/generations", ORDER | WRONG[place_of])
        assert reply.status == 422, reply.raw
        assert list(reply.details) == [place_of]
        assert on_disk(studio.place) == []

    paint(work)


@requirement("A-IMG-3")
def test_uploads_are_pictures_of_a_bounded_size_and_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        monkeypatch.setattr(images, "MAX_UPLOAD", 4000)
        monkeypatch.setattr(uploads, "QUOTA", len(png()) * 2)
        bomb = png().replace(b"\0\0\0\x02\0\0\0\x02", b"\0\1\0\0\0\1\0\0", 1)
        for data in (b"", b"words", png()[:10], b"<svg/>", bomb, b"PK\x03\x04" + b"x" * 99, b"x" * 4001):
            reply = await place.call("POST", "/images/uploads", headers=headers(None), raw=[form(data, "a.png")])
            assert (reply.status, list(reply.details)) == (422, ["file"]), data[:10]
        for status in (201, 201, 422):
            reply = await place.call("POST", "/images/uploads", headers=headers(None), raw=[form(png(), "a.gif")])
            assert reply.status == status
        assert len(on_disk(place)) == 2

    paint(work)


@requirement("A-IMG-5")
def test_another_user_sees_no_picture_and_uses_no_upload() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        eve = place.eve.key
        up = await place.call("POST", "/images/uploads", headers=headers(None), raw=[form(png(), "a.png")])
        taken = await place.call("POST", "/images/generations", ORDER)
        await studio.work.settled()
        theirs = await place.call("GET", f"/images/generations/{taken.data['id']}", key=eve)
        nobodys = await place.call("GET", "/images/generations/igr_01j5abcdefghjkmnpqrstvwxyz", key=eve)
        assert (theirs.status, theirs.raw) == (404, nobodys.raw)
        used = ORDER | {"input_image": {"type": "upload_id", "payload": up.data["id"]}}
        absent = ORDER | {"input_image": {"type": "upload_id", "payload": "upl_01j5abcdefghjkmnpqrstvwxyz"}}
        seen = await place.call("POST", "/images/generations", used, key=eve)
        assert (seen.status, seen.raw) == (422, (await place.call("POST", "/images/generations", absent, key=eve)).raw)

    paint(work)


@requirement("A-IMG-1")
def test_what_was_being_painted_when_the_server_stopped_is_not_painted_twice() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        taken = await place.call("POST", "/images/generations", ORDER | {"prompt": "slow"})
        path = f"/images/generations/{taken.data['id']}"
        async with asyncio.timeout(10):
            while (await place.call("GET", path)).data["status"] != "processing":
                await asyncio.sleep(0)
        await studio.work.close()
        await studio.work.start()
        assert (await place.call("GET", path)).data["status"] == "failed"

    paint(work)


@requirement("A-IMG-1")
def test_what_a_draining_server_does_not_begin_is_painted_by_the_next_with_its_inputs() -> None:
    async def work(studio: Studio) -> None:
        place, url = studio.place, "https://pictures.example/a.png"
        studio.post.pages[url] = png()
        studio.post.on_fetch = lambda: setattr(studio.gateway, "draining", True)
        inputs = [b64(png()), {"type": "url", "payload": url}]
        taken = await place.call("POST", "/images/generations", ORDER | {"input_images": inputs})
        path = f"/images/generations/{taken.data['id']}"
        await studio.work.settled()
        assert (await place.call("GET", path)).data["status"] not in ("failed", "succeeded", "processing")
        studio.gateway.draining = False
        studio.post.on_fetch = lambda: None
        await studio.work.start()
        await studio.finished(path, "succeeded")

    paint(work)


@requirement("A-IMG-1")
def test_the_catalogue_of_pictures_is_not_that_of_words() -> None:
    async def work(studio: Studio) -> None:
        place = studio.place
        assert [entry["model"] for entry in (await place.call("GET", "/images/models")).data] == ["brush"]
        listed = (await place.call("GET", "/models")).json["data"]
        assert "brush" not in [entry["id"] for entry in listed]

    paint(work)


BODY = b'{ "status":\t"processing",\n "id" : "job\xc3\xa8" }'


@requirement("A-HOOK-1")
def test_a_providers_webhook_is_believed_only_with_its_signature_over_the_bytes() -> None:
    private = Ed25519PrivateKey.generate()
    x = base64url(private.public_key().public_bytes_raw())

    async def work(place: House) -> None:
        secret = base64.b64encode(b"shared secret").decode()
        settings = {
            "replicate": {"secret": f"whsec_{secret}"},
            "black-forest-labs": {"secret": "s"},
            "fal": {"keys": [{"x": x}]},
        }
        (place.control.home.keys / "webhooks.json").write_text(json.dumps(settings))
        now = int(place.control.clock())

        def svix(body: bytes, at: int = now) -> dict[str, str]:
            mac = hmac.digest(b"shared secret", f"msg_1.{at}.".encode() + body, "sha256")
            signature = f"v1,AAAA v1,{base64.b64encode(mac).decode()}"
            return {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": signature}

        def bfl(body: bytes, at: int = now) -> dict[str, str]:
            return {"x-bfl-signature": hmac.digest(b"s", body, "sha256").hex()}

        def fal(body: bytes, at: int = now) -> dict[str, str]:
            signed = f"r\nu\n{at}\n{hashlib.sha256(body).hexdigest()}".encode()
            names = ("request-id", "user-id", "timestamp", "signature")
            return {
                f"x-fal-webhook-{n}": v
                for n, v in zip(names, ("r", "u", str(at), private.sign(signed).hex()), strict=True)
            }

        async def post(provider: str, lines: dict[str, str], body: bytes = BODY) -> int:
            path = f"/webhooks/providers/{provider}"
            return (await place.call("POST", path, key=None, headers=lines, raw=[body])).status

        for provider, sign in (("replicate", svix), ("black-forest-labs", bfl), ("fal", fal)):
            assert await post(provider, sign(BODY)) == 200
            assert await post(provider, sign(b""), b"") == 200
            assert await post(provider, sign(BODY), json.dumps(json.loads(BODY)).encode()) == 401
            assert await post(provider, {}) == 401
            assert await post(provider, dict.fromkeys(sign(BODY), "é")) == 401
            if provider != "black-forest-labs":
                assert await post(provider, sign(BODY, now - 301)) == 401
            assert await post(provider, sign(b"[]"), b"[]") == 422
        (place.control.home.keys / "webhooks.json").unlink()
        assert await post("replicate", svix(BODY)) == 401
        for provider, status in (("openai", 405), ("vertex", 405), ("nobody", 422)):
            assert await post(provider, {}) == status

    live(work)
