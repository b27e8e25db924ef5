"""The classic call: a recipe instead of instructions, a remembered conversation, citations, web search.

It is made of ordinary calls: each is admitted, paid and recorded by the gateway. A search adds a round, at most
MOST_SEARCHES of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from crocevia.core.answers import Answer
from crocevia.core.calls import GenerationOptions, ToolChoice
from crocevia.core.catalogue import ModelSpec, ProjectSpec, RecipeSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import CUT_SHORT, StopReason
from crocevia.core.messages import AssistantMessage, FilePart, Message, Part, ProviderBlocks, ToolMessage, UserMessage
from crocevia.core.usage import Usage
from crocevia.runtime.classic import citations, websearch
from crocevia.runtime.classic.citations import Citation
from crocevia.runtime.classic.conversations import Conversations
from crocevia.runtime.classic.websearch import SearchResult, WebSearch
from crocevia.runtime.gateway import Attachment, Call, CallDraft, Cut, Gateway, Route, Wants, with_files

if TYPE_CHECKING:
    from crocevia.documents.intake import Prepared

MOST_SEARCHES: Final = 3
CITES: Final = "anthropic"  # the dialect whose engine says itself what it cites

Recipes = Callable[[], Mapping[str, RecipeSpec]]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked."""

    encode: str
    parts: tuple[Part, ...]
    """With placeholders for `attachments`."""
    text: str
    """What memory keeps of it."""
    attachments: tuple[Attachment, ...] = ()
    conversation: str | None = None
    max_tokens: int = 4096
    bytes_in: int = 0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    text: str
    model: ModelSpec
    usage: Usage
    """Output of all rounds, input of the last, which holds the others."""
    citations: list[Citation] | None = None
    """None: there was nothing to cite from."""
    cut: bool = False
    """The answer ends where the model had not."""


class Classic:
    """One per server. search None: no backend is configured."""

    def __init__(
        self, gateway: Gateway, recipes: Recipes, conversations: Conversations, search: WebSearch | None = None
    ) -> None:
        self.gateway = gateway
        self.recipes = recipes
        self.conversations = conversations
        self.search = search

    def open(self, project: ProjectSpec, question: Question, wants: Wants) -> ClassicAnswer:
        """Begin. Raises GatewayError(INVALID_REQUEST) if there is no such recipe."""
        recipe = self.recipes().get(question.encode)
        if recipe is None:
            raise GatewayError(Reason.ENCODE_UNKNOWN, param="encode", encode=question.encode[:80])
        searching = self.search if project.permissions.web_search else None
        return ClassicAnswer(self, project, question, wants, recipe, searching)


