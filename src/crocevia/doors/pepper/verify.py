"""`POST /agent/verifica`: what would become of an agent call. No provider is asked, nothing counts, nothing is kept."""

from __future__ import annotations

from crocevia.asgi.body import aside
from crocevia.asgi.http import Response
from crocevia.core.errors import GatewayError, say
from crocevia.core.texts import render
from crocevia.doors.pepper import decode, wire
from crocevia.doors.pepper import wire_reports as reports
from crocevia.doors.pepper.agent import check_mode
from crocevia.doors.pepper.caller import Request
from crocevia.doors.pepper.errors import TABLE
from crocevia.runtime.gateway import CallDraft, Estimate, Gateway, Places, ProjectSpec, Route


async def verify(gateway: Gateway, request: Request) -> Response:
    """Who asks must be in order, and the body must be JSON of the right shape; everything else is the answer."""
    body: wire.Request = request.take()
    assert request.caller is not None
    project = request.caller.identify(request.caller.named or body.project or "")
    check_mode(project)
    return Response(200, await _examine(gateway, body, project, request.size))


async def _examine(gateway: Gateway, request: wire.Request, project: ProjectSpec, size: int) -> reports.Report:
    problems: list[GatewayError] = []
    found = await aside(size, decode.draft, request, project, size, problems)
    route = estimate = None
    try:
        route = gateway.route(project, found)
        if found.attachments and not problems:
            route = await gateway.attach(route, found.attachments, decode.wants(project))
        estimate = gateway.estimate(project, route)
    except GatewayError as error:
        problems.append(error.with_traceback(None))
    if estimate is not None and estimate.refusal is not None:
        problems.append(estimate.refusal)
    return reports.Report(
        accettata=not problems,
        problemi=[_problem(error) for error in problems],
        ragionamento_perso=_lost(route, found.places),
        app_senza_blocchi=bool(route and route.blocks_missing and route.asked.model.reasoning != "off"),
        istruzioni=route.request.system if route is not None else None,
        risponde=_answerer(route) if route is not None else None,
        dimensione=_size(request, found, size, estimate, route),
        costo=_cost(estimate) if estimate is not None else None,
    )


def _problem(error: GatewayError) -> reports.Problem:
    status, word = TABLE[error.code]
    return reports.Problem(stato=status, codice=word, campo=error.param, spiegazione=render(error.message, "it"))


def _lost(route: Route | None, places: Places) -> list[reports.Lost]:
    return [
        reports.Lost(
            messaggio=places.index(loss.index),
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
