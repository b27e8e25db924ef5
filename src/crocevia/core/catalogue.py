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

EngineKind = Literal[
    "anthropic",
    "openai-chat",
    "openai-responses",
    "openai-images",
    "openai-embeddings",
    "llama",
    "scripted",
]


class KindFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the rest of the program must know of a kind of engine.

    own: it answers by itself, for nothing, and its models need no upstream id. weights: it loads weights in a process
    of ours, slowly. plays: it takes a `script`. embeds: texts in, vectors out. paints: all of its models make pictures,
    none does, or those `named` with the upstream id `image`. seller: whose price list its models are on where its
    address does not say.
    """

    own: bool = False
    weights: bool = False
    plays: bool = False
    embeds: bool = False
    paints: Literal["all", "named", "none"] = "none"
    seller: str = ""


KIND_FACTS: Final[Mapping[EngineKind, KindFacts]] = MappingProxyType(
    {
        "anthropic": KindFacts(seller="anthropic"),
        "openai-chat": KindFacts(seller="openai"),
        "openai-responses": KindFacts(seller="openai"),
        "openai-images": KindFacts(seller="openai", paints="all"),
        "openai-embeddings": KindFacts(seller="openai", embeds=True),
        "llama": KindFacts(own=True, weights=True),
        "scripted": KindFacts(own=True, plays=True, paints="named"),
    }
)
ToolRule = Literal["allow", "ask", "deny"]


class _Declared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Unknown fields are refused with their name: a misspelt limit must not mean «unlimited»."""


class EngineSpec(_Declared, frozen=True, kw_only=True):
    """A connection to a provider. `script`: the rules of a `scripted` engine (see engines/scripted/steps.py)."""

    name: str
    kind: EngineKind
    base_url: str | None = None
    api_key_env: str | None = None
    script: list[dict[str, Any]] | None = None

    @property
    def facts(self) -> KindFacts:
        return KIND_FACTS[self.kind]


class Prices(_Declared, frozen=True, kw_only=True):
    """USD per million tokens. Missing cache prices are 0.1 and 1.25 times `input`."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class ModelSpec(_Declared, frozen=True, kw_only=True):
    """A named brain. `upstream`: the provider's id. `reserve`: the model that closes a round without blocchi.

    deprecated: still there, not for long. sunset_at: the moment (RFC 3339) from which agents cannot choose it.
    """

    name: str
    engine: str
    upstream: str = ""
    reserve: str | None = None
    reasoning: ReasoningMode = "off"
    voice_in_apps: bool = False
    novelty: str | None = None
    instructions: str | None = None
    context_window: int | None = None
    max_pages: int = 600
    prices: Prices | None = None
    deprecated: bool = False
    sunset_at: str | None = None


class Permissions(_Declared, frozen=True, kw_only=True):
    documents: bool = False
    images: bool = False
    web_search: bool = False


class ProjectSpec(_Declared, frozen=True, kw_only=True):
    """A Pepper tenant. `keep_texts_days = 0`: the record is metadata only.

    webhook_url: told once a day, signed, when `soft_threshold_usd` is reached.
    """

    name: str
    model: str
    mode: Literal["standard", "agent"] = "standard"
    hourly_limit: int | None = None
    daily_budget_usd: float | None = None
    soft_threshold_usd: float | None = None
    webhook_url: str | None = None
    max_concurrency: int | None = None
    timezone: str = "UTC"
    keep_texts_days: int = 0
    permissions: Permissions = Permissions()


class UserSpec(_Declared, frozen=True, kw_only=True):
    """What a user's agents and API keys may use of models, whatever the protocol. Unset: unlimited."""

    name: str
    hourly_limit: int | None = None
    daily_budget_usd: float | None = None
    max_concurrency: int | None = None
    timezone: str = "UTC"


class RecipeSpec(_Declared, frozen=True, kw_only=True):
    encode: str
    instructions: str


DeclaredTool: TypeAlias = str | dict[str, Any]
"""A tool's name, or an object with it under `name` and whatever else its owner keeps there."""


class AgentSpec(_Declared, frozen=True, kw_only=True):
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
    name: str
    orchestrator: str
    description: str | None = None
    members: tuple[str, ...] = ()
    roles: dict[str, str] = {}
    """What members are there for, by name."""
