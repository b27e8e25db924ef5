"""A request for an answer, understood whole before anything is paid for: it becomes a plan."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import groupby
from typing import Final

import msgspec
from msgspec import Raw

from crocevia.asgi.body import aside
from crocevia.core import json, sizes
from crocevia.core.calls import GenerationOptions, Sampling
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.messages import Message, ToolMessage, UserMessage
from crocevia.doors.responses import fields, items, options, pictures, resource, wire
from crocevia.doors.responses.answer_plan import ENCODE, AnswerPlan, turn_of
from crocevia.doors.responses.caller import OperatorCaller, session_key
from crocevia.doors.responses.items import Conversation, Placed
from crocevia.doors.responses.options import Tools
from crocevia.doors.responses.services import Services
from crocevia.doors.responses.targets import Target
from crocevia.runtime.answers_store import Link, Past, StoredResponse, previous_missing
from crocevia.runtime.control.operators import Operator
from crocevia.runtime.gateway import CallDraft, Places
from crocevia.runtime.session_turns import SessionTurn
from crocevia.runtime.turns.run_service import ChatPosition, RunRequest, RunSpec

_METADATA: Final = (16, 64, 512)  # pairs, characters of a key, characters of a value
_TRUNCATIONS: Final = frozenset({"auto", "disabled"})
_MOST_CHARACTERS_PER_TOKEN: Final = 6  # beyond this no text fits: what may fit is for the provider to say
_ITEM_BYTES: Final = 256  # that an item counts for, where its own size is not known any more
_ROOM: Final = 0.9  # of the context window, for what is kept of a conversation that is too long


Local = Mapping[str, list[StoredResponse]]
"""Chains that one WebSocket connection remembers by the id of their last answer, stored or not."""


async def make(
    services: Services,
    caller: OperatorCaller,
    request: wire.Request,
    bytes_in: int,
    local: Local | None = None,
    *,
    speaks: bool = True,
) -> AnswerPlan:
    """local: what the connection remembers. speaks: the answer will be part of its session, if it has one.

    Raises GatewayError for everything that is wrong with the request, and where the session is busy.
    """
    _check(request)
    operator = caller.operator
    target = await services.targets.choose(operator, request.model, agent=caller.agent, override=caller.model)
    before = await _before(services, operator, target, request, session_of(caller, target), local or {}, speaks)
    try:
        return await _planned(services, caller, request, bytes_in, target, before, local or {})
    except BaseException:
        if before.turn is not None:
            before.turn.release()
        raise


class _Before(msgspec.Struct, frozen=True):
    """What an answer goes on from, and the session it belongs to. named: by a header of this request."""

    past: Past
    session: str | None
    named: str | None
    turn: SessionTurn | None


async def _planned(
    services: Services,
    caller: OperatorCaller,
    request: wire.Request,
    bytes_in: int,
    target: Target,
    before: _Before,
    local: Local,
) -> AnswerPlan:
    operator, session, chain = caller.operator, before.session, before.past.answers
    form = options.answer_format(request.text.format if request.text else None, "text.format")
    fresh = items.placed(request.input)
    if any(items.is_reference(place.item) for place in fresh):
        there = {stored.id for stored in chain}
        fresh = await _followed(services, operator, fresh, there, local)
    kept = _kept(chain)
    tools = options.tools(request.tools, request.tool_choice, more=items.declared([*kept, *fresh]))
    talk, given = await _converse(
        services, operator, target, kept, fresh, forgiving=session is not None and request.previous_response_id is None
    )
    messages = _fitting(services, target, request, talk.messages)
    system = _added(request, caller, talk)
    previous = chain[-1].id if chain else None
    shown = resource.opening(
        request,
        tools=list(tools.shown),
        tool_choice=tools.shown_choice,
        response_id=new_id("resp"),
        created_at=int(time.time()),
        previous=previous,
        store=request.store is not False,
    )
    draft = CallDraft(
        door="responses",
        encode=ENCODE,
        messages=messages,
        system="\n\n".join(text for text in (target.system, system) if text) or None,
        tools=tools.offered,
        places=Places(talk.paths[len(talk.messages) - len(messages) :], tools.paths),
        repaired=(*talk.repaired, *tools.skipped),
        options=GenerationOptions(
            max_tokens=request.max_output_tokens or wire.DEFAULT_MAX_TOKENS,
            stream=bool(request.stream or request.background),
            session=session or request.prompt_cache_key,
            tool_choice=tools.choice,
            parallel_tool_calls=request.parallel_tool_calls is not False,
            format=form,
            sampling=_sampling(request),
            reasoning=options.reasoning(request.reasoning),
        ),
        bytes_in=bytes_in,
        agent=target.agent or None,
    )
    run = None
    if target.definition is not None:
        services.gateway.check_model(operator.user_id, target.model, draft)
        run = run_spec(
            operator,
            target,
            draft,
            tools,
            system=system,
            known=max(0, talk.known - len(talk.messages) + len(messages)),
            answer_id=shown.id,
            position=position_of(
                target,
                chain,
                named=session is not None,
                kept=request.store is not False,
                stays=bool(request.background),
                gaps=before.past.gaps,
            ),
            tool_calls=request.max_tool_calls,
            resumable=bool(request.background),
        )
    return AnswerPlan(
        user_id=operator.user_id,
        tools=tools,
        draft=draft,
        model=target.model,
        order=run,
        resource=shown,
        link=Link(operator.subject, target.agent, before.named),
        session=session,
        given=json.encode(given),
        seal=partial(services.sealer.seal, owner=operator.user_id) if fields.asks_for_sealed(request.include) else None,
        stream=bool(request.stream),
        background=bool(request.background),
        past=chain,
        turn=before.turn,
    )


def _check(request: wire.Request) -> None:
    for name, least in (("max_output_tokens", 1), ("max_tool_calls", 1)):
        value = getattr(request, name)
        if value is not None and value < least:
            raise GatewayError(Reason.NUMBER_LEAST, param=name, path=name, least=least)
    options.within(request.top_logprobs, "top_logprobs", 0, 20)
    fields.check_responses(request)
    fields.check_hints(
        request.service_tier,
        safety_identifier=request.safety_identifier,
        prompt_cache_key=request.prompt_cache_key,
    )
    fields.check_include(request.include)
    if request.truncation is not None and request.truncation not in _TRUNCATIONS:
        raise GatewayError(Reason.TRUNCATION_UNKNOWN, param="truncation")
    if request.background and request.store is False:
        raise GatewayError(Reason.BACKGROUND_UNSTORED, param="background")
    pairs, key_length, value_length = _METADATA
    metadata = request.metadata or {}
    if len(metadata) > pairs or any(len(k) > key_length or len(v) > value_length for k, v in metadata.items()):
        raise GatewayError(Reason.METADATA_LARGE, param="metadata", pairs=pairs, name=key_length, value=value_length)


def session_of(caller: OperatorCaller, target: Target) -> str | None:
    """The session that the caller names, without the agent it may be spelled with."""
    named = session_key(caller)
    if named is None:
        return None
    prefix = f"agent:{target.agent}:"
    bare = named[len(prefix) :] if named.lower().startswith(prefix.lower()) else named
    return f"key:{bare or named}"


async def _before(
    services: Services,
    operator: Operator,
    target: Target,
    request: wire.Request,
    named: str | None,
    local: Local,
    speaks: bool,
) -> _Before:
    responses = services.responses
    wanted, session = request.previous_response_id, named
    past = Past()
    if wanted is not None:
        past = await _chain(services, Link(operator.subject, target.agent, named), wanted, local)
        session = past.answers[-1].session or named
    # A bare model is a plain model: `user` names its end user there, and starts no session.
    elif session is None and target.agent and request.user and request.user.strip():
        session = f"user:{request.user.strip()}"
    if session is None:
        return _Before(past, None, named, None)
    link = Link(operator.subject, target.agent, session)
    newest = await responses.head(link) if wanted is not None else None
    turn = await responses.turns.enter((operator.subject, target.agent, session)) if speaks else None
    try:
        if wanted is None:
            past = await responses.session(link)
        elif newest == wanted and await responses.head(link) != wanted:
            raise GatewayError(Reason.SESSION_MOVED, param="previous_response_id")
    except BaseException:
        if turn is not None:
            turn.release()
        raise
    return _Before(past, session, named, turn)


async def _chain(services: Services, link: Link, wanted: str, local: Local) -> Past:
    """The answers up to one. Raises GatewayError(INVALID_REQUEST)."""
    chain = local.get(wanted)
    if chain is None:
        return await services.responses.chain(link, wanted)
    if chain[-1].agent != link.agent:
        raise previous_missing(wanted)
    await services.responses.check_there(one for one in chain if one.visible or one.session is not None)
    return Past(tuple(chain), gaps=False)


async def _followed(
    services: Services, operator: Operator, fresh: Sequence[Placed], there: AbstractSet[str], local: Local
) -> list[Placed]:
    """The items that references mean, with what their answers keep for the engine.

    What is not there, is somebody else's or comes with the conversation anyway stays a reference to nothing.
    """
    found: list[Placed] = []
    for owner, places in groupby(fresh, lambda place: items.owner_of(place.item)):
        if owner is None or owner in there:
            found += places
            continue
        try:
            unstored = owner in local and not local[owner][-1].visible
            stored = local[owner][-1] if unstored else await services.responses.find(operator.subject, owner)
        except GatewayError:
            found += places
            continue
        said = {item.id: item for item in items.kept(stored.resource, "output")}
        named = list(places)
        found += [place._replace(item=said.get(place.item.id, place.item)) for place in named]
        found += [Placed(named[-1].path, item, ours=True) for item in items.kept(stored.resource, "blocks")]
    return found


def _kept(chain: Sequence[StoredResponse]) -> list[Placed]:
    found: list[Placed] = []
    for stored in chain:
        found += [Placed("", item, kept=True) for item in items.kept(stored.input)]
        found += [Placed("", item, kept=True, ours=True) for item in items.kept(stored.resource, "output")]
        found += [Placed("", item, kept=True, ours=True) for item in items.kept(stored.resource, "blocks")]
    return [place._replace(path=f"previous[{index}]") for index, place in enumerate(found)]


async def _converse(
    services: Services,
    operator: Operator,
    target: Target,
    kept: list[Placed],
    fresh: list[Placed],
    *,
    forgiving: bool,
) -> tuple[Conversation, list[wire.Item]]:
    """What is said, and the items of this request as they are to be kept.

    Limits of what callers attach are those of one request: what came earlier was let in then.
    """
    intake = services.gateway.intake
    sent = items.sources(fresh)
    tenant = f"user:{operator.user_id}"
    taken = await intake.prepare_as_text(sent, services.file_limits, images=target.sees, tenant=tenant)
    prepared = {one.param: one for one in taken}
    earlier, shown = await pictures.recall(kept, intake, sees=target.sees)
    opening = partial(services.sealer.open, owner=operator.user_id)
    said = [*earlier, *fresh]
    talk = await aside(
        len(said) * _ITEM_BYTES, items.converse, said, prepared | shown, opening=opening, forgiving=forgiving
    )
    if not any(isinstance(message, UserMessage | ToolMessage) for message in talk.messages):
        raise GatewayError(Reason.INPUT_EMPTY, param="input")
    return talk, await pictures.to_keep(fresh, prepared)


def _sampling(request: wire.Request) -> Sampling:
    return Sampling(
        temperature=options.within(request.temperature, "temperature", 0, 2),
        top_p=options.within(request.top_p, "top_p", 0, 1),
        presence_penalty=options.within(request.presence_penalty, "presence_penalty", -2, 2),
        frequency_penalty=options.within(request.frequency_penalty, "frequency_penalty", -2, 2),
    )


def _added(request: wire.Request, caller: OperatorCaller, talk: Conversation) -> str | None:
    """What joins whatever the agent or the model is told anyway."""
    told = [request.instructions, *talk.system, channel(caller)]
    told.append(fields.verbosity(request.text.verbosity if request.text else None, "text.verbosity"))
    told += talk.documents
    return "\n\n".join(text for text in told if text) or None


def channel(caller: OperatorCaller) -> str | None:
    """What a model is told of where the message came from."""
    return None if caller.channel is None else f"Channel: {caller.channel[:80]}"


def _fitting(
    services: Services, target: Target, request: wire.Request, messages: tuple[Message, ...]
) -> tuple[Message, ...]:
    """With `truncation: auto`, without the oldest rounds that the model's window has no room for.

    Raises GatewayError(INVALID_REQUEST) for what cannot fit and may not be cut.
    """
    spec = services.targets.spec(target.model)
    if spec is None or spec.context_window is None:
        return messages
    if request.truncation != "auto":
        if sum(map(sizes.characters, messages)) > spec.context_window * _MOST_CHARACTERS_PER_TOKEN:
            raise GatewayError(Reason.CONTEXT_EXCEEDED, param="input", window=spec.context_window)
        return messages
    room = int(spec.context_window * _ROOM) * sizes.CAUTIOUS
    starts = [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]
    for start in [0, *starts]:
        if sum(map(sizes.characters, messages[start:])) <= room:
            return messages[start:]
    return messages[starts[-1] :] if starts else messages


def read(body: bytes) -> wire.Request:
    """The request's shape. Raises GatewayError(INVALID_REQUEST)."""
    try:
        return json.decode(body or b"{}", wire.Request)
    except GatewayError as error:
        if not (error.param or "").startswith("input["):
            raise
    # An item may be of a kind that is not known here, and then of any shape.
    spelled = json.decode(body, dict[str, Raw])
    listed = json.decode(spelled["input"], list[Raw])
    spelled["input"] = Raw(json.encode(list(map(items.readable, listed))))
    return json.decode(json.encode(spelled), wire.Request)


