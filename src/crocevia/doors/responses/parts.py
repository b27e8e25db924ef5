"""The parts of a content: text as it is, files and pictures as sources for the intake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import FilePart, Part, TextPart
from crocevia.doors.responses import wire
from crocevia.runtime.gateway import Attachment, Prepared

TEXTS: Final = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_PICTURES: Final = frozenset({"input_image", "image_url"})
_ONLY_FILES: Final = "User sent file(s) with no text."  # their text is in the system prompt, for this request alone
_FILES: Final = frozenset({"input_file", "file"})


def text_of(part: wire.Part, path: str) -> str | None:
    """The text of a part of words; None for a file or picture. Raises GatewayError for any other kind."""
    if part.type in TEXTS:
        if part.text is None:
            raise GatewayError(Reason.FIELD_NEEDED, param=f"{path}.text", field=f"{path}.text")
        return part.text
    if part.type == "refusal":
        return part.refusal or ""
    if part.type in _PICTURES or part.type in _FILES:
        return None
    raise GatewayError(Reason.PART_UNKNOWN, param=f"{path}.type", path=f"{path}.type")


def joined(content: str | list[wire.Part] | None, path: str) -> str:
    """A content that is nothing but text. Raises GatewayError where it is more."""
    if content is None or isinstance(content, str):
        return content or ""
    found = []
    for index, part in enumerate(content):
        text = text_of(part, f"{path}[{index}]")
        if text is None:
            raise GatewayError(Reason.PART_UNKNOWN, param=f"{path}[{index}].type", path=f"{path}[{index}].type")
        found.append(text)
    return "".join(found)


def source(part: wire.Part, path: str) -> Attachment | None:
    """Where the bytes of a file or picture are; None for text."""
    if part.type in _PICTURES:
        return _picture(part, path)
    return _file(part, path) if part.type in _FILES else None


def _picture(part: wire.Part, path: str) -> Attachment:
    if part.source is not None:
        return _spelled(part.source, path, picture=True)
    address = part.image_url.url if isinstance(part.image_url, wire.ImageAddress) else part.image_url
    if not address:
        raise GatewayError(Reason.FIELD_NEEDED, param=f"{path}.image_url", field=f"{path}.image_url")
    return Attachment(param=path, url=address, kind="image")


def _file(part: wire.Part, path: str) -> Attachment:
    if part.source is not None:
        return _spelled(part.source, path, picture=False)
    told, inside = (part, path) if part.file is None else (part.file, f"{path}.file")
    if told.file_id is not None:
        raise GatewayError(Reason.FILE_ID_UNKNOWN, param=f"{inside}.file_id", path=f"{inside}.file_id")
    name, data = told.filename, told.file_data
    if data is not None and data[:5].lower() != "data:":
        return Attachment(param=path, data=data, kind="document", name=name)
    address = data or told.file_url
    if not address:
        raise GatewayError(Reason.FIELD_NEEDED, param=f"{inside}.file_data", field=f"{inside}.file_data")
    return Attachment(param=path, url=address, kind="document", name=name)


def _spelled(spelled: wire.Source, path: str, *, picture: bool) -> Attachment:
    if spelled.type not in ("url", "base64"):
        raise GatewayError(Reason.PART_UNKNOWN, param=f"{path}.source.type", path=f"{path}.source.type")
    needed = "url" if spelled.type == "url" else "data"
    value = getattr(spelled, needed)
    if not value:
        raise GatewayError(Reason.FIELD_NEEDED, param=f"{path}.source.{needed}", field=f"{path}.source.{needed}")
    return Attachment(
        param=path,
        **{needed: value},
        kind="image" if picture else "document",
        media_type=spelled.media_type,
        name=spelled.filename,
    )


class Placing:
    """Puts what was prepared in where it belongs: documents' text beside the instructions, pictures in the message."""

    def __init__(self, prepared: Mapping[str, Prepared]) -> None:
        self._prepared = prepared
        self.documents: list[str] = []

    def parts(self, content: str | list[wire.Part] | None, path: str) -> tuple[Part, ...]:
        """The parts of a message of the user's."""
        if content is None or isinstance(content, str):
            return (TextPart(text=content),) if content else ()
        found: list[Part] = []
        for index, part in enumerate(content):
            where = f"{path}[{index}]"
            text = text_of(part, where)
            if text is not None:
                found.append(TextPart(text=text))
            elif (prepared := self._prepared.get(where)) is not None:
                found += self._place(prepared)
        if not found and content:
            found.append(TextPart(text=_ONLY_FILES))
        return tuple(found)

    def _place(self, prepared: Prepared) -> list[Part]:
        self.documents += [part.text for part in prepared.parts if isinstance(part, TextPart)]
        return [part for part in prepared.parts if isinstance(part, FilePart)]
