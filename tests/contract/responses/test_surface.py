"""Who may ask, who answers, files, chat completions, embeddings, errors."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.doors.responses import errors
from crocevia.engines.e5.engine import is_installed
from tests.aio import run
from tests.contract.requirements import requirement
from tests.documents.zoo import photo as picture
from tests.doors.responses.house import AGENTS, ENABLED, Answer, house
from tests.fakes.provider import Provider, answer, play

from .upstream import DONE, calls, chunk, sent, spoken, upstream, whole

BODY: dict[str, Any] = {"model": "openclaw", "input": "hi"}
CHAT: dict[str, Any] = {"model": "openclaw", "messages": [{"role": "user", "content": "hi"}]}
PATHS = {"/v1/responses": BODY, "/v1/chat/completions": CHAT, "/v1/embeddings": {"model": "openclaw", "input": "hi"}}
FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
UNAUTHORIZED = {"error": {"message": "Unauthorized", "type": "unauthorized"}}
NONE = ENABLED + '[gateway.auth]\nmode = "none"\n'


@requirement("R-AUTH-1", "R-AUTH-2")
def test_who_is_not_known_gets_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            for path in PATHS:
                for token in (None, "wrong", "envai_sk_wrong"):
                    refused = await home.ask(path, raw=b"{not json", token=token)
                    assert (refused.status, refused.json()) == (401, UNAUTHORIZED)
                wrong = await home.ask(path, method="GET", token=None)
                assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
            for path in ("/v1/models", "/v1/models/openclaw", "/v1/responses/resp_1"):
                assert (await home.get(path, token=None)).status == 401

    run(scene(), timeout=30)


@requirement("R-AUTH-1")
def test_too_many_wrong_secrets_lock_their_address_out(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            for _ in range(10):
                assert (await home.ask("/v1/responses", BODY, token="wrong", peer="192.0.2.7")).status == 401
            locked = await home.ask("/v1/responses", BODY, peer="192.0.2.7")
            assert locked.status == 429 and 1 <= int(locked.headers["retry-after"]) <= 300
            assert locked.error["type"] == "rate_limited"
            assert (await home.ask("/v1/responses", BODY, peer="192.0.2.8")).status == 200
            for _ in range(20):  # a forgotten secret is no attempt
                await home.ask("/v1/responses", BODY, token=None, peer="192.0.2.9")
            assert (await home.ask("/v1/responses", BODY, peer="192.0.2.9")).status == 200

    run(scene(), timeout=30)


@requirement("R-AUTH-1")
def test_a_network_of_ipv6_is_one_address_and_its_neighbours_are_others(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            for number in range(10):
                peer = f"2001:db8:1:2:{number:x}::{number + 1:x}"
                assert (await home.ask("/v1/responses", BODY, token="wrong", peer=peer)).status == 401
            assert (await home.ask("/v1/responses", BODY, peer="2001:db8:1:2:ffff::1")).status == 429
            assert (await home.ask("/v1/responses", BODY, peer="2001:db8:1:3::1")).status == 200

    run(scene(), timeout=30)


@requirement("R-AUTH-1", "R-AUTH-3")
def test_scopes_bind_only_those_whose_identity_is_carried(tmp_path: Path) -> None:
    async def scene() -> None:
        narrow = {"x-openclaw-scopes": "operator.read"}
        async with house(tmp_path) as home:
            assert (await home.ask("/v1/responses", BODY, headers=narrow)).status == 200
        async with house(tmp_path / "b", settings=NONE) as home:
            assert (await home.ask("/v1/responses", BODY, token=None)).status == 200
            refused = await home.ask("/v1/responses", BODY, token=None, headers=narrow)
            assert refused.status == 403 and refused.json() == {
                "ok": False,
                "error": {
                    "type": "forbidden",
                    "message": "missing scope: operator.write",
                    "details": {
                        "code": "MISSING_SCOPE",
                        "missingScope": "operator.write",
                        "requiredScopes": ["operator.write"],
                    },
                },
            }
            assert (await home.get("/v1/models", token=None, headers=narrow)).status == 200
            nothing = await home.get("/v1/models", token=None, headers={"x-openclaw-scopes": ""})
            assert nothing.status == 403
            override = {"x-openclaw-scopes": "operator.write", "x-openclaw-model": "Pepper mini"}
            assert (await home.ask("/v1/responses", BODY, token=None, headers=override)).status == 403
            page = {"origin": "https://evil.example"}
            assert (await home.ask("/v1/responses", BODY, token=None, headers=page)).status == 401

    run(scene())


@requirement("R-AUTH-1")
def test_a_forwarded_request_needs_a_proxy_that_is_trusted(tmp_path: Path) -> None:
    proxied = ENABLED + '[gateway]\ntrustedProxies = ["192.0.2.1"]\n'
    trusting = (
        ENABLED
        + '[gateway]\ntrustedProxies = ["192.0.2.1"]\n[gateway.auth]\nmode = "trusted-proxy"\n'
        + '[gateway.auth.trustedProxy]\nuserHeader = "x-user"\nallowUsers = ["ann"]\nrequiredHeaders = ["x-proof"]\n'
    )

    async def scene() -> None:
        forwarded = {"x-forwarded-for": "198.51.100.4"}
        async with house(tmp_path, settings=proxied) as home:
            refused = await home.ask("/v1/responses", BODY, headers=forwarded, peer="192.0.2.9")
            assert (refused.status, refused.error["type"]) == (403, "proxy_attribution_required")
            assert (await home.ask("/v1/responses", BODY, headers=forwarded, peer="192.0.2.1")).status == 200
            looped = {"x-forwarded-for": "127.0.0.1"}
            assert (await home.ask("/v1/responses", BODY, headers=looped, peer="192.0.2.1")).status == 403
        async with house(tmp_path / "b", settings=trusting) as home:
            good = {**forwarded, "x-user": "ann", "x-proof": "1"}
            assert (await home.ask("/v1/responses", BODY, token=None, headers=good, peer="192.0.2.1")).status == 200
            for bad, peer in (
                ({**good, "x-user": "eve"}, "192.0.2.1"),
                ({**good, "x-user": " "}, "192.0.2.1"),
                ({**good, "x-proof": ""}, "192.0.2.1"),
                ({"x-user": "ann", "x-proof": "1"}, "192.0.2.9"),
                ({"x-user": "ann", "x-proof": "1"}, "127.0.0.1"),
            ):
                assert (await home.ask("/v1/responses", BODY, token=None, headers=bad, peer=peer)).status == 401

    run(scene())


@requirement("R-AUTH-3")
def test_the_password_opens_in_its_own_mode(tmp_path: Path) -> None:
    settings = ENABLED + '[gateway.auth]\nmode = "password"\npassword = "open sesame 42"\n'

    async def scene() -> None:
        async with house(tmp_path, settings=settings) as home:
            assert (await home.ask("/v1/responses", BODY, token="open sesame 42")).status == 200
            assert (await home.ask("/v1/responses", BODY)).status == 401

    run(scene())


@requirement("R-AUTH-4")
def test_an_api_key_brings_its_owner_s_agents_and_no_admin(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            key = home.secrets.api_key
            assert (await home.ask("/v1/responses", BODY, token=key)).status == 200
            override = {"x-openclaw-model": "Pepper mini"}
            assert (await home.ask("/v1/responses", BODY, token=key, headers=override)).status == 403
            assert (await home.ask("/v1/responses", BODY, headers=override)).status == 200

    run(scene())


@requirement("R-AGENT-1", "R-AGENT-2", "R-AGENT-3")
def test_agents_answer_by_their_names(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for model, header, prompt in (
                ("openclaw", None, "You are a helpful assistant."),
                ("OpenClaw/default", None, "You are a helpful assistant."),
                ("openclaw/main", None, "You are a helpful assistant."),
                ("openclaw:clerk", None, "You are a clerk."),
                ("agent:CLERK", None, "You are a clerk."),
                ("anything at all", "clerk", "You are a clerk."),
            ):
                headers = {"x-openclaw-agent-id": header} if header else {}
                made = await home.ask("/v1/responses", {**BODY, "model": model}, headers=headers)
                assert made.json()["model"] == model
                assert sent(provider)["messages"][0]["content"] == prompt
            for model, sentence in (
                ("gpt-4", "Invalid `model`. Use `openclaw` or `openclaw/<agentId>`."),
                ("openclaw/nope", "Unknown agent 'nope'."),
            ):
                refused = await home.ask("/v1/responses", {**BODY, "model": model})
                assert (refused.status, refused.error["message"]) == (400, sentence)
                assert (refused.error["param"], refused.error["code"]) == ("model", "model_not_found")
            unknown = await home.ask("/v1/responses", BODY, headers={"x-openclaw-model": "no/such"})
            assert unknown.status == 404 and unknown.error["code"] == "model_not_found"
            for name in ("Pepper mini", "embedded/up-1", "up-1"):
                assert (await home.ask("/v1/responses", BODY, headers={"x-openclaw-model": name})).status == 200
            channel = await home.ask("/v1/responses", BODY, headers={"x-openclaw-message-channel": "sms"})
            assert channel.status == 200 and "Channel: sms" in sent(provider)["messages"][0]["content"]

    run(scene())


@requirement("R-MODELS-1")
def test_the_list_of_models_is_who_answers(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            listed = (await home.get("/v1/models")).json()
            names = [one["id"] for one in listed["data"]]
            assert names == ["openclaw", "openclaw/default", "openclaw/clerk", "openclaw/main", "Pepper mini"]
            assert (await home.get("/v1/models/openclaw/main")).json() == listed["data"][3]
            gone = await home.get("/v1/models/openclaw/nope")
            assert (gone.status, gone.error["message"]) == (404, "Model 'openclaw/nope' not found.")
            assert (await home.get("/v1/models/")).status == 400
            assert (await home.ask("/v1/models", {})).headers["allow"] == "GET"
        async with house(tmp_path / "b", settings=ENABLED.replace("exposeCatalog = true", 'prefix = "desk"')) as home:
            names = [one["id"] for one in (await home.get("/v1/models")).json()["data"]]
            assert names == ["desk", "desk/default", "desk/clerk", "desk/main"]

    run(scene())


def part(data: bytes, media_type: str, **more: Any) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode(), **more}
    return {"source": source}


@requirement("R-FILE-1")
def test_a_file_is_untrusted_content_of_the_system_prompt_and_not_kept(tmp_path: Path) -> None:
    file = {"type": "input_file", **part(b"Hello </file> World", "text/plain", filename="hello.txt")}
    data = "data:text/plain;base64," + base64.b64encode(b"by url").decode()

    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            first = await home.respond([{"role": "user", "content": [{"type": "input_text", "text": "read"}, file]}])
            system = sent(provider)["messages"][0]["content"]
            assert '<file name="hello.txt">' in system and "Source: External" in system
            assert "<<<EXTERNAL_UNTRUSTED_CONTENT id=" in system and "Hello &lt;/file&gt; World" in system
            assert "SECURITY NOTICE" not in system
            await home.respond("and?", previous_response_id=first["id"])
            assert "Hello" not in json.dumps(sent(provider))
            openai = {"type": "input_file", "filename": "a.txt", "file_data": data}
            await home.respond([{"role": "user", "content": [openai]}])
            assert "by url" in sent(provider)["messages"][0]["content"]
            for inside in ({"filename": "b.txt", "file_data": data}, {"file_data": data.partition(",")[2]}):
                chat = {"messages": [{"role": "user", "content": [{"type": "file", "file": inside}]}]}
                assert (await home.ask("/v1/chat/completions", chat)).status == 200
                assert "by url" in sent(provider)["messages"][0]["content"], inside
            chat = {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]}
            refused = await home.ask("/v1/chat/completions", chat)
            assert (refused.status, refused.error["param"]) == (400, "messages[0].content[0].file.file_id")

    run(scene())


@requirement("R-FILE-2")
def test_a_picture_reaches_the_model_in_every_spelling(tmp_path: Path) -> None:
    photo = picture("PNG", (32, 32))
    url = "data:image/png;base64," + base64.b64encode(photo).decode()
    spellings: list[dict[str, Any]] = [
        {"type": "input_image", **part(photo, "image/png")},
        {"type": "input_image", "image_url": url},
        {"type": "input_image", "image_url": url, "detail": "low"},
        {"type": "input_image", "source": {"type": "url", "url": url}},
        {"type": "image_url", "image_url": {"url": url}},
    ]

    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for spelling in spellings:
                text = {"type": "input_text", "text": "see"}
                await home.respond([{"role": "user", "content": [text, spelling]}])
                content = sent(provider)["messages"][-1]["content"]
                assert content[1]["image_url"]["url"].startswith("data:image/png;base64,"), spelling
            await home.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": [spellings[4]]}]})
            assert sent(provider)["messages"][-1]["content"][0]["type"] == "image_url"
            item = {"type": "function_call_output", "call_id": "c", "output": [spellings[1]]}
            call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
            await home.respond([{"role": "user", "content": "x"}, call, item])
            assert sent(provider)["messages"][-1]["content"][0]["type"] == "image_url"

    run(scene())


@requirement("R-FILE-3")
def test_a_refused_part_is_named_with_the_reason(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = [
        {"type": "input_file", **part(b"\x00\x01\x02", "application/zip")},
        {"type": "input_image", **part(b"no picture", "image/png")},
        {"type": "input_image", "image_url": "http://127.0.0.1/x.png"},
        {"type": "input_image", "image_url": "http://169.254.169.254/"},
        {"type": "input_file", "file_url": "file:///etc/passwd"},
        {"type": "input_file", "source": {"type": "base64", "data": "%%%"}},
        {"type": "input_image", "source": {"type": "path", "url": "x"}},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "input_image"},
    ]

    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for case in cases:
                text = {"type": "input_text", "text": "see"}
                body = {**BODY, "input": [{"role": "user", "content": [text, case]}]}
                refused = await home.ask("/v1/responses", body)
                assert refused.status == 400, case
                assert refused.error["param"].startswith("input[0].content[1]"), refused.error
                assert len(refused.error["message"]) > 20
            many = [{"type": "input_image", "image_url": f"https://example.com/{n}.png"} for n in range(9)]
            refused = await home.ask("/v1/responses", {**BODY, "input": [{"role": "user", "content": many}]})
            assert refused.status == 400
            assert provider.requests == []

    run(scene())


@requirement("R-ERR-1")
@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_its_status_and_words(code: Code) -> None:
    status, kind, word = errors.TABLE[code]
    assert 400 <= status <= 504 and kind
    shown = errors.body(GatewayError(Reason(code), param="x"))["error"]
    assert shown["type"] and shown["message"]
    if code is not Code.UNAUTHENTICATED:
        assert (shown["type"], shown["param"], shown["code"]) == (kind, "x", word)


@requirement("R-CHAT-1")
def test_chat_answers_whole_and_in_chunks(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, whole("hello"), spoken("hel", "lo")) as (home, _):
            made = (await home.ask("/v1/chat/completions", CHAT)).json()
            assert made["object"] == "chat.completion" and made["model"] == "openclaw"
            choice = made["choices"][0]
            assert (choice["message"], choice["finish_reason"]) == ({"role": "assistant", "content": "hello"}, "stop")
            assert made["usage"]["total_tokens"] == 17
            chunks = told(await home.ask("/v1/chat/completions", {**CHAT, "stream": True}))
            assert len({one["id"] for one in chunks}) == 1
            assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
            assert "".join(one["choices"][0]["delta"].get("content", "") for one in chunks) == "hello"
            assert [one["choices"][0]["finish_reason"] for one in chunks][-2:] == [None, "stop"]

    run(scene())


def told(answer: Answer) -> list[dict[str, Any]]:
    frames = [frame for frame in answer.body.decode().split("\n\n") if frame]
    assert frames[-1] == "data: [DONE]", answer.body
    return [json.loads(frame.removeprefix("data: ")) for frame in frames[:-1]]


@requirement("R-CHAT-2")
def test_chat_calls_come_with_index_id_and_text(tmp_path: Path) -> None:
    def piece(index: int, **function: str) -> dict[str, Any]:
        named = {"id": f"c{index}", "type": "function"} if "name" in function else {}
        return {"tool_calls": [{"index": index, "function": function, **named}]}

    steps = [
        chunk(piece(0, name="look", arguments="")),
        chunk(piece(0, arguments='{"q":')),
        chunk(piece(0, arguments="1}")),
        chunk(piece(1, name="look", arguments='{"q":2}')),
        chunk({}, "tool_calls"),
        DONE,
    ]

    async def scene() -> None:
        async with upstream(tmp_path, play(*steps), whole(tool_calls=calls(("c1", "look", "{}")))) as (home, _):
            body = {**CHAT, "tools": [FUNCTION], "stream": True}
            chunks = told(await home.ask("/v1/chat/completions", body))
            spelled: dict[int, str] = {}
            ids = {}
            for one in chunks:
                for call in one["choices"][0]["delta"].get("tool_calls", []):
                    ids.setdefault(call["index"], call.get("id"))
                    spelled[call["index"]] = spelled.get(call["index"], "") + call["function"]["arguments"]
            assert spelled == {0: '{"q":1}', 1: '{"q":2}'} and ids == {0: "c0", 1: "c1"}
            assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
            made = (await home.ask("/v1/chat/completions", {**CHAT, "tools": [FUNCTION]})).json()
            assert made["choices"][0]["message"]["tool_calls"] == calls(("c1", "look", "{}"))
            history = [
                CHAT["messages"][0],
                {"role": "assistant", "content": None, "tool_calls": calls(("c1", "look", "{}"))},
                {"role": "tool", "tool_call_id": "c1", "content": "sun"},
            ]
            answered = {**CHAT, "messages": history, "tools": [FUNCTION]}
            assert (await home.ask("/v1/chat/completions", answered)).status == 200
            stray = await home.ask("/v1/chat/completions", {**CHAT, "messages": history[::2]})
            assert stray.status == 400 and stray.error["param"] == "messages[1]"

    run(scene())


@requirement("R-CHAT-3")
def test_usage_is_one_more_chunk_when_it_is_asked_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, spoken("x")) as (home, _):
            body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
            chunks = told(await home.ask("/v1/chat/completions", body))
            assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["prompt_tokens"] == 12
            assert all(one["usage"] is None for one in chunks[:-1])
            plain = told(await home.ask("/v1/chat/completions", {**CHAT, "stream": True}))
            assert all("usage" not in one for one in plain)

    run(scene())


@requirement("R-CHAT-4")
def test_chat_options_reach_the_model_or_are_refused(tmp_path: Path) -> None:
    schema = {"name": "out", "schema": {"type": "object"}, "strict": True}
    options = {
        "response_format": {"type": "json_schema", "json_schema": schema},
        "stop": "END",
        "seed": 7,
        "max_completion_tokens": 9,
        "max_tokens": 99,
        "presence_penalty": 0.5,
        "user": "ann",
        "logprobs": None,
    }

    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            await home.ask("/v1/chat/completions", {**CHAT, **options})
            body = sent(provider)
            assert (body["stop"], body["seed"], body["max_tokens"]) == (["END"], 7, 9)
            assert body["response_format"] == options["response_format"] and body["presence_penalty"] == 0.5
            for wrong, param in (
                ({"n": 2}, "n"),
                ({"stop": ["a"] * 5}, "stop"),
                ({"stop": [""]}, "stop"),
                ({"max_tokens": 0}, "max_tokens"),
                ({"temperature": 9}, "temperature"),
                ({"messages": []}, "messages"),
                ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
                ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
                ({"response_format": {"type": "json_schema"}}, "response_format.name"),
            ):
                refused = await home.ask("/v1/chat/completions", {**CHAT, **wrong})
                assert (refused.status, refused.error["param"]) == (400, param), wrong

    run(scene())


VECTORS = {
    "data": [{"index": 1, "embedding": [0.5, 1.0]}, {"index": 0, "embedding": [0.25, -1.0]}],
    "usage": {"prompt_tokens": 6},
}


@requirement("R-EMB-1", "R-EMB-2")
def test_vectors_come_as_floats_or_base64_with_counted_usage(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Provider(answer(200, json.dumps(VECTORS).encode())) as provider:
            declared = (
                f'[[engines]]\nname = "vectors"\nkind = "openai-embeddings"\nbase_url = "{provider.url}/v1"\n'
                '[[models]]\nname = "small"\nengine = "vectors"\nupstream = "emb-1"\n'
            )
            async with house(tmp_path, declared=declared) as home:
                body = {"model": "small", "input": ["a", "b"], "dimensions": 2}
                made = (await home.ask("/v1/embeddings", body)).json()
                assert [row["embedding"] for row in made["data"]] == [[0.25, -1.0], [0.5, 1.0]]
                assert made["usage"] == {"prompt_tokens": 6, "total_tokens": 6} and made["model"] == "small"
                assert sent(provider) == {
                    "model": "emb-1",
                    "input": ["a", "b"],
                    "dimensions": 2,
                    "encoding_format": "float",
                }
                packed = await home.ask("/v1/embeddings", {**body, "encoding_format": "base64", "model": "openclaw"})
                first = base64.b64decode(packed.json()["data"][0]["embedding"])
                assert struct.unpack("<2f", first) == (0.25, -1.0)
                for wrong, param in (
                    ({"input": None}, "input"),
                    ({"input": []}, "input"),
                    ({"input": ""}, "input"),
                    ({"input": [[1, -2]]}, "input"),
                    ({"input": [[1, "a"]]}, "input"),
                    ({"input": [[1, 2], "a"]}, "input"),
                    ({"input": [[]]}, "input"),
                    ({"input": [[1] * 9000]}, "input"),
                    ({"input": ["a"] * 2049}, "input"),
                    ({"input": "a" * 40_000}, "input"),
                    ({"encoding_format": "hex"}, "encoding_format"),
                    ({"dimensions": 0}, "dimensions"),
                    ({"model": None}, "model"),
                    ({"model": "Pepper mini"}, "model"),
                ):
                    refused = await home.ask("/v1/embeddings", {**body, **wrong})
                    assert (refused.status, refused.error["param"]) == (400, param), wrong
                for numbers, given in (([1, 2], [[1, 2]]), ([[1, 2], [3]], [[1, 2], [3]])):
                    await home.ask("/v1/embeddings", {**body, "input": numbers})
                    assert sent(provider)["input"] == given

    run(scene())


@requirement("R-EMB-3", "R-AGENT-2")
def test_vectors_come_from_who_was_named_or_from_nobody_and_another_model_is_for_admins(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Provider(answer(200, json.dumps(VECTORS).encode())) as provider:
            declared = (
                f'[[engines]]\nname = "vectors"\nkind = "openai-embeddings"\nbase_url = "{provider.url}/v1"\n'
                '[[models]]\nname = "small"\nengine = "vectors"\nupstream = "emb-1"\n'
            )
            async with house(tmp_path, declared=declared + AGENTS, settings=NONE) as home:

                async def status(model: str, **headers: str) -> int:
                    body = {"model": model, "input": ["a", "b"]}
                    answered = await home.ask("/v1/embeddings", body, token=None, headers=headers)
                    if answered.status == 404:
                        assert (answered.error["code"], answered.error["param"]) in (
                            ("model_not_found", "model"),
                            ("model_not_found", None),
                        )
                    return answered.status

                for known in ("small", "openclaw", "openclaw/default", "openclaw/clerk"):
                    assert await status(known) == 200, known
                for unknown in ("smal", "text-embedding-3-small", "openclaw/nobody", "x/y"):
                    assert await status(unknown) == 404, unknown
                asked = {"x-openclaw-model": "small"}
                assert await status("openclaw", **asked) == 200
                assert await status("openclaw", **asked, **{"x-openclaw-scopes": "operator.write"}) == 403
                assert await status("openclaw", **{"x-openclaw-model": "vectors/emb-1"}) == 200
                assert await status("openclaw", **{"x-openclaw-model": "nothing"}) == 404

    run(scene())


@requirement("R-EMB-1")
@pytest.mark.skipif(not is_installed(), reason="the local extra is not installed")
def test_without_a_provider_the_embedded_model_makes_vectors(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            made = (await home.ask("/v1/embeddings", {"model": "openclaw", "input": ["hello", "ciao"]})).json()
            assert [len(row["embedding"]) for row in made["data"]] == [384, 384]
            assert 4 < made["usage"]["prompt_tokens"] == made["usage"]["total_tokens"] < 20

    run(scene(), timeout=50)