def run_spec(
    operator: Operator,
    target: Target,
    draft: CallDraft,
    tools: Tools,
    *,
    system: str | None,
    known: int,
    answer_id: str,
    position: ChatPosition | None,
    tool_calls: int | None = None,
    resumable: bool = False,
) -> RunSpec:
    """system: what joins the agent's own. known: how many messages of the draft were said in earlier requests.

    answer_id: the turn has the ULID of its answer, so that each leads to the other.
    """
    assert target.definition is not None
    said = draft.messages[known:]
    hidden = tools.choice.mode == "none" and target.acts  # the caller's are not to be called, the agent's own are
    offered = () if hidden else tools.offered
    return RunSpec(
        user_id=operator.user_id,
        agent=target.definition,
        workspace_id=target.workspace_id,
        turn_id=turn_of(answer_id),
        input=_shown(said),
        request=RunRequest(
            said=said,
            system=system,
            tools=offered,
            model=target.model,
            options=draft.options,
            door=draft.door,
            encode=draft.encode,
            bytes_in=draft.bytes_in,
            repaired=draft.repaired,
        ),
        history=draft.messages[:known],
        position=position,
        tool_calls=tool_calls,
        forbidden=frozenset(tool.name for tool in tools.shown) - {tool.name for tool in offered},
        resumable=resumable,
    )


def position_of(
    target: Target, chain: Sequence[StoredResponse], *, named: bool, kept: bool, stays: bool, gaps: bool = False
) -> ChatPosition | None:
    """Where the run belongs. named: it is part of a session that its caller names. kept: its answer is stored.

    stays: it goes on without its caller. The first continuation of a stored answer makes a session of it. gaps: the
    chat remembers more than the conversation may.
    """
    last = chain[-1] if chain else None
    chat_id = last.chat if last is not None else None
    if named:
        return ChatPosition(chat_id, renewed=gaps)
    if stays or target.asks or (kept and (last is not None or target.acts)):
        return ChatPosition(chat_id, None if last is None else turn_of(last.id))
    return None


def _shown(said: tuple[Message, ...]) -> str:
    """The input as readers of the chat see it."""
    for message in reversed(said):
        if isinstance(message, UserMessage):
            return message.text
        if isinstance(message, ToolMessage):
            break
    return ""
