"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NotRequired, TypedDict

__all__ = [
    "AgentToolParam",
    "CompletionFilters",
    "ContextItemParam",
    "ImageDimensionsParam",
    "ImageGenerationParams",
    "InputImageParam",
    "TeamMemberParam",
]


class AgentToolParam(TypedDict):
    name: str


class TeamMemberParam(TypedDict):
    agent_definition_id: str
    role: NotRequired[str | None]


class InputImageParam(TypedDict):
    type: Literal["url", "base64", "upload_id"]
    payload: str
    reference: NotRequired[str | None]
    mime_type: NotRequired[str | None]


class ImageDimensionsParam(TypedDict):
    width: int
    height: int


class ContextItemParam(TypedDict):
    kind: Literal["compacted", "assistant"]
    turn_id: NotRequired[str | None]
    content: str


class ImageGenerationParams(TypedDict):
    model: str
    prompt: str
    webhook_url: str
    input_images: NotRequired[Sequence[InputImageParam]]
    input_image: NotRequired[InputImageParam]
    mask_image: NotRequired[InputImageParam]
    objects_image: NotRequired[InputImageParam]
    resolution: NotRequired[Literal["0.5k", "1k", "2k", "3k", "4k"]]
    dimensions: NotRequired[ImageDimensionsParam]
    aspect_ratio: NotRequired[
        Literal["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "21:9", "9:21", "as_input_image"]
    ]
    format: NotRequired[Literal["png", "jpeg", "webp", "svg"]]
    quality: NotRequired[int]
    model_settings: NotRequired[Mapping[str, object]]
    providers: NotRequired[Sequence[str]]


class CompletionFilters(TypedDict):
    status: NotRequired[Literal["running", "succeeded", "failed", "canceled"]]
    model_orchestrator: NotRequired[str]
    started_at_from: NotRequired[datetime | str]
    started_at_to: NotRequired[datetime | str]
    per_page: NotRequired[int]
