"""The settings that a new home begins with: a file to read and change, never written over."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from crocevia.storage.home import Home

QUICKSTART: Final = """\
# Settings of this server, read when it starts. What it serves (models, projects, agents) is declared with
# `crocevia apply`. Every key here can also come from the environment: CROCEVIA_SERVER__PORT=8111.

[server]
# host = "127.0.0.1"
# port = 8111
# public_url = "https://agents.example.com"

[gateway.auth]
# token: the operator's token that was printed once. password, trusted-proxy, none: see docs/responses.md.
mode = "token"

# The OpenAI-like surface: /v1/responses, /v1/chat/completions, /v1/embeddings, /v1/models. Off without this line.
[gateway.http.endpoints.responses]
enabled = true

# Agents answer as `openclaw/<agent>`. With this, models answer by their own names too.
[gateway.http.models]
exposeCatalog = false
"""


def write_quickstart(home: Home) -> None:
    """Leave the file in a home that has no settings yet. A folder that cannot be written keeps its defaults."""
    if (home.path / "crocevia.json5").exists():
        return
    with suppress(OSError), home.settings.open("x", encoding="utf-8") as file:
        file.write(QUICKSTART)
