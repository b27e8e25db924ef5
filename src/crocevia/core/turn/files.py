"""Files that a message carries: in the context they are only named; whoever asks a model puts their bytes in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from crocevia.core.messages import FilePart, Message, Part, TextPart, UserMessage

_NAMED: Final = "application/x-crocevia-attachment"


class _Manifest(msgspec.Struct):
    attachment_id: str
    original_name: str


def placeholders(manifests: Sequence[Raw]) -> tuple[FilePart, ...]:
    """What stands in a message for files. Raises msgspec.MsgspecError for what is no manifest."""
    known = [msgspec.json.decode(raw, type=_Manifest) for raw in manifests]
    return tuple(
        FilePart(kind="document", media_type=_NAMED, data=one.attachment_id.encode(), name=one.original_name)
        for one in known
    )


def named(messages: Sequence[Message]) -> list[str]:
    """Ids of the files that these messages name, each once."""
    return list(
        dict.fromkeys(
            part.data.decode()
            for message in messages
            if isinstance(message, UserMessage)
            for part in message.parts
            if isinstance(part, FilePart) and part.media_type == _NAMED
        )
    )


def filled(messages: tuple[Message, ...], parts_of: Callable[[str, str], Sequence[Part]]) -> tuple[Message, ...]:
    """The messages with parts in the place of files. parts_of: from a file's id and name."""
    return tuple(_filled(message, parts_of) for message in messages)


def spoken(file_id: str, name: str) -> tuple[Part, ...]:
    """A file as no more than its name."""
    return (TextPart(text=f"[attached file: {name}]"),)


def _filled(message: Message, parts_of: Callable[[str, str], Sequence[Part]]) -> Message:
    if not isinstance(message, UserMessage) or not any(map(_is_placeholder, message.parts)):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, FilePart) and part.media_type == _NAMED:
            parts += parts_of(part.data.decode(), part.name)
        else:
            parts.append(part)
    return UserMessage(parts=tuple(parts))


def _is_placeholder(part: Part) -> bool:
    return isinstance(part, FilePart) and part.media_type == _NAMED
