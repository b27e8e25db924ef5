"""The catalogue of models."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Literal

import msgspec

from crocevia.asgi.http import Operation, Response
from crocevia.core.catalogue import Prices
from crocevia.core.costs import plain
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import moment_or_none
from crocevia.runtime.control import models as control

_PER_TOKEN = Decimal(1_000_000)


class LlmModelEntry(msgspec.Struct, frozen=True, kw_only=True, tag="llm", tag_field="type"):
    """owned_by: the engine that answers. pricing: USD per token, decimals as text; informational."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    deprecated: bool
    sunset_at: datetime | None
    display_name: str
    description: str | None
    context_length: int | None
    pricing: dict[str, str] | None


class TeamModelEntry(msgspec.Struct, frozen=True, kw_only=True, tag="team", tag_field="type"):
    id: str
    object: Literal["model"] = "model"
    owned_by: Literal["envai"] = "envai"
    team_id: str
    created: int
    deprecated: bool = False
    sunset_at: None = None


class ModelDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Empty when there is no model at all."""

    orchestrator: str
    subagent: str


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: list[LlmModelEntry | TeamModelEntry]
    defaults: ModelDefaults


def model_list(choice: control.Choice) -> ModelList:
    """As the wire shows it."""
    default = choice.default or ""
    return ModelList(
        data=[
            *(_model(spec, created) for spec, created in choice.models),
            *(TeamModelEntry(id=team, team_id=team, created=int(born)) for team, born in choice.teams),
        ],
        defaults=ModelDefaults(orchestrator=default, subagent=default),
    )


def _model(spec: control.ModelSpec, created: float) -> LlmModelEntry:
    return LlmModelEntry(
        id=spec.name,
        created=int(created),
        owned_by=spec.engine,
        deprecated=spec.deprecated,
        sunset_at=moment_or_none(control.sunset(spec)),
        display_name=spec.name,
        description=spec.novelty,
        context_length=spec.context_window,
        pricing=None if spec.prices is None else _pricing(spec.prices),
    )


@lru_cache(maxsize=1024)
def _pricing(prices: Prices) -> dict[str, str]:
    named = {
        "prompt": prices.input,
        "completion": prices.output,
        "input_cache_read": prices.cache_read,
        "input_cache_write": prices.cache_write,
    }
    return {name: plain(Decimal(repr(price)) / _PER_TOKEN) for name, price in named.items() if price is not None}


async def listed(request: Request) -> Response:
    return Response(200, model_list(await control.choice(request.caller.control, request.caller.user_id)))


OPERATIONS = (
    Operation(
        "listModels",
        "GET",
        "/models",
        listed,
        "The models that agents can choose, the caller's teams, and the defaults by role.",
        result=ModelList,
    ),
)
