"""Shapes that every dialect needs: ids, arguments, texts and files as providers spell them."""

from __future__ import annotations

import base64
import uuid

import msgspec
from msgspec import Raw

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import FilePart, ToolMessage
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream import halves


def new_call_id() -> str:
    """For servers that give their calls none."""
    return f"call_{uuid.uuid4().hex[:24]}"


def result_text(message: ToolMessage) -> str:
    """A tool's result where the protocol has no flag for failures."""
    return f"Error: {message.content}" if message.is_error else message.content


def arguments(text: str, tool: str) -> Raw:
    """Complete arguments as they were spelled; blank means none. Raises GatewayError(UPSTREAM_FAILED) otherwise."""
    if not text.strip():
        return Raw(b"{}")
    if not is_object(text):
        text = halves.without(text.encode()).decode()
    if not is_object(text):
        upstream_errors.bad_arguments(tool)
    return Raw(text.encode())


def is_object(text: str) -> bool:
    """Whether `text` is one complete JSON object."""
    try:
        msgspec.json.decode(text, type=dict)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    return True


def data_url(part: FilePart) -> str:
    return f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"


def plain_text(part: FilePart) -> str | None:
    """A text document as text; None for any other kind of file."""
    if part.kind != "document" or not part.media_type.startswith("text/"):
        return None
    text = part.data.decode("utf-8", "replace")
    return f"{part.name}\n\n{text}" if part.name else text


def unsupported(part: FilePart) -> GatewayError:
    return GatewayError(Reason.UNSUPPORTED, what=part.media_type)
