"""Turns at work: the driver around the pure machine of `core.turn`, over the event log.

service.py        `Turns` and `Feed`, what doors see;  contexts.py: fork and restore
run_service.py    turns of one agent for a caller that waits;  agent_run.py: such a run
supervisor.py     every open turn has a task here, also after a crash
chat_sessions.py  the chats that are in memory, each with its fence and its fold
driver.py         one task per open turn: takes facts in, appends what follows, begins and stops what is wanted
models.py         model calls, their deltas and their money;  attempts.py: what is reported of a try
tool_runner.py    how the other wants are done;  tools/: what agents can use besides each other
turn_setup.py     a chat's team as a plan, with each agent's prompt and tools;  prompts.py: what models are told
attachments.py    the files that messages carry
commands.py       rows from outside, as facts;  effects.py: rows that agree with the journal
signing.py        signatures on requests to client tools
"""

from crocevia.log import Row
from crocevia.runtime.turns.service import Feed, Turns
from crocevia.runtime.turns.settings import TurnSettings

__all__ = ["Feed", "Row", "TurnSettings", "Turns"]
