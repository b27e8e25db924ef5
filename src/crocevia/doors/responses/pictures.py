"""Pictures of a conversation: taken in once, kept with the answers as data, and shown as long as there is room."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from crocevia.core.messages import FilePart
from crocevia.doors.responses import items, wire
from crocevia.doors.responses.items import Placed
from crocevia.runtime.gateway import Attachment, Intake, Prepared

MOST: Final = 32  # pictures of earlier messages that a model is shown
MOST_BYTES: Final = 16 * 1024 * 1024
NOT_SHOWN: Final = "[A picture of an earlier message is not shown here.]"


async def recall(placed: Sequence[Placed], intake: Intake, *, sees: bool) -> tuple[list[Placed], dict[str, Prepared]]:
    """Earlier items with a note in the place of pictures that cannot be shown, and the others by their path.

    The newest are shown first. sees: the model can see pictures.
    """
    known = [one for place in reversed(placed) if place.kept for one in _pictures(place)]
    if not known:
        return list(placed), {}
    shown: dict[str, Prepared] = {}
    room = MOST_BYTES
    for picture in await intake.recall(known[:MOST]) if sees else ():
        size = sum(len(part.data) for part in picture.parts if isinstance(part, FilePart)) if picture else 0
        if picture is not None and size <= room:
            room -= size
            shown[picture.param] = picture
    return [_noted(place, shown) if place.kept else place for place in placed], shown


async def to_keep(fresh: Sequence[Placed], prepared: Mapping[str, Prepared]) -> list[wire.Item]:
    """The items of a request as they are kept: its pictures as they were taken in, wherever they came from."""
    if not any(one.kind == "image" for one in prepared.values()):
        return [place.item for place in fresh]
    return await asyncio.to_thread(lambda: [_with_data(place, prepared) for place in fresh])


def _pictures(place: Placed) -> Iterable[Attachment]:
    name, content = _content(place.item)
    for index, part in enumerate(content):
        if part.type in items.PICTURES:
            found = items.source(part, f"{place.path}.{name}[{index}]")
            if found is not None:
                yield found


def _content(item: wire.Item) -> tuple[str, list[wire.Part]]:
    name = "output" if item.type in items.OUTPUTS else "content"
    content = getattr(item, name)
    return name, content if isinstance(content, list) else []


def _changed(place: Placed, change: Mapping[int, wire.Part]) -> wire.Item:
    if not change:
        return place.item
    name, content = _content(place.item)
    return msgspec.structs.replace(place.item, **{name: [change.get(at, part) for at, part in enumerate(content)]})


def _noted(place: Placed, shown: Mapping[str, Prepared]) -> Placed:
    name, content = _content(place.item)
    note = wire.Part(type="input_text", text=NOT_SHOWN)
    change = {
        at: note
        for at, part in enumerate(content)
        if part.type in items.PICTURES and f"{place.path}.{name}[{at}]" not in shown
    }
    return place._replace(item=_changed(place, change))


def _with_data(place: Placed, prepared: Mapping[str, Prepared]) -> wire.Item:
    name, content = _content(place.item)
    change: dict[int, wire.Part] = {}
    for at, part in enumerate(content):
        taken = prepared.get(f"{place.path}.{name}[{at}]") if part.type in items.PICTURES else None
        picture = taken.parts[0] if taken is not None and taken.parts else None
        if isinstance(picture, FilePart):
            address = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode()}"
            change[at] = wire.Part(type="input_image", image_url=address, detail=part.detail)
    return _changed(place, change)
