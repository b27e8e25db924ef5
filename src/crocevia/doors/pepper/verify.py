"""`POST /agent/verifica`: what would become of an agent call. No provider is asked, nothing counts, nothing is kept."""

from __future__ import annotations

from crocevia.asgi.answers import reply
from crocevia.asgi.body import ClientGone, read_body
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, Reason, say
from crocevia.core.texts import render
from crocevia.doors.pepper import decode, wire
from crocevia.doors.pepper import wire_reports as reports
from crocevia.doors.pepper.errors import TABLE, expected, refuse
from crocevia.doors.pepper.head import read_head
from crocevia.runtime.gateway import CallDraft, Estimate, Gateway, ProjectSpec, Route


class VerifyEndpoint:
    """The conversation doctor. max_body: bytes."""

    def __init__(self, gateway: Gateway, *, max_body: int = wire.MAX_BODY) -> None:
        self._gateway = gateway
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Who asks must be in order, and the body must be JSON of the right shape; everything else is the answer."""
        try:
            head = read_head(scope, "POST")
            body = await read_body(receive, self._max_body, head.length, asks=head.asks)
            request = decode.read(body)
            project = self._gateway.authenticate(head.project or request.project or "", head.key)
            if project.mode != "agent":
                raise GatewayError(Reason.AGENT_NOT_ENABLED, project=project.name)
            report = await self._examine(request, project, len(body))
        except ClientGone:
            return
        except Exception as error:
            known = expected(error)
            await refuse(send, known, close=known.code is Code.TOO_LARGE)
            return
        await reply(send, 200, json.encode(report), [])

    async def _examine(self, request: wire.Request, project: ProjectSpec, size: int) -> reports.Report:
        problems: list[GatewayError] = []
        found = decode.draft(request, project, size, problems)
        route = estimate = None
        try:
            route = self._gateway.route(project, found)
            if found.attachments and not problems:
                route = await self._gateway.attach(route, found.attachments, decode.wants(project))
            estimate = self._gateway.estimate(project, route)
        except GatewayError as error:
            problems.append(error)
        if estimate is not None and estimate.refusal is not None:
            problems.append(estimate.refusal)
        return reports.Report(
            accettata=not problems,
            problemi=[_problem(error) for error in problems],
            ragionamento_perso=_lost(route, found.origins),
            app_senza_blocchi=bool(route and route.blockless and route.asked.model.reasoning != "off"),
            istruzioni=route.request.system if route is not None else None,
            risponde=_answerer(route) if route is not None else None,
            dimensione=_size(request, found, size, estimate, route),
            costo=_cost(estimate) if estimate is not None else None,
        )


def _problem(error: GatewayError) -> reports.Problem:
    status, word = TABLE[error.code]
    return reports.Problem(stato=status, codice=word, campo=error.param, spiegazione=render(error.message, "it"))


def _lost(route: Route | None, origins: tuple[int, ...]) -> list[reports.Lost]:
    return [
        reports.Lost(
            messaggio=origins[loss.index],
            motivo=reports.LOSSES[loss.why][0],
            spiegazione=render(say(reports.LOSSES[loss.why][1]), "it"),
        )
        for loss in (route.losses if route is not None else ())
    ]


def _answerer(route: Route) -> reports.Answerer:
    asked = route.asked.model
    return reports.Answerer(
        versione=route.model.name,
        al_posto_di=asked.name if route.model.name != asked.name else None,
        riserva=asked.reserve,
        ragiona=route.request.reasoning != "off",
        max_tokens=route.request.options.max_tokens,
    )


def _size(
    request: wire.Request, found: CallDraft, size: int, estimate: Estimate | None, route: Route | None
) -> reports.Size:
    return reports.Size(
        byte=size,
        messaggi=len(request.messages),
        attrezzi=len(request.tools or ()),
        allegati=len(found.attachments),
        token_ingresso=estimate.prompt_tokens if estimate is not None else 0,
        contesto=route.model.context_window if route is not None else None,
    )


def _cost(estimate: Estimate) -> reports.Cost:
    after = None
    if estimate.budget_left_usd is not None and estimate.most_usd is not None:
        after = max(0.0, round(estimate.budget_left_usd - estimate.most_usd, 9))
    return reports.Cost(
        massimo_usd=estimate.most_usd,
        budget_usd=estimate.budget_usd,
        residuo_usd=estimate.budget_left_usd,
        residuo_dopo_usd=after,
        basta=estimate.refusal is None,
    )
