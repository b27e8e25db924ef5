"""Recipes: instructions by encode, for calls that bring only a text."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core import json
from crocevia.core.catalogue import RecipeSpec
from crocevia.panel import samples
from crocevia.panel.forms import Field
from crocevia.panel.pages.resource import Resource
from crocevia.panel.web import PageRequest, PageResponse, PageView
from crocevia.panel.writing import load


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[RecipeSpec]


async def show(request: PageRequest) -> PageResponse:
    rows = list((await load(request, "recipes")).values())
    title = request.t("recipes.title")
    return PageView(template="recipes", context=Listing(rows=rows), title=title, nav="projects")


def _call(request: PageRequest, name: str) -> list[samples.Sample]:
    project = next(iter(request.services.catalogue.current.projects), "default")
    body = json.encode({"encode": name, "contenuto": "Un testo lungo."}).decode()
    secret, named = {"X-Pepper-Key": samples.PROJECT_KEY}, {"X-Pepper-Project": project}
    return samples.request(request.origin, "/api.php", body, secret, named)


RESOURCE: Final = Resource(
    table="recipes",
    nav="projects",
    key="encode",
    fields=(Field("encode"), Field("instructions", "area")),
    code=_call,
)
PAGES: Final = RESOURCE.pages(show)