class ClassicAnswer:
    """One question on its way to its answer. calls: the newest is under way or over."""

    def __init__(
        self,
        classic: Classic,
        project: ProjectSpec,
        question: Question,
        wants: Wants,
        recipe: RecipeSpec,
        search: WebSearch | None,
    ) -> None:
        self._classic = classic
        self._project = project
        self._question = question
        self._wants = wants
        self._recipe = recipe
        self._search = search
        self._task: asyncio.Task[object] | None = None
        self._call: Call | None = None
        self._taken: tuple[Prepared, ...] = ()
        self._native: tuple[str, ...] = ()
        self._pages: list[SearchResult] = []
        self._searched = 0
        self.gone = False

    @property
    def conversation(self) -> str | None:
        """The conversation that it belongs to."""
        return self._question.conversation

    def hang_up(self) -> None:
        """Nobody is waiting any more: end what is under way, now."""
        self.gone = True
        if self._call is not None:
            self._call.interrupt(Cut.CLIENT_GONE)
        elif self._task is not None:
            self._task.cancel()

    async def answer(self) -> Reply | None:
        """The answer; None if the caller hung up. Raises GatewayError: see `Gateway.open_call` and `Gateway.attach`."""
        self._task = asyncio.current_task()
        try:
            return await self._answer()
        except asyncio.CancelledError:
            if self.gone and self._task is not None and self._task.cancelling() == 1:
                self._task.uncancel()
                return None
            raise
        finally:
            self._task = None

    async def _answer(self) -> Reply | None:
        question = self._question
        history: tuple[Message, ...] = ()
        if question.conversation is not None:
            history = await self._classic.conversations.history(self._project, question.conversation)
        messages = [*history, UserMessage(parts=question.parts)]
        usage = Usage()
        for searches in range(MOST_SEARCHES + 1):
            found = await self._round(messages, last=searches == MOST_SEARCHES, going_on=bool(searches))
            if found is None:
                return None
            answer, model = found
            usage = _summed(usage, answer.usage)
            if not answer.tool_calls or self._search is None or searches == MOST_SEARCHES:
                break
            messages += await self._looked_up(answer)
        if question.conversation is not None:
            said = [("user", question.text), ("assistant", answer.text)]
            await self._classic.conversations.append(self._project, question.conversation, said)  # type: ignore[arg-type]  # the roles are literals
        cited = await self._cited(answer)
        return Reply(
            text=answer.text,
            model=model,
            usage=usage,
            citations=cited,
            cut=answer.stop in CUT_SHORT,
        )

    async def _round(self, messages: list[Message], *, last: bool, going_on: bool) -> tuple[Answer, ModelSpec] | None:
        question, gateway = self._question, self._classic.gateway
        draft = CallDraft(
            door="pepper",
            encode=question.encode,
            messages=tuple(messages),
            system=self._recipe.instructions,
            tools=() if self._search is None else (websearch.TOOL,),
            options=GenerationOptions(
                max_tokens=question.max_tokens,
                stream=False,
                session=question.conversation,
                tool_choice=ToolChoice(mode="none") if last and self._search is not None else ToolChoice(),
            ),
            bytes_in=question.bytes_in,
            going_on=going_on,
        )
        route = gateway.route(self._project, draft)
        if question.attachments:
            route = await self._with_files(route)
        call = self._call = gateway.open_call(self._project, draft, route)
        try:
            async with call:
                await call.answer()
        finally:
            self._call = None
        if call.cut is Cut.CLIENT_GONE:
            return None
        if call.fold.stop is StopReason.REFUSAL:
            raise GatewayError(Reason.REFUSED)
        return call.fold.answer(), call.model

    async def _with_files(self, route: Route) -> Route:
        """Engines that cite get whole PDFs; for others text is extracted here, where passages can be found again."""
        abilities = route.engine.abilities(route.request.model)
        if route.engine.dialect != CITES:
            abilities = msgspec.structs.replace(abilities, documents=False)
        taken = await self._classic.gateway.prepare(route, self._question.attachments, self._wants, abilities)
        self._taken = tuple(_citable(each) for each in taken)
        self._native = tuple(each.name for each in self._taken if any(map(_is_native, each.parts)))
        return with_files(route, self._taken)

    async def _looked_up(self, answer: Answer) -> list[Message]:
        assert self._search is not None
        results: list[Message] = []
        for call in answer.tool_calls:
            told, pages, failed = websearch.NO_MORE
            if self._searched < MOST_SEARCHES:
                self._searched += 1
                told, pages, failed = await self._search.run(call)
            self._pages += pages
            results.append(ToolMessage(call_id=call.id, content=told, is_error=failed))
        return [_repeated(answer), *results]

    async def _cited(self, answer: Answer) -> list[Citation] | None:
        if not self._taken and self._search is None:
            return None
        found = citations.told([piece.block for piece in answer.blocks], self._native) if self._native else []
        texts = [(each.name, each.page_texts) for each in self._taken if each.page_texts]
        if texts:
            found += await asyncio.to_thread(citations.locate, answer.text, texts)
        named = {page.url: page for page in self._pages if page.url in answer.text}
        found += [Citation(origin="web", title=page.title, url=page.url) for page in named.values()]
        return found


def _citable(taken: Prepared) -> Prepared:
    parts = tuple(msgspec.structs.replace(part, cite=True) if _is_native(part) else part for part in taken.parts)
    return msgspec.structs.replace(taken, parts=parts)


def _is_native(part: Part) -> bool:
    return isinstance(part, FilePart) and part.kind == "document"


def _repeated(answer: Answer) -> AssistantMessage:
    """The answer as history, with its own blocks where it has them."""
    provider_blocks = None
    if answer.blocks:
        spelled = b",".join(bytes(piece.block) for piece in answer.blocks)
        provider_blocks = ProviderBlocks(
            dialect=answer.blocks[0].dialect, blocks=Raw(b"[" + spelled + b"]"), thinks=True
        )
    return AssistantMessage(text=answer.text or None, tool_calls=answer.tool_calls, provider_blocks=provider_blocks)


def _summed(before: Usage, later: Usage) -> Usage:
    output = None if later.output_tokens is None else (before.output_tokens or 0) + later.output_tokens
    return msgspec.structs.replace(later, output_tokens=output)
