"""Runs inside the official client's own environment: files, attachments and pictures, sync and async, on a live server.

Arguments: URL, API key, workspace id, chat id, the secret of a provider's webhooks. Prints what `report` does; fails
with the client's own error otherwise. What only newer clients have is driven where it is.
"""

from __future__ import annotations

import base64
import hmac
import inspect
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from envai import errors
from watching import fields, now, refused, report, whole

URL, KEY, WORKSPACE, CHAT, SECRET = sys.argv[1:6]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def drive(client: Any, tag: str) -> None:
    await drive_files(client, tag)
    if hasattr(client, "attachments"):
        await drive_attachments(client, tag)
    await drive_images(client)
    await drive_webhook(client)
    await drive_absent(client, tag)


async def drive_files(client: Any, tag: str) -> None:
    path = f"/wiki/{tag}.md"
    made = fields(await now(client.files.create(WORKSPACE, body={"path": path, "content": "# Hi\n"})))
    assert made["path"] == path[1:]
    await refused(errors.ConflictError, lambda: client.files.create(WORKSPACE, body={"path": path, "content": "x"}))
    assert fields(await now(client.files.update(WORKSPACE, body={"path": path, "content": "# Ho\n"})))["size"] == 5
    assert fields(await now(client.files.get(WORKSPACE, path=path)))["content"] == "# Ho\n"
    assert fields(await now(client.files.get(WORKSPACE, path="/")))["entries"]
    assert await whole(client.files.download(WORKSPACE, path=path)) == b"# Ho\n"
    assert (await whole(client.files.convert_to_pdf(WORKSPACE, body={"path": path}))).startswith(b"%PDF-")
    assert await now(client.files.delete(WORKSPACE, path=path)) is None
    await refused(errors.NotFoundError, lambda: client.files.get(WORKSPACE, path=path))
    deep = {"path": f"/{tag}/a/b.txt", "content": "x"}
    assert fields(await now(client.files.create(WORKSPACE, body=deep)))["name"] == "b.txt"
    await refused(errors.ConflictError, lambda: client.files.delete(WORKSPACE, path=f"/{tag}"))
    assert await now(client.files.delete(WORKSPACE, path=f"/{tag}", recursive=True)) is None
    wrong = await refused(errors.ValidationError, lambda: client.files.get(WORKSPACE, path="/../x"))
    assert (wrong.type, bool(wrong.request_id)) == ("invalid_path", True)


async def drive_attachments(client: Any, tag: str) -> None:
    made = fields(
        await now(
            client.attachments.upload(
                WORKSPACE, CHAT, files={"file": ("a.txt", b"hello", "text/plain")}, idempotency_key=tag
            )
        )
    )
    which = made["attachment_id"]
    assert fields(await now(client.attachments.get(WORKSPACE, CHAT, which)))["lifecycle"] == "ready"
    assert fields(await now(client.attachments.wait(WORKSPACE, CHAT, which, timeout=10)))["derived"] is None
    assert fields(await now(client.attachments.list(WORKSPACE, CHAT)))
    assert await whole(client.attachments.download(WORKSPACE, CHAT, which, kind="original")) == b"hello"
    await refused(
        errors.ConflictError, lambda: client.attachments.retry(WORKSPACE, CHAT, which, idempotency_key=f"{tag}r")
    )
    assert fields(await now(client.attachments.delete(WORKSPACE, CHAT, which)))["lifecycle"] == "deleted"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "b.md"
        file.write_text("# b")
        sent = await now(client.attachments.upload_file(WORKSPACE, CHAT, file, idempotency_key=f"{tag}f"))
        assert fields(sent)["mime_type"] == "text/markdown"


async def drive_images(client: Any) -> None:
    assert [fields(one)["model"] for one in await now(client.images.models())] == ["brush"]
    up = fields(await now(client.images.upload(files={"file": ("a.png", PIXEL, "image/png")})))
    body = {
        "model": "brush",
        "prompt": "a square",
        "webhook_url": "https://93.184.216.34/hook",
        "input_image": {"type": "upload_id", "payload": up["id"]},
    }
    taken = fields(await now(client.images.generate(body=body)))
    assert fields(await now(client.images.get(taken["id"])))["model"] == "brush"
    del body["input_image"]
    done = fields(await now(client.images.generate_and_wait(body=body, timeout=20, poll_interval=0.05)))
    assert done["status"] == "succeeded", done
    address = done["files"][0]["download_url"]
    picture = await whole(client.images.download_signed_url(address))
    assert picture.startswith(b"\x89PNG")
    signed: dict[str, Any] = dict(parse_qsl(urlsplit(address).query))
    signed["expires"] = int(signed["expires"])
    assert await whole(client.images.download_artifact(**signed)) == picture
    signed["expires"] += 1
    await refused(errors.AccessDeniedError, lambda: client.images.download_artifact(**signed))


async def drive_webhook(client: Any) -> None:
    """A provider's own call: signed as it signs, by the client that can, and unsigned."""
    body = {"id": "x", "status": "Ready"}
    if "x_bfl_signature" in inspect.signature(client.handle_provider_webhook).parameters:
        sent = httpx.Request("POST", URL, json=body).content
        signature = hmac.digest(SECRET.encode(), sent, "sha256").hex()
        told = await now(client.handle_provider_webhook("black-forest-labs", body=body, x_bfl_signature=signature))
        assert fields(told) == {"status": "ok"}
    unsigned = await refused(
        errors.AuthenticationError, lambda: client.handle_provider_webhook("black-forest-labs", body=body)
    )
    assert unsigned.type == "provider_error"


async def drive_absent(client: Any, tag: str) -> None:
    """What this server does not have says so in the contract's own form."""
    here, one, key = WORKSPACE, "x", {"idempotency_key": tag}
    files, run = {"file": ("a.md", b"# a", "text/markdown")}, {"body": {"webhook_url": "https://hooks.example/w"}}
    picture = {"files": {"files": ("a.png", PIXEL, "image/png")}, "data": {"prompt": "p", "model_code": "m"}}
    absent = [lambda: client.test_generate_image(**picture)]
    if hasattr(client, "wiki"):
        wiki = client.wiki
        absent += [
            lambda: wiki.upload(here, files=files, **key),
            lambda: wiki.upload_file(here, __file__, **key),
            lambda: wiki.source(here, one),
            lambda: wiki.download(here, one),
            lambda: wiki.withdraw(here, body={"file_id": one}),
            lambda: wiki.inbox(here, **run, **key),
            lambda: wiki.outbox(here, **run, **key),
            lambda: wiki.sync(here, **run, **key),
            lambda: wiki.operation(here, one),
            lambda: wiki.categories(here),
            lambda: wiki.category_index(here, one, all=True),
            lambda: wiki.jwks(),
        ]
    for ask in absent:
        error = await refused(errors.NotFoundError, ask)
        assert (error.type, bool(error.request_id)) == ("not_found", True)


report(KEY, f"{URL}/api/v1", drive)
