"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from datetime import datetime

from .base import Resource, Value


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
    permissions: dict[str, Value]
    can_write_knowledge: bool
    can_write_skills: bool
    config: dict[str, Value]
    created_at: datetime
    updated_at: datetime


class AgentTool(Resource, frozen=True, kw_only=True):
    name: str


class ApiKey(Resource, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: list[str]
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


class ApiKeyCreated(Resource, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: list[str]
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
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
    created_at: datetime
    updated_at: datetime
    title: str | None = None


class ChatForked(Resource, frozen=True, kw_only=True):
    source_chat_id: str
    destination_chat_id: str


class ChatMessageAccepted(Resource, frozen=True, kw_only=True):
    status: str
    turn_id: str
    attachment_ids: list[str] | None = None


class FileOutcome(Resource, frozen=True, kw_only=True):
    file_id: str
    status: str
    error_code: str | None


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
    data: list[ModelListEntry]
    defaults: ModelDefaults


class ModelListEntry(Resource, frozen=True, kw_only=True):
    id: str
    object: str
    owned_by: str
    type: str
    deprecated: bool
    sunset_at: str | None
    created: int | None = None
    display_name: str | None = None
    description: str | None = None
    canonical_slug: str | None = None
    hugging_face_id: str | None = None
    context_length: int | None = None
    max_completion_tokens: int | None = None
    pricing: dict[str, Value] | None = None
    architecture: OpenRouterArchitecture | None = None
    supported_parameters: list[str] | None = None
    default_parameters: dict[str, Value] | None = None
    reasoning: dict[str, Value] | None = None
    knowledge_cutoff: str | None = None
    upstream_expiration_date: str | None = None
    alias_target: OpenRouterAliasTarget | None = None
    is_moderated: bool | None = None
    synced_at: datetime | None = None
    team_id: str | None = None


class ModelPriceClass(Resource, frozen=True, kw_only=True):
    key: str
    label: str
    providers_count: int
    average_price: ModelPriceClassAveragePrice


class ModelPriceClassAveragePrice(Resource, frozen=True, kw_only=True):
    amount: str | None
    currency: str | None


class ModelSetting(Resource, frozen=True, kw_only=True):
    key: str
    type: str
    providers: list[str]
    default: Value = None
    enum: list[str] | None = None
    range: list[int] | None = None
    defaults_by_provider: dict[str, Value] | None = None


class OpenRouterAliasTarget(Resource, frozen=True, kw_only=True):
    name: str | None = None
    slug: str | None = None


class OpenRouterArchitecture(Resource, frozen=True, kw_only=True):
    modality: str | None = None
    input_modalities: list[str] | None = None
    output_modalities: list[str] | None = None
    tokenizer: str | None = None
    instruct_type: str | None = None


class PhaseResult(Resource, frozen=True, kw_only=True):
    status: str
    selected: int
    succeeded: int
    withdrawn: int
    failed: int
    files: list[FileOutcome]


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
    created_at: datetime
    updated_at: datetime


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
    parameters: dict[str, Value]
    timeout_seconds: int
    created_at: datetime
    updated_at: datetime


class WebhookOk(Resource, frozen=True, kw_only=True):
    status: str


class Workspace(Resource, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    metadata: dict[str, Value] | list[Value]
    created_at: datetime
    updated_at: datetime


class WorkspaceFile(Resource, frozen=True, kw_only=True):
    path: str
    name: str
    type: str
    size: int
    modified_at: datetime | None
    mime_type: str | None
    content: str | None = None
    entries: list[WorkspaceFileEntry] | None = None


class WorkspaceFileEntry(Resource, frozen=True, kw_only=True):
    path: str
    name: str
    type: str
    size: int
    modified_at: datetime | None
    mime_type: str | None


class ChatCollection(Resource, frozen=True, kw_only=True):
    data: list[Chat]
    links: ChatCollectionLinks | None = None


class ChatCollectionLinks(Resource, frozen=True, kw_only=True):
    next: str | None = None
