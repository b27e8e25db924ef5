"""The catalogue of models."""

from __future__ import annotations

from crocevia.asgi.http import Operation, Response
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire import models as wire
from crocevia.runtime.control import models


async def listed(request: Request) -> Response:
    return Response(200, wire.model_list(await models.choice(request.caller.control, request.caller.user_id)))


OPERATIONS = (
    Operation(
        "listModels",
        "GET",
        "/models",
        listed,
        "The models that agents can choose, the caller's teams, and the defaults by role.",
        result=wire.ModelList,
    ),
)
