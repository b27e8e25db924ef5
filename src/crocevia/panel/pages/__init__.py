"""Every page of the panel; a module per page, each with its `PAGES`."""

from __future__ import annotations

from typing import Final

from crocevia.panel.web import Page

from .agents import PAGES as AGENTS
from .api import PAGES as API
from .audit import PAGES as AUDIT
from .calls import PAGES as CALLS
from .chats import PAGES as CHATS
from .engines import PAGES as ENGINES
from .entry import PAGES as ENTRY
from .files import PAGES as FILES
from .keys import PAGES as KEYS
from .models import PAGES as MODELS
from .overview import PAGES as OVERVIEW
from .playground import PAGES as PLAYGROUND
from .playground_team import PAGES as PLAYGROUND_TEAM
from .projects import PAGES as PROJECTS
from .recipes import PAGES as RECIPES
from .settings import PAGES as SETTINGS
from .waiting import PAGES as WAITING
from .webhooks import PAGES as WEBHOOKS

PAGES: Final[tuple[Page, ...]] = (
    *ENTRY,
    *OVERVIEW,
    *CALLS,
    *CHATS,
    *WAITING,
    *PROJECTS,
    *RECIPES,
    *MODELS,
    *ENGINES,
    *AGENTS,
    *SETTINGS,
    *KEYS,
    *FILES,
    *WEBHOOKS,
    *AUDIT,
    *API,
    *PLAYGROUND,
    *PLAYGROUND_TEAM,
)
