"""How to call this server: each of its doors, with code that carries its address, and the chat kit's switches."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import msgspec

from crocevia.kit import SWITCHES
from crocevia.panel import samples
from crocevia.panel.samples import API_KEY, OPERATOR_TOKEN, PROJECT_KEY, Sample
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView

_QUESTION: Final = '{"model": "openclaw", "input": "Ciao! Chi sei?"}'
_CHAT: Final = '{"model": "openclaw", "messages": [{"role": "user", "content": "Ciao! Chi sei?"}]}'
_RECIPE: Final = '{"encode": "riassunto", "contenuto": "Un testo lungo."}'


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to call."""

    key: str
    """Of its texts."""
    method: str
    path: str
    secret: str | None
    """The environment variable of the samples that holds its secret."""
    samples: list[Sample]


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    default: bool
    text: str


class Context(msgspec.Struct, frozen=True, kw_only=True):
    origin: str
    """This server as its callers write it."""
    project: str
    """The one that the code uses."""
    projects: tuple[str, ...]
    addresses: list[Address]
    switches: list[Switch]


class _Known(NamedTuple):
    """An address, and the code for it, from the origin and a project's name."""

    key: str
    method: str
    path: str
    secret: str | None
    made: Callable[[str, str], list[Sample]]


def _bearer(path: str, body: str) -> Callable[[str, str], list[Sample]]:
    return lambda origin, project: samples.request(origin, path, body, {"Authorization": OPERATOR_TOKEN}, {})


def _of_project(path: str, body: str | None) -> Callable[[str, str], list[Sample]]:
    return lambda origin, project: samples.request(
        origin, path, body, {"X-Pepper-Key": PROJECT_KEY}, {"X-Pepper-Project": project}
    )


KNOWN: Final = (
    _Known("agent", "POST", "/agent", PROJECT_KEY, samples.agent_call),
    _Known("standard", "POST", "/api.php", PROJECT_KEY, _of_project("/api.php", _RECIPE)),
    _Known("abilities", "GET", "/capacita.php", PROJECT_KEY, _of_project("/capacita.php", None)),
    _Known("kit", "GET", "/kit.php", None, samples.kit_page),
    _Known("responses", "POST", "/v1/responses", OPERATOR_TOKEN, _bearer("/v1/responses", _QUESTION)),
    _Known("chat", "POST", "/v1/chat/completions", OPERATOR_TOKEN, _bearer("/v1/chat/completions", _CHAT)),
    _Known(
        "models",
        "GET",
        "/v1/models",
        OPERATOR_TOKEN,
        lambda origin, project: samples.request(origin, "/v1/models", None, {"Authorization": OPERATOR_TOKEN}, {}),
    ),
    _Known(
        "teams",
        "GET",
        "/api/v1/teams",
        API_KEY,
        lambda origin, project: samples.request(origin, "/api/v1/teams", None, {"Authorization": API_KEY}, {}),
    ),
)


async def show(request: PageRequest) -> PageResponse:
    projects = tuple(request.services.catalogue.current.projects)
    project = next((name for name in projects if name == request.query.get("project")), next(iter(projects), "default"))
    addresses = [
        Address(
            key=known.key,
            method=known.method,
            path=known.path,
            secret=known.secret,
            samples=known.made(request.origin, project),
        )
        for known in KNOWN
        if _answers(known.path, request.services.paths)
    ]
    context = Context(
        origin=request.origin,
        project=project,
        projects=projects,
        addresses=addresses,
        switches=[
            Switch(name=switch.name, default=switch.default, text=switch.it if request.language == "it" else switch.en)
            for switch in SWITCHES
        ],
    )
    return PageView(template="api", context=context, title=request.t("api.title"), nav="playground")


def _answers(path: str, paths: Collection[str]) -> bool:
    return path in paths or any(path.startswith(prefix) for prefix in paths if prefix.endswith("/"))


PAGES: Final = (Page(path="/panel/api", get=show),)
