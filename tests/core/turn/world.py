"""A world for the turn machine: it plays models, tools, clients and users, keeps the journal, and can crash."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Raw

from crocevia.core.messages import ToolCall, user
from crocevia.core.turn import (
    AgentCard,
    Plan,
    ToolCard,
    Totals,
    Turn,
    TurnLimits,
    advance,
    open_turn,
    recover,
    request_client,
    wants_of,
)
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.ids import derive
from crocevia.core.usage import Usage

TURN = "cmpl_01j00000000000000000000000"
TOOLS = (
    ToolCard(name="read", kind="knowledge", idempotent=True),
    ToolCard(name="write", kind="server"),
    ToolCard(name="danger", kind="server"),
    ToolCard(name="email", kind="client", timeout_ms=120_000),
)
NAMES = ("read", "write", "danger", "email", "forbidden")


def card(name: str, **changes: Any) -> AgentCard:
    defaults: dict[str, Any] = {
        "model": "m1",
        "tools": NAMES,
        "permissions": {"danger": "ask", "forbidden": "deny"},
        "context_window": 1000,
    }
    return AgentCard(name=name, **{**defaults, **changes})


def plan(**changes: Any) -> Plan:
    defaults: dict[str, Any] = {
        "agents": (card("main"), card("researcher"), card("writer")),
        "tools": TOOLS,
        "limits": TurnLimits(rounds=12, depth=2, children=5, parallel_tools=2),
        "title": True,
    }
    return Plan(**{**defaults, **changes})


def call(name: str, _id: str = "p1", **arguments: Any) -> ToolCall:
    return ToolCall(id=_id, name=name, arguments=Raw(json.dumps(arguments).encode()))


def delegate(agent: str, mode: str = "foreground", _id: str = "p1") -> ToolCall:
    return call("delegate_task", _id, agent=agent, task="do it", mode=mode)


class World:
    """`journal` is what was committed. Every method reports one fact and commits what follows from it."""

    def __init__(self, the_plan: Plan | None = None, message: str = "hello", now: int = 1_000) -> None:
        self.now = now
        self.journal: list[e.Entry] = []
        self.turn = Turn((user("before"),))
        self.ran: list[str] = []  # side effects of server tools, by call
        self.spent = Totals()  # what the world charged
        self.cancelled = False  # it was asked to, in time
        self.commit(open_turn(self.turn, TURN, the_plan or plan(), message, now))

    # --- the journal

    def commit(self, entries: list[e.Entry]) -> list[e.Entry]:
        self.journal += [e.decode(e.encode(entry)) for entry in entries]
        return entries

    def tell(self, fact: e.Entry | None) -> list[e.Entry]:
        return self.commit(advance(self.turn, fact, self.now))

    def rebuild(self, upto: int | None = None) -> Turn:
        turn = Turn((user("before"),))
        for entry in self.journal[:upto]:
            turn.apply(entry)
        return turn

    def crash(self, resume: bool = True) -> None:
        self.turn = self.rebuild()
        self.commit(recover(self.turn, self.now, resume=resume))

    # --- reading

    @property
    def wants(self) -> tuple[w.Want, ...]:
        return wants_of(self.turn)

    def want(self, kind: type[Any]) -> Any:
        return next(want for want in self.wants if isinstance(want, kind))

    def types(self) -> list[str]:
        return [e.type_of(entry) for entry in self.journal if type(entry) in e.PUBLIC]

    def of(self, kind: type[Any]) -> list[Any]:
        return [entry for entry in self.journal if isinstance(entry, kind)]

    @property
    def terminal(self) -> Any:
        return self.turn.terminal

    # --- the outside world

    def base(self) -> dict[str, Any]:
        return {"turn": TURN, "at": self.now}

    def start(self, want: w.CallModel) -> None:
        self.tell(e.ModelStarted(**self.base(), instance=want.instance, step=want.step, attempt=want.attempt))

    def say(self, want: w.CallModel, text: str) -> None:
        agent = self.turn.instances[want.instance].agent
        self.tell(e.AgentTextDelta(**self.base(), agent=agent, delta=text))

    def answer(self, want: w.CallModel, text: str = "", *calls: ToolCall, tokens: int = 10, stop: str = "end") -> None:
        inflight = self.turn.instances[want.instance].inflight
        if not inflight:
            self.start(want)
        usage = Usage(input_tokens=tokens, output_tokens=1)
        self.tell(
            e.ModelAnswered(
                **self.base(),
                instance=want.instance,
                step=want.step,
                attempt=want.attempt,
                text=text,
                calls=calls,
                usage=usage,
                cost_usd=0.25,
                stop=stop,
            )
        )
        self.spent += Totals(input_tokens=tokens, output_tokens=1, cost_usd=0.25)

    def fail(self, want: w.CallModel, code: str = "upstream_failed", retryable: bool = True) -> None:
        if not self.turn.instances[want.instance].inflight:
            self.start(want)
        self.tell(
            e.ModelFailed(
                **self.base(),
                instance=want.instance,
                step=want.step,
                attempt=want.attempt,
                code=code,
                message="no",
                retryable=retryable,
                usage=Usage(input_tokens=3),
                cost_usd=0.125,
            )
        )
        self.spent += Totals(input_tokens=3, cost_usd=0.125)

    def finish_tool(self, want: w.RunTool, result: Any = "ok", is_error: bool = False) -> None:
        self.ran.append(want.call_id)
        self.tell(
            e.ToolComplete(
                **self.base(),
                agent=self.agent_of(want.call_id),
                call_id=want.call_id,
                result=Raw(json.dumps(result).encode()),
                is_error=is_error,
            )
        )

    def agent_of(self, call_id: str) -> e.Speaker:
        return self.turn.instances[self.turn.calls[call_id].instance].agent

    def publish(self, want: w.AskClient) -> None:
        self.tell(request_client(self.turn, want.call_id, e.Signature("sig_1", "x"), self.now))

    def claim(self, call_id: str, holder: str) -> None:
        self.tell(e.ToolClaimed(**self.base(), call_id=call_id, holder=holder))

    def deliver(self, call_id: str, output: str = "sent") -> None:
        self.tell(e.ToolResult(**self.base(), agent=self.agent_of(call_id), call_id=call_id, output=output))

    def start_child(self, want: w.StartChild) -> None:
        self.tell(e.AgentStarted(**self.base(), agent=self.turn.instances[want.instance].agent))

    def respond(self, approval_id: str, approve: bool) -> None:
        self.tell(e.ApprovalResponse(**self.base(), approval_id=approval_id, approve=approve))

    def give_title(self, title: str | None = "A title") -> None:
        self.tell(e.TitleAnswered(**self.base(), title=title, usage=Usage(input_tokens=2), cost_usd=0.5))
        self.spent += Totals(input_tokens=2, cost_usd=0.5)

    def compact(self, want: w.Compact, works: bool = True) -> None:
        items = (user("summary"),) if works else ()
        self.tell(
            e.ContextAnswered(
                **self.base(),
                instance=want.instance,
                items=items,
                summary="summary",
                context_tokens=5,
                usage=Usage(input_tokens=7),
                cost_usd=0.0625,
            )
        )
        self.spent += Totals(input_tokens=7, cost_usd=0.0625)

    def steer(self, text: str = "left", target: str | None = None) -> str:
        steer_id = derive("st", self.now, len(self.journal))
        self.tell(e.TurnSteered(**self.base(), steer_id=steer_id, text=text, target=target))
        return steer_id

    def cancel(self) -> None:
        self.cancelled = self.cancelled or not self.turn.ended
        self.tell(e.CancelAsked(**self.base(), reason="user"))

    def close(self) -> None:
        self.tell(e.TurnClosing(**self.base()))

    def tick(self, ms: int) -> None:
        self.now += ms
        self.tell(None)
