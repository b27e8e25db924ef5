"""A call: one request to one model, and what an engine promises to do with it."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec import Raw

from crocevia.core.events import ModelEvent
from crocevia.core.messages import Message, Tool
from crocevia.core.needs import EngineNeeds

ReasoningMode = Literal["off", "on", "always"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


ANY_OBJECT: Final = Raw(b"null")  # a field `Raw | None` would decode nothing but null


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a tool may or must be called, and, with `required`, which one (`name` None: any of those offered)."""

    mode: Literal["auto", "none", "required"] = "auto"
    name: str | None = None


class AnswerFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the answer must be JSON."""

    param: str
    """Where the caller asked for it, for an engine that has to refuse."""
    name: str = "answer"
    schema: Raw = ANY_OBJECT
    strict: bool = False
    description: str | None = None

    @property
    def any_object(self) -> bool:
        """No schema was given: any JSON object will do."""
        return bytes(self.schema) == bytes(ANY_OBJECT)


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the next token is chosen. None: the provider's own way. An engine leaves out what its model rejects."""

    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None


class Reasoning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much a model that reasons should, and how it should tell of it. None: as its operator declared."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class GenerationOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an answer is to be made, whatever it answers: the same value from a caller's request to an engine's."""

    max_tokens: int = 4096
    """The output limit."""
    stream: bool = True
    """The caller wants pieces; otherwise an engine may ask its provider for one body and yield it as one batch."""
    session: str | None = None
    """A stable, opaque name of the conversation, for providers that route caches by it."""
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    """False: one call at most."""
    format: AnswerFormat | None = None
    """None: plain text."""
    sampling: Sampling = Sampling()
    reasoning: Reasoning = Reasoning()


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an engine needs for one call."""

    model: str
    """The provider's own name for it."""
    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    reasoning: ReasoningMode = "off"
    """What the operator declared of the model."""
    think_tags: bool = False
    """It thinks aloud: `<think>…</think>` before its answer is its reasoning."""
    options: GenerationOptions = GenerationOptions()


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine does with one of its models, and what it needs for that."""

    without_reasoning: bool = True
    """It goes on with a conversation without reasoning, also in the middle of a tool round."""
    documents: bool = False
    """It is given whole PDFs, else their text and pictures of their pages."""
    images: bool = False
    """It is given pictures."""
    needs: EngineNeeds = EngineNeeds()


class Batches(Protocol):
    """Batches of events to be iterated over, once; an asynchronous generator is one. `aclose` ends it early."""

    def __aiter__(self) -> Batches: ...
    async def __anext__(self) -> list[ModelEvent]: ...
    async def aclose(self) -> None: ...


class Engine(Protocol):
    """A connection to a provider.

    `dialect` names the form of its provider blocks (`anthropic`, `openai-responses`, or `plain` for none).
    """

    name: str
    dialect: str

    def call(self, request: ModelRequest, *, deadline: float) -> Batches:
        """Yield batches of events until `Stopped`, or raise GatewayError.

        deadline: `loop.time()` at which the call must be over. Closing it (or cancelling its
        task) closes the upstream at once, before the first byte too. Retries happen inside, before the
        first batch only.
        """
        ...

    def abilities(self, model: str) -> Abilities:
        """What the provider's `model` can do here."""
        ...

    async def probe(self) -> None:
        """Return if the provider can be reached with these settings; raise GatewayError otherwise. Costs no tokens."""
        ...

    async def close(self) -> None:
        """Give back sockets and child processes. Idempotent."""
        ...


Rejected: TypeAlias = dict[str, dict[str, float]]
"""By model and name of a parameter that it turned out not to take: until when (`time.monotonic`) that is believed."""


@runtime_checkable
class Learning(Protocol):
    """An engine that remembers what its provider's models did not take."""

    rejected: Rejected
