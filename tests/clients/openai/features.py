"""What every client must be seen doing, or the reason why it cannot."""

from __future__ import annotations

from typing import Final

FEATURES: Final = (
    "text",
    "stream",
    "tools",
    "structured",
    "image",
    "file",
    "chained",
    "cancelled",
    "drip",
    "faults",
)
# What a client has no way to ask for; everything else of the table is driven.
REASONS: Final[dict[tuple[str, str], str]] = {
    ("codex", "file"): "it reads files itself, by its own tools, and sends none",
}
CLIENTS: Final = (
    "openai",
    "openai-agents",
    "pydantic-ai",
    "langchain",
    "llm",
    "openai-npm",
    "ai-sdk/openai",
    "ai-sdk/open-responses",
    "codex",
)


def needed(client: str) -> tuple[str, ...]:
    """The features that the client's test must drive."""
    return tuple(feature for feature in FEATURES if (client, feature) not in REASONS)
