"""The door: which address is whose, and what each of them takes, answers and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from crocevia.asgi.document import About, Route, describing, document, endpoint
from crocevia.asgi.types import Application
from crocevia.doors.pepper import wire, wire_classic, wire_reports
from crocevia.doors.pepper.agent import PING_SECONDS, AgentEndpoint
from crocevia.doors.pepper.capabilities import CapabilitiesEndpoint
from crocevia.doors.pepper.classic import ClassicEndpoint
from crocevia.doors.pepper.kit import KitEndpoint
from crocevia.doors.pepper.verify import VerifyEndpoint
from crocevia.runtime.classic import Classic
from crocevia.runtime.gateway import Gateway

DOCUMENT: Final = "/pepper/openapi.json"
PAGE: Final = "/pepper/docs"

_ABOUT: Final = About(
    title="Crocevia: Pepper Agent API",
    about="One question to one model: the application owns the tools and the history. The project goes with its key.",
    failure=wire.Refusal,
    security={"key": {"type": "apiKey", "in": "header", "name": "X-Pepper-Key"}},
)
_CALL: Final = (400, 401, 403, 413, 422, 429, 502, 503)
_PROJECT: Final[dict[str, tuple[dict[str, Any], bool]]] = {"X-Pepper-Project": ({"type": "string"}, False)}
ADDRESSES: Final = (
    Route(
        id="agent",
        method="POST",
        path="/agent",
        aliases=("/agent.php",),
        about="One step of an agent: an answer, or calls of the application's tools; with `stream` as events.",
        headers=_PROJECT,
        body=wire.Request,
        result=wire.Reply,
        also=("text/event-stream",),
        refuses=_CALL,
    ),
    Route(
        id="verifica",
        method="POST",
        path="/agent/verifica",
        aliases=("/agent/verifica.php",),
        about="What would become of this request, without asking any model.",
        headers=_PROJECT,
        body=wire.Request,
        result=wire_reports.Report,
        refuses=(400, 401, 403, 413, 503),
    ),
    Route(
        id="capacita",
        method="GET",
        path="/capacita.php",
        aliases=("/capacita",),
        about="What the project's model can do, and which limits the project has.",
        headers={"X-Pepper-Project": ({"type": "string"}, True)},
        result=wire_reports.Capabilities,
        refuses=(401, 503),
    ),
    Route(
        id="classica",
        method="POST",
        path="/api.php",
        aliases=("/api",),
        about="The classic call: a content by a recipe, with conversations that the server remembers.",
        headers=_PROJECT,
        body=wire_classic.Richiesta,
        result=wire_classic.Risposta,
        refuses=_CALL,
    ),
    Route(
        id="dimentica",
        method="DELETE",
        path="/api.php",
        aliases=("/api",),
        about="Forget a conversation of the classic call. The answer says whether there was one of that name.",
        headers=_PROJECT,
        query=wire_classic.Cancellazione,
        result=wire_classic.Cancellata,
        refuses=(400, 401, 503),
    ),
    Route(
        id="kit",
        method="GET",
        path="/kit.php",
        about="The chat kit's version, the name of a project's model, or one of the kit's files.",
        query=wire_reports.KitQuery,
        result=dict[str, Any],
        also=("text/javascript", "text/css"),
        refuses=(400, 404),
        public=True,
    ),
    *describing(DOCUMENT, PAGE),
)


class PepperDoor:
    """Every endpoint. model_of: the model's name of a project by name, None if there is no such project.

    ping_seconds: of silence, after which a comment keeps a stream alive. max_body: bytes.
    """

    def __init__(
        self,
        gateway: Gateway,
        classic: Classic,
        model_of: Callable[[str], str | None],
        *,
        ping_seconds: float = PING_SECONDS,
        max_body: int = wire.MAX_BODY,
    ) -> None:
        described = endpoint(content, DOCUMENT)
        by_classic = ClassicEndpoint(classic, max_body=max_body)
        self._endpoints: dict[str, Application] = {
            "agent": AgentEndpoint(gateway, ping_seconds=ping_seconds, max_body=max_body),
            "verifica": VerifyEndpoint(gateway, max_body=max_body),
            "capacita": CapabilitiesEndpoint(gateway, max_body=max_body),
            "classica": by_classic,
            "dimentica": by_classic,
            "kit": KitEndpoint(model_of),
            "getDocument": described,
            "readDocument": described,
        }

    def routes(self) -> dict[str, Application]:
        """By address."""
        return {address: self._endpoints[row.id] for row in ADDRESSES for address in row.addresses}


def content() -> dict[str, Any]:
    """The OpenAPI document."""
    return document(_ABOUT, ADDRESSES)
