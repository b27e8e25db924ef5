"""The dialects under test and how to play their transcripts to them without a socket."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crocevia.core.answers import Answer, fold
from crocevia.core.calls import ModelRequest
from crocevia.core.events import ModelEvent
from crocevia.engines.anthropic.messages import AnthropicDialect
from crocevia.engines.openai.chat import ChatDialect
from crocevia.engines.openai.responses import ResponsesDialect
from crocevia.engines.upstream.driver import Dialect
from crocevia.engines.upstream.reading import AnswerReader
from crocevia.runtime.fitting import fit

TRANSCRIPTS = Path(__file__).parent / "transcripts"
BASES = {"anthropic": "", "openai-chat": "/v1", "openai-responses": "/v1"}
KEY = "sk-canary-0123456789"


def dialect(kind: str, base_url: str = "http://127.0.0.1:1", key: str | None = KEY) -> Dialect:
    base = base_url + BASES[kind]
    if kind == "anthropic":
        return AnthropicDialect(base, key)
    return ChatDialect(base, key) if kind == "openai-chat" else ResponsesDialect(base, key)


def sent(dialect: Dialect, request: ModelRequest) -> bytes:
    """The body that the provider gets for a request, which meets the provider's needs first, as every request does."""
    return dialect.encode(fit(request, dialect.abilities(request.model).needs).request)


def transcript(kind: str, name: str, form: str = "sse") -> bytes:
    return (TRANSCRIPTS / kind / f"{name}.{form}").read_bytes()


def names(form: str) -> list[tuple[str, str]]:
    return sorted((path.parent.name, path.stem) for path in TRANSCRIPTS.glob(f"*/*.{form}"))


def streamed(kind: str, chunks: Iterable[bytes]) -> list[ModelEvent]:
    """The events of a stream that ends cleanly after these reads. Raises GatewayError."""
    return read(kind, chunks, stream=True)


def whole(kind: str, body: bytes) -> list[ModelEvent]:
    return read(kind, [body], stream=False)


def read(kind: str, chunks: Iterable[bytes], *, stream: bool, think_tags: bool = False) -> list[ModelEvent]:
    """The events of an answer whose bytes end cleanly after these reads. Raises GatewayError."""
    reader, out = AnswerReader(dialect(kind).decoder(), stream=stream, think_tags=think_tags), list[ModelEvent]()
    for chunk in chunks:
        if not reader.decoder.stopped:
            reader.feed(chunk, out)
    if not reader.decoder.stopped:
        reader.end(out)
    return out


def answer(kind: str, name: str) -> Answer:
    return fold(streamed(kind, [transcript(kind, name)]))
