"""A server's own settings: a file in the home, the environment over it, command-line flags over both.

In the environment a path is spelled `CROCEVIA_SERVER__PORT`, without regard to case or to single underscores.
"""

from crocevia.config.loading import load, refuse_declared, setting_paths
from crocevia.config.settings import (
    Auth,
    Calls,
    Files,
    GatewaySettings,
    Images,
    LogSettings,
    Origin,
    ResponsesSettings,
    Search,
    ServerSettings,
    Settings,
    TurnsSettings,
)

__all__ = [
    "Auth",
    "Calls",
    "Files",
    "GatewaySettings",
    "Images",
    "LogSettings",
    "Origin",
    "ResponsesSettings",
    "Search",
    "ServerSettings",
    "Settings",
    "TurnsSettings",
    "load",
    "refuse_declared",
    "setting_paths",
]
