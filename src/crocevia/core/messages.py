"""Messages and tools, the same for every door and every engine.

Pure values: ids, parents and storage keys are somebody else's concern, and two messages with identical
content are equal. JSON that must keep its exact spelling (tool arguments, schemas, a provider's own blocks)
stays `msgspec.Raw` from the wire in to the wire out.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Raw

TOOL_NAME_LENGTH: Final = 256
"""Characters. Engines are told shorter and plainer ones where they need them."""


class TextPart(msgspec.Struct, frozen=True, kw_only=True, tag="text", tag_field="type"):
    """Plain text."""

    text: str


class FilePart(msgspec.Struct, frozen=True, kw_only=True, tag="file", tag_field="type"):
    """A document or a photo whose bytes are here and whose type was sniffed from them, never taken on trust."""

    kind: Literal["document", "image"]
    media_type: str
    data: bytes
    name: str
    cite: bool = False
    """The answer should say which passages it rests on, where the engine can."""


Part: TypeAlias = TextPart | FilePart


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the model asked for. `arguments` is always a complete JSON object, spelled as it came."""

    id: str
    name: str
    arguments: Raw


class ToolExample(msgspec.Struct, frozen=True, kw_only=True):
    """An utterance and the arguments it should lead to; small models learn a tool from these."""

    utterance: str
    arguments: Raw


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function the model may call. `parameters` is a JSON Schema whose root is an object."""

    name: str
    description: str
    parameters: Raw
    examples: tuple[ToolExample, ...] = ()


class ProviderBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """An answer piece by piece exactly as an engine of `dialect` gave it; `blocks` is a JSON array."""

    dialect: str
    blocks: Raw
    thinks: bool = False
    """Some piece is reasoning."""
    plain: bool = False
    """Nothing but text and tool calls, which any engine can say."""


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, tag="user", tag_field="role"):
    """What a user said or attached."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its text parts joined, files left out."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


class AssistantMessage(msgspec.Struct, frozen=True, kw_only=True, tag="assistant", tag_field="role"):
    """`provider_blocks`, when present and of the engine's own dialect, is sent instead of `text` and `tool_calls`."""

    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    provider_blocks: ProviderBlocks | None = msgspec.field(name="opaque", default=None)  # as journals spell it


class ToolMessage(msgspec.Struct, frozen=True, kw_only=True, tag="tool", tag_field="role"):
    """The result of one tool call, as text."""

    call_id: str
    content: str
    is_error: bool = False
    """The tool failed, which is a value for the model."""


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


def user(text: str) -> UserMessage:
    """A user message of one text part."""
    return UserMessage(parts=(TextPart(text=text),))
