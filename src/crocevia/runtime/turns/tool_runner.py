"""Runs tools, asks clients, starts children, ends turns: how each want is done, models apart."""

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
from crocevia.runtime.turns.driver import Driver
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.signing import sign_call
from crocevia.runtime.turns.tools import ToolContext, ToolReturn
from crocevia.runtime.turns.tools.registry import MAX_RESULT
from crocevia.runtime.turns.tools.standard import tool_error
from crocevia.runtime.turns.turn_setup import TurnSetup


class ToolRunner:
    """One per turn."""

    def __init__(self, setup: TurnSetup, signer: Signer, settings: TurnSettings) -> None:
        self._setup = setup
        self._signer = signer
        self._settings = settings

    async def run_tool(self, driver: Driver, want: w.RunTool) -> None:
        turn = driver.turn
        call = turn.calls[want.call_id]
        started = driver.now()
        result = await self._run(driver, call.tool.name, call.tool.arguments)
        at, agent = driver.now(), turn.instances[call.instance].agent
        artifact = result.artifact
        if artifact is not None:
            artifact_id = derive("art", at, turn.id, call.id)
            fields = msgspec.structs.asdict(artifact)
            driver.post(e.Artifact(turn=turn.id, at=at, agent=agent, artifact_id=artifact_id, **fields))
        driver.post(
            e.ToolComplete(
                turn=turn.id,
                at=at,
                agent=agent,
                call_id=call.id,
                result=_encoded(result),
                is_error=result.is_error,
                usage=Totals(duration_ms=max(0, at - started), tool_calls=1),
            )
        )

    async def _run(self, driver: Driver, name: str, arguments: msgspec.Raw) -> ToolReturn:
        tool = self._setup.tools.get(name)
        if tool is None:
            return tool_error("tool_unavailable", f"{name} is not there any more")
        try:
            decoded = msgspec.json.decode(arguments, type=dict[str, Any])
            async with asyncio.timeout(self._settings.tool_seconds):
                return await tool.run(_context(driver), decoded)
        except msgspec.DecodeError:
            return tool_error("invalid_arguments", "the arguments are no JSON object")
        except TimeoutError:
            return tool_error("tool_timeout", f"no result within {self._settings.tool_seconds:g} s")

    async def ask_client(self, driver: Driver, want: w.AskClient) -> None:
        call = driver.turn.calls[want.call_id]
        if call.state is CallState.PROPOSED:
            signature = sign_call(self._signer, call.id, call.tool.name, call.tool.arguments)
            driver.post(request_client(driver.turn, call.id, signature, driver.now()))

    async def start_child(self, driver: Driver, want: w.StartChild) -> None:
        turn = driver.turn
        driver.post(e.AgentStarted(turn=turn.id, at=driver.now(), agent=turn.instances[want.instance].agent))

    async def end(self, driver: Driver, want: w.End) -> None:
        await driver.wait_stopped(self._settings.stop_seconds)
        driver.post(e.TurnClosing(turn=driver.turn.id, at=driver.now()))


def _context(driver: Driver) -> ToolContext:
    chat = driver.session.chat

    async def set_title(title: str) -> bool:
        if title == (driver.turn.title or driver.session.title):
            return False
        return await driver.commit(e.ChatTitleUpdated(turn=driver.turn.id, at=driver.now(), title=title))

    return ToolContext(workspace_id=chat.workspace_id, chat_id=chat.id, user_id=chat.user_id, set_title=set_title)


def _encoded(result: ToolReturn) -> msgspec.Raw:
    """As JSON, cut to what a model should be given of one result."""
    value = result.value
    if isinstance(value, str) and len(value) > MAX_RESULT:
        value = value[:MAX_RESULT] + "\n[cut here]"
    encoded = msgspec.json.encode(value)
    if not isinstance(value, str) and len(encoded) > MAX_RESULT:
        encoded = msgspec.json.encode(encoded.decode()[:MAX_RESULT] + " [cut here]")
    return msgspec.Raw(encoded)
