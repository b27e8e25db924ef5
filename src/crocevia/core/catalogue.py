"""What an operator declares: engines, models, projects, users, recipes, agents, teams.

The same values are read by `crocevia apply`, kept by storage and served from memory to the hot path.
Unset limits mean unlimited; unset permissions mean no. Secrets are never in here: an engine's key lives in
`keys/` or in the environment, a project's key only as its digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import msgspec

from crocevia.core.calls import ReasoningMode
from crocevia.core.needs import CallBlock, EngineNeeds, Spelling

EngineKind = Literal[
    "anthropic",
    "openai-chat",
    "openai-responses",
    "openai-images",
    "openai-embeddings",
    "llama",
    "scripted",
]


class EngineTraits(msgspec.Struct, frozen=True, kw_only=True):
    """What the rest of the program must know of a kind of engine."""

    local: bool = False
    """It runs in a process of ours and is free; its models need no upstream id."""
    loads_weights: bool = False
    """It loads weights first, which is slow."""
    scripted: bool = False
    """It takes a `script`."""
    embeds: bool = False
    """Texts in, vectors out."""
    image_models: Literal["all", "named", "none"] = "none"
    """Which of its models make pictures; `named`: those with the upstream id `image`."""
    price_list: str = ""
    """Whose public prices hold for its models where its address does not tell the provider."""
    needs: EngineNeeds = EngineNeeds()
    """What it needs of a request, whatever the model; an engine narrows it in its `Abilities`."""


_LETTERS: Final = "a-zA-Z0-9_-"
_COMBINATIONS: Final = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const"})
_ANTHROPIC: Final = EngineNeeds(
    tool_names=Spelling(_LETTERS, 64),
    call_ids=Spelling(_LETTERS, 64),
    call_block=CallBlock("tool_use", "id", "name"),
    whole_schemas=True,
    refused_at_root=_COMBINATIONS,
    alternating=True,
    begins_with_user=True,
    blank_texts=False,
    blank_stops=False,
    temperature=(0.0, 1.0),
)
_OPENAI_CHAT: Final = EngineNeeds(
    tool_names=Spelling(_LETTERS, 64),
    call_ids=Spelling(r"\x21-\x7e", 40),
    whole_schemas=True,
    refused_at_root=_COMBINATIONS,
    alternating=True,
    blank_texts=False,
)
_OPENAI_RESPONSES: Final = EngineNeeds(
    tool_names=Spelling(_LETTERS, 64),
    call_ids=Spelling(r"\x21-\x7e", 64),
    call_block=CallBlock("function_call", "call_id", "name"),
    whole_schemas=True,
    refused_at_root=_COMBINATIONS,
    blank_texts=False,
)
ENGINE_TRAITS: Final[Mapping[EngineKind, EngineTraits]] = MappingProxyType(
    {
        "anthropic": EngineTraits(price_list="anthropic", needs=_ANTHROPIC),
        "openai-chat": EngineTraits(price_list="openai", needs=_OPENAI_CHAT),
        "openai-responses": EngineTraits(price_list="openai", needs=_OPENAI_RESPONSES),
        "openai-images": EngineTraits(price_list="openai", image_models="all"),
        "openai-embeddings": EngineTraits(price_list="openai", embeds=True),
        "llama": EngineTraits(local=True, loads_weights=True),
        "scripted": EngineTraits(local=True, scripted=True, image_models="named"),
    }
)
ToolRule = Literal["allow", "ask", "deny"]


class _Declared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Unknown fields are refused with their name: a misspelt limit must not mean «unlimited»."""


class EngineSpec(_Declared, frozen=True, kw_only=True):
    """A connection to a provider."""

    name: str
    kind: EngineKind
    base_url: str | None = None
    api_key_env: str | None = None
    script: list[dict[str, Any]] | None = None
    """The rules of a `scripted` engine (see engines/scripted/steps.py)."""

    @property
    def traits(self) -> EngineTraits:
        return ENGINE_TRAITS[self.kind]


class Prices(_Declared, frozen=True, kw_only=True):
    """USD per million tokens. Missing cache prices are 0.1 and 1.25 times `input`."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class ModelSpec(_Declared, frozen=True, kw_only=True):
    """A model by the name that callers use."""

    name: str
    engine: str
    """The name of its engine."""
    upstream: str = ""
    """What the provider calls it."""
    reserve: str | None = None
    """The model that answers an open tool round whose provider blocks are missing."""
    reasoning: ReasoningMode = "off"
    think_tags: bool = False
    """It begins its answers with `<think>…</think>`: that is reasoning, and no part of the answer."""
    voice_in_apps: bool = False
    """`instructions` come first in agent calls too; otherwise an application's own take their place."""
    novelty: str | None = None
    """A line about what is new in it, for people."""
    instructions: str | None = None
    context_window: int | None = None
    """Tokens."""
    max_pages: int = 600
    """Of one document."""
    prices: Prices | None = None
    deprecated: bool = False
    """Still served, but not for long."""
    sunset_at: str | None = None
    """RFC 3339; agents cannot choose the model from then on."""


class Permissions(_Declared, frozen=True, kw_only=True):
    """What a project may send or use beyond text."""

    documents: bool = False
    images: bool = False
    web_search: bool = False


class ProjectSpec(_Declared, frozen=True, kw_only=True):
    """A tenant of the `pepper` door."""

    name: str
    model: str
    mode: Literal["standard", "agent"] = "standard"
    """`standard` may use the classic API only."""
    hourly_limit: int | None = None
    """Calls in any 60 minutes."""
    daily_budget_usd: float | None = None
    soft_threshold_usd: float | None = None
    """Today's spend at which `webhook_url` is told."""
    webhook_url: str | None = None
    """Told once a day, signed."""
    max_concurrency: int | None = None
    timezone: str = "UTC"
    """Whose midnight begins a day of the budget."""
    keep_texts_days: int = 0
    """How long conversations of the classic API are stored; 0: never on disk."""
    permissions: Permissions = Permissions()


class UserSpec(_Declared, frozen=True, kw_only=True):
    """What a user's agents and API keys may use of models, whatever the protocol. Unset: unlimited."""

    name: str
    hourly_limit: int | None = None
    daily_budget_usd: float | None = None
    max_concurrency: int | None = None
    timezone: str = "UTC"


class RecipeSpec(_Declared, frozen=True, kw_only=True):
    """The instructions of one kind of task (`encode` on the wire) of the classic API."""

    encode: str
    instructions: str


DeclaredTool: TypeAlias = str | dict[str, Any]
"""A tool's name, or an object with it under `name` and whatever else its owner keeps there."""


class AgentSpec(_Declared, frozen=True, kw_only=True):
    """An agent of a declared user."""

    name: str
    mode: Literal["primary", "subagent"] = "subagent"
    model: str | None = None
    description: str | None = None
    system_prompt: str = ""
    tools: tuple[DeclaredTool, ...] = ()
    """Of the platform, and of MCP servers."""
    external_tools: tuple[DeclaredTool, ...] = ()
    """Of the owner's own programs (client tools)."""
    permissions: dict[str, ToolRule] = {}
    can_write_knowledge: bool = False
    can_write_skills: bool = False
    config: dict[str, Any] = {}

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(tool if isinstance(tool, str) else tool["name"] for tool in self.tools)


class TeamSpec(_Declared, frozen=True, kw_only=True):
    """A team of declared agents and who leads it."""

    name: str
    orchestrator: str
    description: str | None = None
    members: tuple[str, ...] = ()
    roles: dict[str, str] = {}
    """What members are there for, by name."""
