"""`POST /v1/chat/completions`: one call, or the run of an agent that has tools of its own."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from crocevia.asgi.body import aside
from crocevia.asgi.http import ClientGone, EventResponse, Response
from crocevia.asgi.stream import EventStream
from crocevia.core import json
from crocevia.core.answers import Answer
from crocevia.core.calls import GenerationOptions, Reasoning, Sampling
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.messages import ToolMessage, UserMessage
from crocevia.doors.responses import fields, items, options, plan
from crocevia.doors.responses import wire as common
from crocevia.doors.responses.caller import OperatorCaller, Request, session_key
from crocevia.doors.responses.chat import wire
from crocevia.doors.responses.chat.encode import ChatEncoder, whole
from crocevia.doors.responses.errors import failure
from crocevia.doors.responses.items import Placed
from crocevia.doors.responses.options import Tools
from crocevia.doors.responses.services import Services
from crocevia.doors.responses.targets import Target
from crocevia.runtime.gateway import CallDraft, Cut, Places
from crocevia.runtime.turns.run_service import Work

ENCODE: Final = "chat.completions"
MOST_STOPS: Final = 4


async def complete(services: Services, request: Request) -> Response | EventResponse:
    """One answer."""
    body: wire.Request = request.take()
    caller, operator = request.caller, request.caller.operator
    target = await services.targets.choose(
        operator, body.model or services.targets.prefix, agent=caller.agent, override=caller.model
    )
    tools = options.tools(_tools(body.tools), body.tool_choice, inside=".function")
    draft, added = await _draft(services, target, caller, body, tools, request.size)
    if not target.acts:
        call: Work = services.gateway.open_model(operator.user_id, target.model, draft)
    else:
        services.gateway.check_model(operator.user_id, target.model, draft)
        call = await services.runs.open(
            plan.run_spec(
                operator,
                target,
                draft,
                tools,
                system=added,
                known=0,
                answer_id=new_id("chatcmpl"),
                position=plan.position_of(target, [], named=False, kept=False, stays=False),
            )
        )
    model = body.model or services.targets.prefix
    if body.stream:
        usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        return EventResponse(partial(_stream, request, call, tools, model, usage), _failed)
    return await _whole(request, call, tools, model)


async def _stream(request: Request, call: Work, tools: Tools, model: str, usage: bool, stream: EventStream) -> None:
    encoder = ChatEncoder(new_id("chatcmpl"), int(time.time()), model, usage=usage, told=tools.told)
    with request.on_disconnect(lambda: call.interrupt(Cut.CLIENT_GONE)):
        async with call:
            async for batch in call:
                if data := encoder.feed(batch):
                    await stream.write(data)
                call.bytes_out = stream.sent
            answer = call.fold.answer()
            try:
                _check(answer, tools)
            except GatewayError:
                if not stream.started:
                    await stream.start()  # what was not met is paid for: a status would have clients ask again
                raise
            await stream.end(encoder.end(answer))
            call.bytes_out = stream.sent


def _failed(error: GatewayError) -> bytes:
    """How a stream ends that cannot go on."""
    return b"data: " + json.encode({"error": failure(error)}) + b"\n\ndata: [DONE]\n\n"


async def _whole(request: Request, call: Work, tools: Tools, model: str) -> Response:
    with request.on_disconnect(lambda: call.interrupt(Cut.CLIENT_GONE)):
        async with call:
            answer = await call.answer()
            _check(answer, tools)
            data = whole(answer, new_id("chatcmpl"), int(time.time()), model, tools.told)
            call.bytes_out = len(data)
    if call.cut is Cut.CLIENT_GONE:
        raise ClientGone
    return Response(200, data)


def _check(answer: Answer, tools: Tools) -> None:
    if answer.refusal or (answer.stop is not None and answer.stop.value in ("max_tokens", "refusal")):
        return
    options.check_met(tools, tuple(asked.name for asked in answer.tool_calls))


async def _draft(
    services: Services, target: Target, caller: OperatorCaller, request: wire.Request, tools: Tools, bytes_in: int
) -> tuple[CallDraft, str | None]:
    """The call, and what joins the words of its agent."""
    fields.check_chat(request)
    fields.check_hints(
        request.service_tier,
        safety_identifier=request.safety_identifier,
        prompt_cache_key=request.prompt_cache_key,
    )
    if request.n not in (None, 1):
        raise GatewayError(Reason.NUMBER_WITHIN, param="n", path="n", least=1, most=1)
    session = session_key(caller)
    placed = await aside(bytes_in, _placed, request.messages)
    sent = items.sources(placed)
    tenant = f"user:{caller.operator.user_id}"
    prepared = await services.gateway.intake.prepare_as_text(
        sent, services.file_limits, images=target.sees, tenant=tenant
    )
    talk = await aside(bytes_in, items.converse, placed, {one.param: one for one in prepared})
    if not any(isinstance(message, UserMessage | ToolMessage) for message in talk.messages):
        raise GatewayError(Reason.CHAT_EMPTY, param="messages")
    length = fields.verbosity(request.verbosity, "verbosity")
    told = (*talk.system, plan.channel(caller), length, *talk.documents)
    added = "\n\n".join(text for text in told if text) or None
    system = "\n\n".join(text for text in (target.system, added) if text)
    draft = CallDraft(
        door="responses",
        encode=ENCODE,
        messages=talk.messages,
        system=system or None,
        tools=tools.offered,
        places=Places(talk.paths, tools.paths),
        repaired=(*talk.repaired, *tools.skipped),
        options=GenerationOptions(
            max_tokens=_limit(request),
            stream=bool(request.stream),
            session=session or request.prompt_cache_key,
            tool_choice=tools.choice,
            parallel_tool_calls=request.parallel_tool_calls is not False,
            format=options.answer_format(_format(request.response_format), "response_format"),
            sampling=_sampling(request),
            reasoning=Reasoning(effort=options.effort(request.reasoning_effort, "reasoning_effort")),
        ),
        bytes_in=bytes_in,
        agent=target.agent or None,
    )
    return draft, added


def _limit(request: wire.Request) -> int:
    name = "max_completion_tokens" if request.max_completion_tokens is not None else "max_tokens"
    value: int | None = getattr(request, name)
    if value is not None and value < 1:
        raise GatewayError(Reason.NUMBER_LEAST, param=name, path=name, least=1)
    return value or common.DEFAULT_MAX_TOKENS


def _sampling(request: wire.Request) -> Sampling:
    stop = (request.stop,) if isinstance(request.stop, str) else tuple(request.stop or ())
    if len(stop) > MOST_STOPS or not all(stop):
        raise GatewayError(Reason.STOP_MALFORMED, param="stop", limit=MOST_STOPS)
    return Sampling(
        temperature=options.within(request.temperature, "temperature", 0, 2),
        top_p=options.within(request.top_p, "top_p", 0, 1),
        presence_penalty=options.within(request.presence_penalty, "presence_penalty", -2, 2),
        frequency_penalty=options.within(request.frequency_penalty, "frequency_penalty", -2, 2),
        seed=request.seed,
        stop=stop or None,
    )


def _tools(given: list[wire.Tool] | None) -> list[common.Tool]:
    found = []
    for tool in given or ():
        if tool.type == "custom":
            free = tool.custom or wire.Custom()
            found.append(common.Tool(type="custom", name=free.name, description=free.description, format=free.format))
            continue
        told = tool.function or wire.Function()
        found.append(
            common.Tool(
                type=tool.type,
                name=told.name,
                description=told.description,
                parameters=told.parameters,
                strict=told.strict,
            )
        )
    return found


def _format(given: wire.ResponseFormat | None) -> common.Format | None:
    if given is None:
        return None
    told = given.json_schema or wire.Schema()
    return common.Format(
        type=given.type, name=told.name, schema=told.schema, description=told.description, strict=told.strict
    )


def _called(call: wire.AskedCall) -> common.Item:
    if call.custom is not None:
        return common.Item(type="custom_tool_call", call_id=call.id, name=call.custom.name, input=call.custom.input)
    told = call.function or wire.Function()
    return common.Item(type="function_call", call_id=call.id, name=told.name, arguments=told.arguments)


def _placed(messages: list[wire.Message]) -> list[Placed]:
    """Chat messages as items: what an assistant says and what it calls stand apart there."""
    found: list[Placed] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        if message.role == "tool":
            item = common.Item(type="function_call_output", call_id=message.tool_call_id, output=message.content or "")
            found.append(Placed(path, item))
            continue
        content = message.content if message.content is not None else message.refusal
        if content is not None or message.role != "assistant":
            found.append(Placed(path, common.Item(type="message", role=message.role, content=content)))
        for position, call in enumerate(message.tool_calls or ()):
            found.append(Placed(f"{path}.tool_calls[{position}]", _called(call)))
    return found
