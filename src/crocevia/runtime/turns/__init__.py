"""Turns at work: the driver around the pure machine of `core.turn`, over the event log.

service.py      `Turns`, what doors see;  contexts.py: fork and restore;  feed.py: a reader's stream
supervisor.py   where turns run: begun, gone on with after a crash, given up
run_service.py  turns of one agent for a caller that waits;  agent_run.py: such a run;  run_calls.py: its model calls;
                null_journal.py: a journal for those that leave nothing behind
open_chats.py   the chats that are in memory, each with its fence and its fold
driver.py       one task per open turn: takes facts in, appends what follows, begins and stops what is wanted
work.py         how each want is done, models apart
models.py       model calls;  hearing.py: what they say;  steps.py: what is reported of a try;  asides.py: calls that
                answer nobody;  prompts.py: what models are told;  budget.py: the turn's money
casting.py      who plays: a chat's team as a plan, prompts and tools
commands.py     what came in from outside, as facts;  effects.py: rows that agree with the journal
signing.py      signatures on requests to client tools
tools/          what agents can use besides each other
"""

from crocevia.log import Row
from crocevia.runtime.turns.feed import Feed
from crocevia.runtime.turns.service import Turns
from crocevia.runtime.turns.settings import TurnSettings

__all__ = ["Feed", "Row", "TurnSettings", "Turns"]
