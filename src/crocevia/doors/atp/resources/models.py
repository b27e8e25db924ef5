"""The catalogue of models."""

from __future__ import annotations

from crocevia.doors.atp.operation import Answer, Operation, Request
from crocevia.doors.atp.wire import models as wire
from crocevia.runtime.control import models


async def listed(request: Request) -> Answer:
    return Answer(200, wire.model_list(await models.choice(request.control, request.user_id)))


OPERATIONS = (
    Operation(
        "listModels",
        "GET",
        "/models",
        listed,
        "The models that agents can choose, the caller's teams, and the defaults by role.",
        result=wire.ModelList,
        bare=True,
    ),
)
