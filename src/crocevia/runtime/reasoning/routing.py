"""Who answers a call, and which provider blocks of earlier answers go back to the engine. Pure but for finding engines.

Blocks go back byte for byte when they are of the engine's dialect, still say what their message says, and stand after
the very conversation they were given in. All others are rebuilt from text and tool calls: that loses reasoning, never
the call. A model that reasons cannot go on inside a tool round without its blocks; there its fallback model answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from crocevia.core.calls import Engine, ModelRequest
from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.history import open_round
from crocevia.core.messages import AssistantMessage, FilePart, Message, ProviderBlocks
from crocevia.documents.intake import Prepared
from crocevia.runtime.drafts import CallDraft
from crocevia.runtime.fitting import Fitted, fit
from crocevia.runtime.reasoning.block_digests import NOTE, BlockDigests, ConversationDigest

MISSING: Final = "missing"
OTHER_ENGINE: Final = "other_engine"
HISTORY_CHANGED: Final = "history_changed"
REJECTED: Final = "rejected"

_PLAIN: Final = "plain"
_NOTED: Final = 20  # losses that a record lists


class Loss(msgspec.Struct, frozen=True):
    """The blocks of the message at `index` are not sent."""

    index: int
    why: str
    """`missing`, `edited`, `unrecognised`, …"""


class RoutingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call before it is decided who answers."""

    model: ModelSpec
    draft: CallDraft
    request: ModelRequest
    """The draft composed for `model`; files may still stand in it as placeholders."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers, and what is sent."""

    asked: RoutingRequest
    """What was decided about."""
    model: ModelSpec
    engine: Engine
    request: ModelRequest
    """As the engine takes it."""
    fitted: Fitted
    """What was done to the request for that; its own `request` still has placeholders for files."""
    losses: tuple[Loss, ...] = ()
    without_reasoning: bool = False
    """Though the model reasons."""
    blocks_missing: bool | None = None
    """Whether the app sent no blocks in its open round; None when there is no such round."""
    files: tuple[Prepared, ...] = ()
    """What took the place of the placeholders in `request`."""

    def notes(self) -> dict[str, Any]:
        """For the record; empty when there is nothing to say."""
        found: dict[str, Any] = {}
        if self.losses:
            places = self.asked.draft.places
            found["reasoning_lost"] = [
                {"message": places.index(loss.index), "why": loss.why} for loss in self.losses[:_NOTED]
            ]
        if changed := (*self.asked.draft.repaired, *self.fitted.changed):
            found["repaired"] = list(changed[:_NOTED])
        if self.without_reasoning:
            found["answered_for" if self.model.name != self.asked.model.name else "quiet"] = self.asked.model.name
        return found


