"""Every page of the panel; a module per page, each with its `PAGES`."""

from __future__ import annotations

from typing import Final

from crocevia.panel.web import Page

from .agents import PAGES as AGENTS
from .api import PAGES as API
from .audit import PAGES as AUDIT
from .calls import PAGES as CALLS
from .engines import PAGES as ENGINES
from .entry import PAGES as ENTRY
from .keys import PAGES as KEYS
from .models import PAGES as MODELS
from .overview import PAGES as OVERVIEW
from .playground import PAGES as PLAYGROUND
from .projects import PAGES as PROJECTS
from .recipes import PAGES as RECIPES
from .settings import PAGES as SETTINGS

PAGES: Final[tuple[Page, ...]] = (
    *ENTRY,
    *OVERVIEW,
    *CALLS,
    *PROJECTS,
    *RECIPES,
    *MODELS,
    *ENGINES,
    *AGENTS,
    *KEYS,
    *SETTINGS,
    *AUDIT,
    *API,
    *PLAYGROUND,
)
