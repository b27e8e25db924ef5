"""The wire of Pepper Agent API v1, word for word."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

KEY_HEADER: Final = b"x-pepper-key"
PROJECT_HEADER: Final = b"x-pepper-project"

MAX_BODY: Final = 32 * 1024 * 1024
DEFAULT_MAX_TOKENS: Final = 4096
MIN_MAX_TOKENS: Final = 256
MAX_MAX_TOKENS: Final = 32_000

ENCODE: Final = "agente"  # how the record calls this kind of call


class Testo(msgspec.Struct, frozen=True, tag="testo", tag_field="tipo"):
    testo: str


class Documento(msgspec.Struct, frozen=True, tag="documento", tag_field="tipo"):
    nome: str | None = None
    dati: str | None = None
    url: str | None = None
    tipo_file: str | None = None


class User(msgspec.Struct, frozen=True, tag="user", tag_field="role"):
    content: str | list[Testo | Documento]


class AskedTool(msgspec.Struct, frozen=True):
    id: str
    name: str
    arguments: Raw


class Assistant(msgspec.Struct, frozen=True, tag="assistant", tag_field="role"):
    content: str | None = None
    tool_calls: list[AskedTool] | None = None
    blocchi: list[Raw] | None = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool", tag_field="role"):
    tool_call_id: str
    content: str


class OfferedTool(msgspec.Struct, frozen=True):
    name: str
    description: str | None = None
    parameters: Raw | UnsetType = UNSET


class Request(msgspec.Struct, frozen=True):
    messages: list[User | Assistant | ToolResult]
    system: str | None = None
    tools: list[OfferedTool] | None = None
    stream: bool | None = False
    max_tokens: int | float | None = None
    session_id: str | None = None
    project: str | None = None


class Usage(msgspec.Struct, frozen=True):
    """Null is unknown: a provider that does not count is not a provider that counted zero."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_input_tokens: int | None
    cache_creation_input_tokens: int | None


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What `done` and the JSON answer share. `troncato` appears only when it is true."""

    stop_reason: str
    usage: Usage
    versione: str
    novita: str | None
    blocchi: list[Raw]
    troncato: bool | UnsetType = UNSET


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON answer."""

    stop_reason: str
    content: str | None
    tool_calls: list[AskedTool]
    usage: Usage
    versione: str
    novita: str | None
    blocchi: list[Raw]
    troncato: bool | UnsetType = UNSET


class TextBlock(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """One of our own `blocchi`, for engines that have none."""

    text: str


class ToolBlock(msgspec.Struct, frozen=True, tag="tool_use", tag_field="type"):
    id: str
    name: str
    input: Raw


class Failure(msgspec.Struct, frozen=True):
    """The body of an error is `{"error": Failure}`; the data of an `error` event is `Failure` itself."""

    code: str
    message: str


class Refusal(msgspec.Struct, frozen=True):
    error: Failure
