"""The images API as it is asked and answered."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from crocevia.core.errors import Code, GatewayError
from crocevia.core.images import ImageRequest, Picture
from crocevia.engines.openai.images import ImagesEngine
from crocevia.engines.upstream.http import HttpClient

PNG = b"\x89PNG\r\n\x1a\n"
GOOD = {"data": [{"b64_json": base64.b64encode(PNG).decode()}], "usage": {"input_tokens": 5, "output_tokens": 7}}
WISH = ImageRequest(model="gpt-image-1", prompt="a cat")


class Provider:
    """Answers one thing to everybody, and keeps what it was asked."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        self.asked: list[tuple[str, bytes]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.partition(":")[2]) for line in head.lower().split("\r\n") if line.startswith("content-length")
        )
        self.asked.append((head, await reader.readexactly(length)))
        answer = (
            f"HTTP/1.1 {self.status} X\r\nContent-Type: application/json\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        writer.write(answer.encode() + self.body)
        await writer.drain()
        writer.close()


def ask(
    provider: Provider, request: ImageRequest, inputs: tuple[Picture, ...] = (), mask: Picture | None = None
) -> Any:
    async def work() -> Any:
        server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
        http = HttpClient()
        engine = ImagesEngine("paint", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/", "sk-x", http)
        try:
            async with asyncio.timeout(10):
                deadline = asyncio.get_running_loop().time() + 5
                return await engine.generate(request, inputs, mask, deadline=deadline)
        finally:
            await http.close()
            server.close()
            await server.wait_closed()

    return asyncio.run(work())


def test_a_wish_is_spelled_as_the_provider_knows_it() -> None:
    provider = Provider(200, json.dumps(GOOD).encode())
    request = ImageRequest(
        model="gpt-image-1", prompt="a cat", aspect_ratio="3:2", quality=100, format="webp",
        settings={"background": "opaque", "seed": 4, "input_fidelity": "high"},
    )  # fmt: skip
    painted = ask(provider, request)
    ((head, body),) = provider.asked
    assert head.startswith("POST /v1/images/generations ") and "Bearer sk-x" in head
    assert json.loads(body) == {
        "model": "gpt-image-1", "prompt": "a cat", "n": 1, "size": "1536x1024",
        "quality": "high", "output_format": "webp", "background": "opaque",
    }  # fmt: skip
    assert painted.images[0].data == PNG and painted.ignored == ("seed",)
    assert (painted.usage.input_tokens, painted.usage.output_tokens) == (5, 7)


def test_inputs_and_a_mask_go_as_a_form() -> None:
    provider = Provider(200, json.dumps(GOOD).encode())
    ask(provider, WISH, (Picture("image/png", b"one"), Picture("image/jpeg", b"two")), Picture("image/png", b"mask"))
    ((head, body),) = provider.asked
    assert head.startswith("POST /v1/images/edits ") and "multipart/form-data; boundary=" in head
    assert body.count(b'name="image[]"') == 2 and body.count(b'name="mask"') == 1
    assert b"\r\n\r\ntwo\r\n" in body and b'name="prompt"\r\n\r\na cat\r\n' in body


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"data":[]}', b'{"data":[{"url":"https://x"}]}', b'{"data":[{"b64_json":"%"}]}', b"[" * 2000],
)
def test_an_answer_without_a_picture_is_a_failure(body: bytes) -> None:
    with pytest.raises(GatewayError) as caught:
        ask(Provider(200, body), WISH)
    assert caught.value.code is Code.UPSTREAM_FAILED


@pytest.mark.parametrize(("status", "code"), [(401, Code.UPSTREAM_FAILED), (429, Code.UPSTREAM_OVERLOADED)])
def test_a_refusal_is_not_tried_twice_and_says_nothing_of_the_body(status: int, code: Code) -> None:
    provider = Provider(status, b'{"error":{"message":"secret words"}}')
    with pytest.raises(GatewayError) as caught:
        ask(provider, WISH)
    assert caught.value.code is code and len(provider.asked) == 1
    assert "secret" not in repr(caught.value)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"objects": True}, "objects_image"),
        ({"format": "svg"}, "format"),
        ({"aspect_ratio": "21:9"}, "aspect_ratio"),
        ({"resolution": "4k"}, "resolution"),
        ({"settings": {"background": "pink"}}, "model_settings.background"),
    ],
)
def test_what_the_provider_cannot_do_is_refused_before_it_is_asked(changes: dict[str, Any], param: str) -> None:
    engine = ImagesEngine("paint", "http://127.0.0.1:1", None, HttpClient())
    with pytest.raises(GatewayError) as caught:
        engine.check_request(ImageRequest(model="m", prompt="p", **changes))
    assert (caught.value.code, caught.value.param) == (Code.UNSUPPORTED, param)