class ReasoningRouter:
    """Decides. engines: the working engine of a name."""

    def __init__(self, engines: Callable[[str], Engine], memory: BlockDigests) -> None:
        self._engines = engines
        self.memory = memory

    def route(self, asked: RoutingRequest, models: Mapping[str, ModelSpec]) -> Route:
        """Raises GatewayError: UNAVAILABLE for an engine that cannot be used, INVALID_REQUEST when the model needs
        blocks that did not come and nothing else can answer.
        """
        model, request = asked.model, asked.request
        engine = self._engines(model.engine)
        rounds = open_round(request.messages)
        invalid_blocks = asked.draft.invalid_blocks
        if not rounds and not invalid_blocks and not any(map(_blocks, request.messages)):
            return _fitted(asked, model, engine, request)
        losses = self._judge(asked, engine)
        lost = {loss.index for loss in losses}
        missing = [i for i in rounds if _blocks(request.messages[i]) is None and i not in invalid_blocks]
        blocks_missing = bool(missing) if rounds else None
        if lost:
            request = msgspec.structs.replace(request, messages=_kept(request.messages, lost))
        if model.reasoning == "off" or not (missing or lost.intersection(rounds)):
            return _fitted(asked, model, engine, request, losses=losses, blocks_missing=blocks_missing)
        losses = tuple(sorted([*losses, *(Loss(i, MISSING) for i in missing)], key=lambda loss: loss.index))
        found = self._without_reasoning(asked, request.messages, models, missing)
        if found is None:
            # They came, but are worth nothing any more: the answer is a little less reasoned.
            return _fitted(asked, model, engine, request, losses=losses, blocks_missing=blocks_missing)
        model, engine, request = found
        return _fitted(
            asked, model, engine, request, losses=losses, blocks_missing=blocks_missing, without_reasoning=True
        )

    def fallback(self, route: Route, models: Mapping[str, ModelSpec]) -> Route | None:
        """What to try when the provider rejected `route` before its first word; None when that would change nothing.

        Pieces of unknown origin are sent on trust, and a provider may know better.
        """
        asked = route.asked
        if route.engine.dialect == _PLAIN:
            return None  # it was sent nothing that it gave
        bare = tuple(_bare(message) for message in asked.request.messages)
        rejected = {i: REJECTED for i, message in enumerate(asked.request.messages) if _blocks(message) is not None}
        if asked.model.reasoning != "off":
            rejected |= {i: REJECTED for i in open_round(asked.request.messages)}
        again = msgspec.structs.replace(
            asked,
            draft=msgspec.structs.replace(asked.draft, invalid_blocks={**rejected, **asked.draft.invalid_blocks}),
            request=msgspec.structs.replace(asked.request, messages=bare),
        )
        found = self.route(again, models)
        if found.request == route.request and found.engine is route.engine:
            return None
        return (
            msgspec.structs.replace(found, blocks_missing=route.blocks_missing)
            if _can_be_given(route.files, found)
            else None
        )

    def _without_reasoning(
        self, asked: RoutingRequest, messages: tuple[Message, ...], models: Mapping[str, ModelSpec], missing: list[int]
    ) -> tuple[ModelSpec, Engine, ModelRequest] | None:
        """Who answers without reasoning, and what; None where nobody can."""
        model = models.get(asked.model.reserve or "", asked.model)
        engine = self._engines(model.engine)
        if model is asked.model and (
            model.reasoning == "always" or not engine.abilities(model.upstream).without_reasoning
        ):
            if missing and asked.draft.keeps_blocks:
                raise _blocks_needed(asked.model, missing[0])
            return None
        request = msgspec.structs.replace(
            asked.request,
            model=model.upstream,
            messages=tuple(_unthinking(message, engine.dialect) for message in messages),
            reasoning="off",
            options=asked.draft.options,
        )
        return model, engine, request

    def _judge(self, asked: RoutingRequest, engine: Engine) -> tuple[Loss, ...]:
        """The messages whose blocks are not sent, in order."""
        losses: list[Loss] = []
        messages = asked.request.messages
        thinks = any((blocks := _blocks(message)) is not None and blocks.thinks for message in messages)
        conversation = self.memory.conversation(asked.request) if thinks else None
        for index, message in enumerate(messages):
            why = asked.draft.invalid_blocks.get(index) or self._why_not(_blocks(message), engine.dialect, conversation)
            if why is not None:
                losses.append(Loss(index, why))
            if conversation is not None:
                conversation.add(message)
        return tuple(losses)

    def _why_not(
        self, blocks: ProviderBlocks | None, dialect: str, conversation: ConversationDigest | None
    ) -> str | None:
        if blocks is None:
            return None
        if not _fits(blocks, dialect):
            return OTHER_ENGINE
        if blocks.thinks and conversation is not None and self.memory.is_out_of_place(blocks, conversation):
            return HISTORY_CHANGED
        return None


def _fitted(asked: RoutingRequest, model: ModelSpec, engine: Engine, request: ModelRequest, **more: Any) -> Route:
    """The route with its request as the engine takes it."""
    found = fit(request, engine.abilities(request.model).needs, asked.draft.places)
    return Route(asked=asked, model=model, engine=engine, request=found.request, fitted=found, **more)


def block_note(memory: BlockDigests, route: Route, blocks: list[Any]) -> dict[str, Any]:
    """What the record of an answer with reasoning notes, so that its blocks can be judged when they come back."""
    return {NOTE: memory.remember(route.asked.request, blocks)}


def _blocks_needed(model: ModelSpec, index: int) -> GatewayError:
    return GatewayError(Reason.BLOCKS_NEEDED, param=f"messages[{index}].blocchi", model=model.name, index=index)


def _blocks(message: Message) -> ProviderBlocks | None:
    return message.provider_blocks if isinstance(message, AssistantMessage) else None


def _fits(blocks: ProviderBlocks, dialect: str) -> bool:
    """Whether an engine of `dialect` can be given these blocks, or can say them in its own way without a loss."""
    return blocks.dialect == dialect or (blocks.plain and dialect == _PLAIN)


def _kept(messages: tuple[Message, ...], lost: set[int]) -> tuple[Message, ...]:
    return tuple(_bare(message) if index in lost else message for index, message in enumerate(messages))


def _can_be_given(files: tuple[Prepared, ...], route: Route) -> bool:
    """Whether files that were taken in for one engine are something for the one of `route`."""
    able = route.engine.abilities(route.request.model)
    parts = [part for taken in files for part in taken.parts if isinstance(part, FilePart)]
    return all(able.images if part.kind == "image" else able.documents for part in parts)


def _bare(message: Message) -> Message:
    return message if _blocks(message) is None else msgspec.structs.replace(message, provider_blocks=None)


def _unthinking(message: Message, dialect: str) -> Message:
    blocks = _blocks(message)
    return message if blocks is not None and not blocks.thinks and blocks.dialect == dialect else _bare(message)
