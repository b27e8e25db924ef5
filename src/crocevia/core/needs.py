"""What an engine needs of a request: data beside its traits, which `runtime.fitting` makes every request meet."""

from __future__ import annotations

from typing import Literal

import msgspec

Continuation = Literal["always", "without_reasoning", "never"]


class Spelling(msgspec.Struct, frozen=True):
    """How a name must be spelled."""

    characters: str
    """Those that may stand in it, as inside the brackets of a regular expression; `a-z0-9_` are always among them."""
    length: int
    """The most."""


class CallBlock(msgspec.Struct, frozen=True):
    """How a tool call looks among a provider's blocks: the kind of block, and its fields with the id and the name."""

    kind: str
    id: str
    name: str


class EngineNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults need nothing."""

    tool_names: Spelling | None = None
    call_ids: Spelling | None = None
    call_block: CallBlock | None = None
    """None: the provider gives no blocks."""
    whole_schemas: bool = False
    """A tool's schema must tell its properties, and its arrays what they hold."""
    refused_at_root: frozenset[str] = frozenset()
    """Keywords that may not stand at the root of a tool's schema."""
    alternating: bool = False
    """No two messages of the same role may follow each other."""
    begins_with_user: bool = False
    ends_with_assistant: Continuation = "always"
    """When the last message may be the assistant's, to be continued."""
    blank_texts: bool = True
    """Texts may be empty or blank."""
    blank_stops: bool = True
    """A stop sequence may be blank, though never empty."""
    temperature: tuple[float, float] = (0.0, 2.0)
    """The least and the most."""
    image_side: int = 8000
    """Pixels; a larger picture is made smaller."""
