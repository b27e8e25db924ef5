"""`GET /capacita.php`: what the project's model can do, what the project may send, and its limits."""

from __future__ import annotations

from crocevia.asgi.http import Response
from crocevia.doors.pepper import wire
from crocevia.doors.pepper import wire_reports as reports
from crocevia.doors.pepper.caller import Request
from crocevia.runtime.gateway import PEPPER_FILES, Gateway, Profile, ProjectSpec

_MB = 1024 * 1024


async def capabilities(gateway: Gateway, max_body: int, request: Request) -> Response:
    """For projects of every mode. max_body: bytes."""
    assert request.caller is not None
    project = request.caller.identify(request.caller.named)
    return Response(200, describe(project, gateway.profile(project), max_body))


def describe(project: ProjectSpec, profile: Profile, max_body: int) -> reports.Capabilities:
    """Everything that an app may want to know before it calls."""
    model = profile.model
    return reports.Capabilities(
        progetto=project.name,
        modalita="agente" if project.mode == "agent" else "standard",
        pepper=reports.Pepper(
            versione=model.name,
            novita=model.novelty,
            voce_nelle_app=model.voice_in_apps,
            ragionamento=reports.REASONING[model.reasoning],
            riserva=model.reserve,
            contesto=model.context_window,
            max_tokens=reports.MaxTokens(
                predefinito=wire.DEFAULT_MAX_TOKENS, minimo=wire.MIN_MAX_TOKENS, massimo=wire.MAX_MAX_TOKENS
            ),
            streaming=True,
            attrezzi=True,
            blocchi=True,
            documenti=_documents(project, profile),
            immagini=_images(project, profile),
            citazioni=project.permissions.documents,
            ricerca_web=project.permissions.web_search,
        ),
        limiti=reports.Limits(
            richieste_ora=project.hourly_limit,
            spesa_giorno_usd=project.daily_budget_usd,
            contemporanee=project.max_concurrency,
            corpo_megabyte=max_body // _MB,
        ),
    )


def _documents(project: ProjectSpec, profile: Profile) -> reports.Documents:
    return reports.Documents(
        abilitati=project.permissions.documents,
        accettati=True,
        massimo=PEPPER_FILES.max_count,
        megabyte=PEPPER_FILES.document_bytes // _MB,
        tipi=sorted(PEPPER_FILES.document_types),
        pagine=min(profile.model.max_pages, PEPPER_FILES.max_pages),
        interi=profile.abilities.documents,
    )


def _images(project: ProjectSpec, profile: Profile) -> reports.Files:
    return reports.Files(
        abilitati=project.permissions.images,
        accettati=profile.abilities.images,
        massimo=PEPPER_FILES.max_count,
        megabyte=PEPPER_FILES.image_bytes // _MB,
        tipi=sorted(PEPPER_FILES.image_types),
    )
