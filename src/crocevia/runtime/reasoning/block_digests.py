"""Which conversation an answer was given in: digests, so that a changed one is noticed. No text is kept.

Reasoning is worth something only after the very instructions, tools and messages that it was thought about. What an
engine gives must leave and come back exactly as it was, so nothing can be written on it; instead a digest of the
blocks and one of what stood before them are remembered, and travel in the call's record over a restart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Raw

from crocevia.core.calls import ModelRequest
from crocevia.core.json import canonical
from crocevia.core.messages import AssistantMessage, Message, ProviderBlocks, TextPart, ToolMessage

CAPACITY: Final = 20_000  # answers; about 6 MB when full
NOTE: Final = "proof"  # where a record's notes hold the two digests

_SIZE: Final = 16


class ConversationDigest:
    """The digest of a conversation that grows. Its key makes it useless to whoever finds one and guesses texts."""

    __slots__ = ("_hash",)

    def __init__(self, secret: bytes, request: ModelRequest) -> None:
        self._hash = blake2b(key=secret[:64], digest_size=_SIZE)
        self._feed((request.system or "").strip())
        for tool in request.tools:
            self._feed("tool", tool.name, tool.description, _spelled(tool.parameters))

    def add(self, message: Message) -> None:
        if isinstance(message, AssistantMessage):
            self._feed("assistant", (message.text or "").strip())
            for call in message.tool_calls:
                self._feed(call.id, call.name, _spelled(call.arguments))
        elif isinstance(message, ToolMessage):
            self._feed("tool result", message.call_id, message.content)
        else:
            self._feed("user")
            for part in message.parts:
                self._feed(part.text if isinstance(part, TextPart) else part.data)

    def digest(self) -> bytes:
        """Of everything so far."""
        return self._hash.copy().digest()

    def _feed(self, *pieces: str | bytes) -> None:
        for piece in pieces:
            data = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
            self._hash.update(b"%d:" % len(data))
            self._hash.update(data)


def _spelled(data: Raw) -> bytes:
    try:
        return canonical(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return bytes(data)


class BlockDigests:
    """Answers that were given, each with the conversations it was given in. Forgets the oldest beyond `capacity`."""

    def __init__(self, secret: bytes, capacity: int = CAPACITY) -> None:
        self._secret = secret
        self._capacity = capacity
        self._answers: OrderedDict[bytes, frozenset[bytes]] = OrderedDict()

    def conversation(self, request: ModelRequest) -> ConversationDigest:
        """The digest of the conversation of `request`, before its first message."""
        return ConversationDigest(self._secret, request)

    def remember(self, request: ModelRequest, blocks: Iterable[Raw]) -> dict[str, str]:
        """Remember an answer to `request`; what its record notes."""
        conversation = self.conversation(request)
        for message in request.messages:
            conversation.add(message)
        answer, context = self._answer(Raw(b"[" + b",".join(map(bytes, blocks)) + b"]")), conversation.digest()
        self._put(answer, context)
        return {"answer": answer.hex(), "context": context.hex()}

    def is_out_of_place(self, provider_blocks: ProviderBlocks, conversation: ConversationDigest) -> bool:
        """Whether these blocks were given here, but never after the conversation so far. False if unknown."""
        found = self._answers.get(self._answer(provider_blocks.blocks))
        return found is not None and conversation.digest() not in found

    def recall(self, notes: Iterable[Mapping[str, Any]]) -> None:
        """Remember what records of an earlier life noted, oldest first."""
        for note in notes:
            try:
                noted = msgspec.convert(note.get(NOTE), dict[str, str])
                self._put(bytes.fromhex(noted["answer"]), bytes.fromhex(noted["context"]))
            except (msgspec.ValidationError, KeyError, ValueError):  # a row that nobody of ours wrote
                continue

    def _answer(self, blocks: Raw) -> bytes:
        return blake2b(_spelled(blocks), key=self._secret[:64], digest_size=_SIZE).digest()

    def _put(self, answer: bytes, context: bytes) -> None:
        self._answers[answer] = self._answers.pop(answer, frozenset()) | {context}
        while len(self._answers) > self._capacity:
            self._answers.popitem(last=False)
