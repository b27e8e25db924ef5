"""The catalogue of models as a user sees it: what can be chosen, and what is chosen when nobody chooses."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.catalogue import ModelSpec
from crocevia.runtime.catalogue import Catalogue, generates_images
from crocevia.runtime.control.checks import moment_of
from crocevia.runtime.control.context import MOST, Control
from crocevia.storage import declared, teams
from crocevia.storage.database import Transaction

__all__ = ["Choice", "ModelSpec", "choice", "default_model", "is_offered", "sunset"]

_DEFAULT_PROJECT: Final = "default"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """models: with the moment of their declaration, by name. teams: ids, likewise. Moments are Unix seconds.

    default None: there is no model at all.
    """

    models: list[tuple[ModelSpec, float]]
    teams: list[tuple[str, float]]
    default: str | None


async def choice(control: Control, user_id: str) -> Choice:
    """What the user can choose from now."""
    now = control.clock()

    def work(tx: Transaction) -> tuple[dict[str, float], list[tuple[str, float]]]:
        return declared.born(tx, ModelSpec), teams.born(tx, user_id, MOST)

    born, found = await control.database.read(work)
    catalogue = control.catalogue.current
    known = catalogue.models
    offered = [(spec, born.get(name, now)) for name, spec in known.items() if _talks(catalogue, spec, now)]
    return Choice(models=offered, teams=found, default=default_model(control))


def is_offered(control: Control, name: str) -> bool:
    """Whether an agent may choose this model now: it is declared, and its sunset has not come."""
    catalogue = control.catalogue.current
    spec = catalogue.models.get(name)
    return spec is not None and _talks(catalogue, spec, control.clock())


def default_model(control: Control) -> str | None:
    """The model of an agent that names none: that of the project `default`, else the first by name that stays."""
    catalogue, now = control.catalogue.current, control.clock()
    project = catalogue.projects.get(_DEFAULT_PROJECT)
    names = sorted(catalogue.models, key=lambda name: (catalogue.models[name].deprecated, name))
    if project is not None:
        names.insert(0, project.model)
    known = catalogue.models
    return next((name for name in names if name in known and _talks(catalogue, known[name], now)), None)


def sunset(spec: ModelSpec) -> float | None:
    """Unix seconds of the moment from which agents cannot choose the model."""
    return None if spec.sunset_at is None else moment_of(spec.sunset_at)


def _talks(catalogue: Catalogue, spec: ModelSpec, now: float) -> bool:
    engine = catalogue.engines.get(spec.engine)
    embeds = engine is not None and engine.traits.embeds
    return not embeds and not generates_images(catalogue, spec) and _stays(spec, now)


def _stays(spec: ModelSpec, now: float) -> bool:
    end = sunset(spec)
    return end is None or end > now
