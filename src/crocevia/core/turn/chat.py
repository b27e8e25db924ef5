"""The fold over a whole chat: the context the next turn starts with, lifetime totals, title, the turn under way."""

from __future__ import annotations

from collections.abc import Iterable

from crocevia.core import sizes
from crocevia.core.messages import Message
from crocevia.core.turn import entries as e
from crocevia.core.turn.machine import Turn
from crocevia.core.turn.plan import Totals


class ChatState:
    """Hydrated from `log.replay`. A journal that cannot be read raises Unreadable: nothing is guessed."""

    def __init__(self) -> None:
        self.history: tuple[Message, ...] = ()
        """The root's context after the last turn."""
        self.tokens = 0
        """Of the history, as its model counted them, or estimated."""
        self.totals = Totals()
        self.title: str | None = None
        self.turn: Turn | None = None
        """The last one that was opened, ended or not."""
        self.turns = 0

    @property
    def active(self) -> Turn | None:
        return self.turn if self.turn is not None and not self.turn.ended else None

    def apply(self, entry: e.Entry) -> None:
        if isinstance(entry, e.ContextReplaced):
            if self.active is not None:
                raise e.Unreadable("a context is replaced under an open turn")
            self.history, self.tokens = entry.items, sizes.tokens(sum(map(sizes.characters, entry.items)))
            self.totals = entry.totals or self.totals
            self.title = entry.title or self.title
            return
        if isinstance(entry, e.TurnOpened):
            if self.active is not None:
                raise e.Unreadable("two turns at once")
            self.turn = Turn(self.history, self.tokens)
            self.turns += 1
        if self.turn is None:
            raise e.Unreadable("an entry outside a turn")
        self.turn.apply(entry)
        self.adopt(entry)

    def adopt(self, entry: e.Entry) -> None:
        """Take over from an entry that `turn` has applied already (the owner's own appends)."""
        if isinstance(entry, e.ChatTitleUpdated):
            self.title = entry.title
        elif isinstance(entry, e.TERMINAL):
            self.totals = entry.chat_usage
            if self.turn is not None:
                self.history, self.tokens = self.turn.context(self.turn.root_id), self.turn.root.context_tokens

    def open(self) -> Turn:
        """A fresh turn on this chat's context. Raises ValueError if one is open: look at `active` first."""
        if self.active is not None:
            raise ValueError("a turn is open")
        self.turn = Turn(self.history, self.tokens)
        self.turns += 1
        return self.turn


def hydrate(entries: Iterable[e.Entry]) -> ChatState:
    """A chat from its whole journal. Raises Unreadable."""
    chat = ChatState()
    for entry in entries:
        chat.apply(entry)
    return chat
