"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from typing import Any

from .base import Resource


class Agent(Resource, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    description: str | None
    system_prompt: str
    model: str | None
    mode: str
    tools_enabled: list[AgentTool]
    external_tools_enabled: list[AgentTool]
    permissions: dict[str, Any]
    can_write_knowledge: bool
    can_write_skills: bool
    config: dict[str, Any]
    created_at: str
    updated_at: str


class AgentTool(Resource, frozen=True, kw_only=True):
    name: str


class ApiKey(Resource, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: list[str]
    expires_at: str | None
    revoked_at: str | None
    created_at: str


class ApiKeyCreated(Resource, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: list[str]
    expires_at: str | None
    revoked_at: str | None
    created_at: str
    token: str


class Capabilities(Resource, frozen=True, kw_only=True):
    protocol_version: int
    families: list[str]
    event_types: list[str]
    tool_kinds: list[str]
    features: list[str]
    contract_version: int | None = None
    supported_contract_versions: list[int] | None = None
    legacy_v2_mode: str | None = None


class CapabilitiesLegacy(Resource, frozen=True, kw_only=True):
    protocol_version: int
    families: list[str]
    event_types: list[str]
    tool_kinds: list[str]
    features: list[str]


class Chat(Resource, frozen=True, kw_only=True):
    id: str
    workspace_id: str
    user_id: str
    team_id: str
    created_at: str
    updated_at: str
    title: str | None = None


class ChatForked(Resource, frozen=True, kw_only=True):
    source_chat_id: str
    destination_chat_id: str


class ChatMessageAccepted(Resource, frozen=True, kw_only=True):
    status: str
    turn_id: str
    attachment_ids: list[str] | None = None


class Health(Resource, frozen=True, kw_only=True):
    status: str
    timestamp: str | None = None
    app: str | None = None
    env: str | None = None


class Jwk(Resource, frozen=True, kw_only=True):
    kty: str
    crv: str
    x: str
    kid: str
    use: str
    alg: str


class JwksDocument(Resource, frozen=True, kw_only=True):
    keys: list[Jwk]


class ModelCatalogEntry(Resource, frozen=True, kw_only=True):
    model: str
    providers: list[str]
    price_classes: list[ModelPriceClass]
    model_settings: list[ModelSetting]


class ModelDefaults(Resource, frozen=True, kw_only=True):
    orchestrator: str
    subagent: str


class ModelList(Resource, frozen=True, kw_only=True):
    object: str
    data: list[dict[str, Any]]
    defaults: ModelDefaults


class ModelPriceClass(Resource, frozen=True, kw_only=True):
    key: str
    label: str
    providers_count: int
    average_price: dict[str, Any]


class ModelSetting(Resource, frozen=True, kw_only=True):
    key: str
    type: str
    providers: list[str]
    default: Any = None
    enum: list[str] | None = None
    range: list[int] | None = None
    defaults_by_provider: dict[str, Any] | None = None


class RestoreChatAccepted(Resource, frozen=True, kw_only=True):
    status: str
    turn_id: str | None


class Team(Resource, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    description: str | None
    orchestrator_id: str
    members: list[TeamMember]
    created_at: str
    updated_at: str


class TeamMember(Resource, frozen=True, kw_only=True):
    agent_definition_id: str
    name: str
    position: int
    role: str | None


class TurnAccepted(Resource, frozen=True, kw_only=True):
    turn_id: str


class UserTool(Resource, frozen=True, kw_only=True):
    id: str
    name: str
    kind: str
    description: str | None
    parameters: dict[str, Any]
    timeout_seconds: int
    created_at: str
    updated_at: str


class WebhookOk(Resource, frozen=True, kw_only=True):
    status: str


class Workspace(Resource, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    metadata: dict[str, Any] | list[Any]
    created_at: str
    updated_at: str


class WorkspaceFile(Resource, frozen=True, kw_only=True):
    path: str
    name: str
    type: str
    size: int
    modified_at: str | None
    mime_type: str | None
    content: str | None = None
    entries: list[WorkspaceFileEntry] | None = None


class WorkspaceFileEntry(Resource, frozen=True, kw_only=True):
    path: str
    name: str
    type: str
    size: int
    modified_at: str | None
    mime_type: str | None
