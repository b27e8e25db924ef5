"""How each want is done, models apart."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from crocevia.core.turn import Totals, request_client
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.calls import CallState
from crocevia.core.turn.ids import derive
from crocevia.runtime.signing_keys import Signer
from crocevia.runtime.turns.chat_sessions import now_ms
from crocevia.runtime.turns.driver import Driver
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.signing import sign_call
from crocevia.runtime.turns.tools import ToolContext, ToolReturn
from crocevia.runtime.turns.tools.registry import MAX_RESULT
from crocevia.runtime.turns.tools.standard import failed
from crocevia.runtime.turns.turn_setup import TurnSetup


class ToolRunner:
    """RunService tools, asks clients, starts children, ends turns. One per turn."""

    def __init__(self, setup: TurnSetup, signer: Signer, settings: TurnSettings) -> None:
        self._setup = setup
        self._signer = signer
        self._settings = settings

    async def run_tool(self, driver: Driver, want: w.RunTool) -> None:
        turn = driver.turn
        call = turn.calls[want.call_id]
        began = now_ms()
        result = await self._outcome(driver, call.tool.name, call.tool.arguments)
        at, agent = now_ms(), turn.instances[call.instance].agent
        made = result.made
        if made is not None:
            artifact = derive("art", at, turn.id, call.id)
            driver.tell(
                e.Artifact(turn=turn.id, at=at, agent=agent, artifact_id=artifact, **msgspec.structs.asdict(made))
            )
        driver.tell(
            e.ToolComplete(
                turn=turn.id,
                at=at,
                agent=agent,
                call_id=call.id,
                result=_result(result),
                is_error=result.is_error,
                usage=Totals(duration_ms=max(0, at - began), tool_calls=1),
            )
        )

    async def _outcome(self, driver: Driver, name: str, arguments: msgspec.Raw) -> ToolReturn:
        built = self._setup.built.get(name)
        if built is None:
            return failed("tool_unavailable", f"{name} is not there any more")
        try:
            given = msgspec.json.decode(arguments, type=dict[str, Any])
            async with asyncio.timeout(self._settings.tool_seconds):
                return await built.run(self._context(driver), given)
        except msgspec.DecodeError:
            return failed("invalid_arguments", "the arguments are no JSON object")
        except TimeoutError:
            return failed("tool_timeout", f"no result within {self._settings.tool_seconds:g} s")

    def _context(self, driver: Driver) -> ToolContext:
        chat = driver.session.chat

        async def set_title(title: str) -> bool:
            known = driver.turn.title or driver.session.title
            if title == known:
                return False
            return await driver.report(e.ChatTitleUpdated(turn=driver.turn.id, at=now_ms(), title=title))

        return ToolContext(workspace_id=chat.workspace_id, chat_id=chat.id, user_id=chat.user_id, set_title=set_title)

    async def ask_client(self, driver: Driver, want: w.AskClient) -> None:
        call = driver.turn.calls[want.call_id]
        if call.state is CallState.PROPOSED:
            signature = sign_call(self._signer, call.id, call.tool.name, call.tool.arguments)
            driver.tell(request_client(driver.turn, call.id, signature, now_ms()))

    async def start_child(self, driver: Driver, want: w.StartChild) -> None:
        turn = driver.turn
        driver.tell(e.AgentStarted(turn=turn.id, at=now_ms(), agent=turn.instances[want.instance].agent))

    async def end(self, driver: Driver, want: w.End) -> None:
        await driver.stopped(self._settings.stop_seconds)
        driver.tell(e.TurnClosing(turn=driver.turn.id, at=now_ms()))


def _result(result: ToolReturn) -> msgspec.Raw:
    """As JSON, cut to what a model should be given of one result."""
    value = result.value
    if isinstance(value, str) and len(value) > MAX_RESULT:
        value = value[:MAX_RESULT] + "\n[cut here]"
    encoded = msgspec.json.encode(value)
    if not isinstance(value, str) and len(encoded) > MAX_RESULT:
        encoded = msgspec.json.encode(encoded.decode()[:MAX_RESULT] + " [cut here]")
    return msgspec.Raw(encoded)
