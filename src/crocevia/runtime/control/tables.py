"""The two kinds of settings, by the names of their tables: never mixed, each refused by the other's command."""

from __future__ import annotations

from typing import Final

DECLARED_TABLES: Final = ("engines", "models", "projects", "users", "recipes", "agents", "teams")
SERVER_TABLES: Final = ("server", "log", "calls", "turns", "limits", "mcp", "search", "gateway")
