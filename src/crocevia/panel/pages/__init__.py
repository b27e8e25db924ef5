"""Every page of the panel; a module per page, each with its `PAGES`."""

from __future__ import annotations

from typing import Final

from crocevia.panel.pages.agents import PAGES as AGENTS
from crocevia.panel.pages.api import PAGES as API
from crocevia.panel.pages.audit import PAGES as AUDIT
from crocevia.panel.pages.calls import PAGES as CALLS
from crocevia.panel.pages.chats import PAGES as CHATS
from crocevia.panel.pages.engines import PAGES as ENGINES
from crocevia.panel.pages.entry import PAGES as ENTRY
from crocevia.panel.pages.files import PAGES as FILES
from crocevia.panel.pages.keys import PAGES as KEYS
from crocevia.panel.pages.mcp import PAGES as MCP
from crocevia.panel.pages.models import PAGES as MODELS
from crocevia.panel.pages.overview import PAGES as OVERVIEW
from crocevia.panel.pages.playground import PAGES as PLAYGROUND
from crocevia.panel.pages.playground_team import PAGES as PLAYGROUND_TEAM
from crocevia.panel.pages.projects import PAGES as PROJECTS
from crocevia.panel.pages.recipes import PAGES as RECIPES
from crocevia.panel.pages.settings import PAGES as SETTINGS
from crocevia.panel.pages.waiting import PAGES as WAITING
from crocevia.panel.pages.webhooks import PAGES as WEBHOOKS
from crocevia.panel.web import Page

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
    *MCP,
    *AUDIT,
    *API,
    *PLAYGROUND,
    *PLAYGROUND_TEAM,
)
