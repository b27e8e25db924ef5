"""A gateway with everything a test wants to look at: an engine that plays what it is told, records in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from crocevia.asgi.http import Front
from crocevia.asgi.site import Site
from crocevia.core.calls import Abilities, ModelRequest
from crocevia.core.catalogue import ModelSpec, Permissions, ProjectSpec
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import ModelEvent, Stopped, StopReason, TextDelta, ToolCallDone, UsageReported
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage
from crocevia.doors.pepper.door import pepper_door
from crocevia.runtime.gateway import CallLimits, Gateway
from crocevia.runtime.intake import Intake
from crocevia.runtime.records import Durable
from crocevia.storage.records import FallbackCall, OpenedCall, SettledCall

Step = list[ModelEvent] | asyncio.Event | Exception

END = Stopped(StopReason.END)
USAGE = UsageReported(Usage(input_tokens=12, output_tokens=3))


def say(*texts: str) -> list[ModelEvent]:
    return [TextDelta(text) for text in texts]


def tool(id: str = "c1", name: str = "get_home_status", arguments: bytes = b"{}", index: int = 0) -> ToolCallDone:
    return ToolCallDone(index, ToolCall(id=id, name=name, arguments=Raw(arguments)))


PLAIN: tuple[Step, ...] = (say("Cia"), say("o."), [USAGE, END])


class Puppet:
    """An engine that plays steps: a batch, an event to wait for, an error to raise. One list per call, last repeats."""

    def __init__(self, *plays: tuple[Step, ...], name: str = "puppet", dialect: str = "plain", **can: bool) -> None:
        self.name = name
        self.dialect = dialect
        self.can = Abilities(**can)
        self.plays = list(plays or (PLAIN,))
        self.requests: list[ModelRequest] = []
        self.open = 0

    async def call(self, request: ModelRequest, *, deadline: float) -> AsyncGenerator[list[ModelEvent], None]:
        steps = self.plays[min(len(self.requests), len(self.plays) - 1)]
        self.requests.append(request)
        self.open += 1
        try:
            for step in steps:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Exception):
                    raise step
                else:
                    yield step
        finally:
            self.open -= 1

    def abilities(self, model: str) -> Abilities:
        return self.can

    async def probe(self) -> None: ...

    async def close(self) -> None: ...


class MemoryRecords:
    def __init__(self) -> None:
        self.failing = False
        self.opened: list[OpenedCall] = []
        self.settled: list[SettledCall] = []
        self.fallbacks: list[FallbackCall] = []

    def open(self, record: OpenedCall | FallbackCall) -> Durable:
        if isinstance(record, OpenedCall):
            self.opened.append(record)
        else:
            self.fallbacks.append(record)
        durable: Durable = asyncio.get_running_loop().create_future()
        durable.set_result(None)
        return durable

    def put(self, record: SettledCall) -> None:
        self.settled.append(record)


@dataclass
class View:
    projects: dict[str, tuple[str, ProjectSpec]]
    models: dict[str, ModelSpec]
    revision: int = 7
    users: dict[str, Any] = field(default_factory=dict)

    @property
    def current(self) -> View:
        return self

    def owner_of(self, key: bytes) -> ProjectSpec | None:
        return next((spec for secret, spec in self.projects.values() if key == secret.encode()), None)


@dataclass
class House:
    engine: Any
    gateway: Gateway
    records: MemoryRecords
    agent: Site
    clock: list[float] = field(default_factory=lambda: [1_000_000.0])
    rounds: list[tuple[str, bool]] = field(default_factory=list)  # what the gateway said of open rounds

    def nothing_left(self) -> None:
        """No slot, no call, no upstream, no task but this one; every opened record settled exactly once."""
        assert self.gateway.admission.running() == 0
        assert self.gateway.active == 0
        assert getattr(self.engine, "open", 0) == 0
        assert sorted(r.id for r in self.records.opened) == sorted(r.id for r in self.records.settled)


def house(
    engine: Any = None,
    *,
    ping_seconds: float = 15.0,
    limits: CallLimits | None = None,
    model: dict[str, Any] | None = None,
    reserve: Any = None,
    intake: Intake | None = None,
    **project: Any,
) -> House:
    """A house with the projects `casa` (mode agent, key `chiave`) and `vecchia` (mode standard, key `altra`).

    reserve: the engine of `Pepper 6`, which then is the reserve of `Pepper 7`.
    """
    engine = engine or Puppet()
    spare = {"reserve": "Pepper 6"} if reserve is not None else {}
    brain = ModelSpec(**({"name": "Pepper 7", "engine": "puppet", "upstream": "brain-1"} | spare | (model or {})))
    second = ModelSpec(name="Pepper 6", engine="spare", upstream="brain-0", instructions="Sei Pepper 6.")
    casa = ProjectSpec(**({"name": "casa", "model": "Pepper 7", "mode": "agent"} | project))
    vecchia = ProjectSpec(name="vecchia", model="Pepper 7")
    view = View({"casa": ("chiave", casa), "vecchia": ("altra", vecchia)}, {"Pepper 7": brain, "Pepper 6": second})
    rounds: list[tuple[str, bool]] = []
    records = MemoryRecords()
    clock = [1_000_000.0]
    gateway = Gateway(
        view,
        lambda name: reserve if name == "spare" else engine,
        records,
        limits=limits or CallLimits(),
        intake=intake,
        on_round=lambda project, blocks_missing: rounds.append((project.name, blocks_missing)),
        clock=lambda: clock[0],
    )
    return House(engine, gateway, records, site_of(gateway, ping_seconds=ping_seconds), clock, rounds)


def site_of(gateway: Gateway, classic: Any = None, *, ping_seconds: float = 15.0, **model_of: str) -> Site:
    """The door alone. classic: where the classic API is asked. model_of: the model's name by project."""
    return Site((pepper_door(gateway, classic, model_of.get),), Front(ping_seconds=ping_seconds))


HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "che aria fa in salone?"}]}
ALL_ALLOWED = Permissions(documents=True, images=True, web_search=True)
__all__ = ["Code", "GatewayError"]
