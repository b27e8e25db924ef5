"""Recipes: instructions by encode, for calls that bring only a text."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.catalogue import RecipeSpec
from crocevia.panel import words
from crocevia.panel.forms import Field
from crocevia.panel.web import Answer, Ask, Shown
from crocevia.panel.writing import load

from .resource import Resource


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[RecipeSpec]


async def show(ask: Ask) -> Answer:
    rows = list((await load(ask, "recipes")).values())
    title = words.say(ask.language, "recipes.title")
    return Shown(template="recipes", context=Listing(rows=rows), title=title, nav="projects")


RESOURCE: Final = Resource(
    table="recipes", nav="projects", key="encode", fields=(Field("encode"), Field("instructions", "area"))
)
PAGES: Final = RESOURCE.pages(show)
