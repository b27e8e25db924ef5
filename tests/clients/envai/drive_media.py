"""Runs inside the official client's own environment: files, attachments and pictures, sync and async, on a live server.

Arguments: URL, API key, workspace id, chat id. Prints the operations that were called, as JSON.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import sys
import time
from typing import Any

import envai
from envai import errors

URL, KEY, WORKSPACE, CHAT = sys.argv[1:5]
BASE = f"{URL}/api/v1"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def now(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def fields(value: Any) -> Any:
    return value if isinstance(value, dict | list | bytes) else value.model_dump(mode="json", by_alias=True)


async def refused(kind: type[Exception], make: Any) -> Any:
    try:
        await now(make())
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected")


async def whole(value: Any) -> bytes:
    value = await now(value)
    if isinstance(value, bytes):
        return value
    if hasattr(value, "__aiter__"):
        return b"".join([piece async for piece in value])
    return b"".join(value)


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
    assert fields(await now(client.attachments.list(WORKSPACE, CHAT)))
    assert await whole(client.attachments.download(WORKSPACE, CHAT, which, kind="original")) == b"hello"
    await refused(
        errors.ConflictError, lambda: client.attachments.retry(WORKSPACE, CHAT, which, idempotency_key=f"{tag}r")
    )
    assert fields(await now(client.attachments.delete(WORKSPACE, CHAT, which)))["lifecycle"] == "deleted"


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
    end = time.monotonic() + 20
    while True:
        done = fields(await now(client.images.get(taken["id"])))
        if done["status"] == "succeeded" or time.monotonic() > end:
            break
        await asyncio.sleep(0.05)
    assert done["status"] == "succeeded", done
    assert (await whole(client.images.download_signed_url(done["files"][0]["download_url"]))).startswith(b"\x89PNG")


async def main() -> None:
    called: dict[str, list[str]] = {}
    for tag, kind in (("sync", envai.EnvaiClient), ("async", envai.AsyncEnvaiClient)):
        client = kind(KEY, base_url=BASE)
        names: set[str] = set()
        prepare = client._prepare

        def record(
            operation: str, *args: Any, _names: set[str] = names, _prepare: Any = prepare, **options: Any
        ) -> Any:
            _names.add(operation)
            return _prepare(operation, *args, **options)

        client._prepare = record
        await drive_files(client, tag)
        await drive_attachments(client, tag)
        await drive_images(client)
        await now(client.aclose() if hasattr(client, "aclose") else client.close())
        called[tag] = sorted(names)
    json.dump(called, sys.stdout)


asyncio.run(main())
