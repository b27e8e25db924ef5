// Generated from the contract by scripts/generate.mjs: do not edit.

import type { Resource } from "../resources.js";

export interface Agent extends Resource {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly description: string | null;
  readonly system_prompt: string;
  readonly model: string | null;
  readonly mode: string;
  readonly tools_enabled: AgentTool[];
  readonly external_tools_enabled: AgentTool[];
  readonly permissions: Record<string, unknown>;
  readonly can_write_knowledge: boolean;
  readonly can_write_skills: boolean;
  readonly config: Record<string, unknown>;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface AgentTool extends Resource {
  readonly name: string;
}

export interface ApiKey extends Resource {
  readonly id: string;
  readonly name: string;
  readonly scopes: string[];
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly created_at: string;
}

export interface ApiKeyCreated extends Resource {
  readonly id: string;
  readonly name: string;
  readonly scopes: string[];
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly created_at: string;
  readonly token: string;
}

export interface AttachmentConversion extends Resource {
  readonly status: string;
  readonly error_code: string | null;
  readonly recoverable: boolean;
  readonly next_retry_at: string | null;
  readonly retryable: boolean;
}

export interface BatchSizes extends Resource {
  readonly inbox: number;
  readonly outbox: number;
}

export interface BillingState extends Resource {
  readonly status: string;
}

export interface Capabilities extends Resource {
  readonly protocol_version: number;
  readonly families: string[];
  readonly event_types: string[];
  readonly tool_kinds: string[];
  readonly features: string[];
  readonly contract_version?: number | null;
  readonly supported_contract_versions?: number[] | null;
  readonly legacy_v2_mode?: string | null;
}

export interface CapabilitiesLegacy extends Resource {
  readonly protocol_version: number;
  readonly families: string[];
  readonly event_types: string[];
  readonly tool_kinds: string[];
  readonly features: string[];
}

export interface CatalogEntry extends Resource {
  readonly entry_id: string;
  readonly type: string;
  readonly target_id: string;
  readonly canonical_path: string;
  readonly description: string;
  readonly inserted_at: string;
}

export interface Categories extends Resource {
  readonly categories: Category[];
  readonly catalog_revision: number;
}

export interface Category extends Resource {
  readonly category_id: string;
  readonly name: string;
  readonly description: string;
}

export interface CategoryIndex extends Resource {
  readonly entries: CatalogEntry[];
  readonly total_count: number;
  readonly returned_count: number;
  readonly requested_range: IndexRange | null;
  readonly actual_range: IndexRange | null;
  readonly catalog_revision: number;
  readonly is_complete: boolean;
}

export interface Chat extends Resource {
  readonly id: string;
  readonly workspace_id: string;
  readonly user_id: string;
  readonly team_id: string;
  readonly title?: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ChatAttachment extends Resource {
  readonly attachment_id: string;
  readonly workspace_id: string;
  readonly chat_id: string;
  readonly original_name: string;
  readonly mime_type: string;
  readonly byte_size: number;
  readonly lifecycle: string;
  readonly revision: number;
  readonly conversion: AttachmentConversion;
  readonly derived: ChatAttachmentDerived | null;
  readonly expires_at: string;
  readonly attached_at: string | null;
  readonly usage_cost: UsageCost;
}

export interface ChatAttachmentDerived extends Resource {
  readonly sha256: string;
  readonly bytes: number;
  readonly conversion: Record<string, unknown>;
}

export interface ChatForked extends Resource {
  readonly source_chat_id: string;
  readonly destination_chat_id: string;
}

export interface ChatMessageAccepted extends Resource {
  readonly status: string;
  readonly turn_id: string;
  readonly attachment_ids?: string[] | null;
}

export interface Completion extends Resource {
  readonly id: string;
  readonly workspace_id: string;
  readonly chat_id: string;
  readonly team_id: string;
  readonly user_id: string;
  readonly model_orchestrator?: string | null;
  readonly models_subagents: string[];
  readonly started_at: string;
  readonly finished_at?: string | null;
  readonly duration_ms?: number | null;
  readonly usage: CompletionUsage;
  readonly billing?: BillingState | null;
  readonly usage_cost?: UsageCost | null;
  readonly terminal_snapshot?: CompletionTerminalSnapshot | null;
  readonly cost_usd: number | null;
  readonly status: string;
  readonly finish_reason?: string | null;
  readonly content_hash?: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface CompletionCollection extends Resource {
  readonly data: Completion[];
  readonly links: CompletionCollectionLinks;
  readonly meta: CompletionCollectionMeta;
}

export interface CompletionCollectionLinks extends Resource {
  readonly first?: string | null;
  readonly last?: string | null;
  readonly prev?: string | null;
  readonly next?: string | null;
}

export interface CompletionCollectionMeta extends Resource {
  readonly current_page?: number | null;
  readonly from?: number | null;
  readonly last_page?: number | null;
  readonly per_page?: number | null;
  readonly to?: number | null;
  readonly total?: number | null;
}

export interface CompletionTerminalSnapshot extends Resource {
  readonly event_id: string;
  readonly occurred_at: string;
  readonly event_type: string;
  readonly data: CompletionTerminalSnapshotData;
  readonly v?: number | null;
  readonly accepted_protocol_version?: number | null;
}

export interface CompletionTerminalSnapshotChatUsage extends Resource {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_usd: number | null;
  readonly duration_ms: number;
  readonly sprite_ms?: number | null;
  readonly sprite_ram_gb_ms?: number | null;
  readonly tool_calls?: number | null;
  readonly billing?: BillingState | null;
  readonly usage_cost?: UsageCost | null;
}

export interface CompletionTerminalSnapshotData extends Resource {
  readonly turn_id: string;
  readonly usage?: CompletionTerminalSnapshotUsage | null;
  readonly cost?: number | null;
  readonly finish_reason?: string | null;
  readonly reason?: string | null;
  readonly code?: string | null;
  readonly message?: string | null;
  readonly chat_usage?: CompletionTerminalSnapshotChatUsage | null;
  readonly chat_cost?: number | null;
}

export interface CompletionTerminalSnapshotUsage extends Resource {
  readonly input_tokens?: number | null;
  readonly output_tokens?: number | null;
  readonly duration_ms?: number | null;
  readonly sprite_ms?: number | null;
  readonly sprite_ram_gb_ms?: number | null;
  readonly tool_calls?: number | null;
  readonly cost_usd?: number | null;
  readonly billing?: BillingState | null;
  readonly usage_cost?: UsageCost | null;
}

export interface CompletionUsage extends Resource {
  readonly prompt_tokens?: number | null;
  readonly completion_tokens?: number | null;
  readonly sprite_cpu_ms?: number | null;
  readonly sprite_ram_gb_ms?: number | null;
}

export interface ConversionState extends Resource {
  readonly status: string;
  readonly error_code?: string | null;
  readonly recoverable?: boolean | null;
  readonly next_retry_at?: string | null;
}

export interface CurrencyAmount extends Resource {
  readonly currency: string;
  readonly amount: string;
}

export interface FileOutcome extends Resource {
  readonly file_id: string;
  readonly status: string;
  readonly error_code: string | null;
}

export interface Health extends Resource {
  readonly status: string;
  readonly timestamp?: string | null;
  readonly app?: string | null;
  readonly env?: string | null;
}

export interface ImageGenerationAcceptedRecord extends Resource {
  readonly id: string;
  readonly status: string;
  readonly provider: string;
  readonly initial_provider: string;
  readonly routed: boolean;
  readonly model: string;
  readonly webhook_url: string;
  readonly status_url: string;
  readonly created_at: string;
  readonly expires_at: string;
}

export interface ImageGenerationStatusError extends Resource {
  readonly code?: string | null;
  readonly message?: string | null;
  readonly meta?: Record<string, unknown> | null;
}

export interface ImageGenerationStatusFile extends Resource {
  readonly artifact_id: string;
  readonly mime_type: string;
  readonly size: number;
  readonly download_url: string | null;
}

export interface ImageGenerationStatusRecord extends Resource {
  readonly id: string;
  readonly status: string;
  readonly provider: string;
  readonly initial_provider: string;
  readonly routed: boolean;
  readonly model: string;
  readonly created_at: string;
  readonly submitted_at: string | null;
  readonly completed_at: string | null;
  readonly expires_at: string;
  readonly result?: ImageGenerationStatusResult | null;
  readonly error?: ImageGenerationStatusError | null;
  readonly files?: ImageGenerationStatusFile[] | null;
  readonly price?: ImagePrice | null;
  readonly usage?: ImageUsage | null;
  readonly cost_usd?: number | null;
  readonly duration_ms?: number | null;
}

export interface ImageGenerationStatusResult extends Resource {
  readonly model?: string | null;
  readonly provider?: string | null;
  readonly prompt?: string | null;
  readonly images?: ImageGenerationStatusResultImage[] | null;
  readonly dimensions?: ImageGenerationStatusResultDimensions | null;
  readonly aspect_ratio?: string | null;
  readonly format?: string | null;
  readonly quality?: number | null;
  readonly warnings?: Record<string, unknown> | unknown[] | null;
}

export interface ImageGenerationStatusResultDimensions extends Resource {
  readonly width?: number | null;
  readonly height?: number | null;
}

export interface ImageGenerationStatusResultImage extends Resource {
  readonly provider_asset_id?: string | null;
  readonly mime_type?: string | null;
  readonly source_url?: string | null;
  readonly format?: string | null;
}

export interface ImagePrice extends Resource {
  readonly amount: string;
  readonly currency: string;
  readonly source: string;
}

export interface ImageUploadRecord extends Resource {
  readonly id: string;
  readonly mime_type: string;
  readonly size: number;
  readonly original_filename: string;
  readonly expires_at: string;
  readonly created_at: string;
}

export interface ImageUsage extends Resource {
  readonly schema_version: number;
  readonly attempts_total: number;
  readonly attempts_priced: number;
}

export interface IndexRange extends Resource {
  readonly from: number;
  readonly to: number;
}

export interface IndexingState extends Resource {
  readonly status: string;
}

export interface Jwk extends Resource {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly kid: string;
  readonly use: string;
  readonly alg: string;
}

export interface JwksDocument extends Resource {
  readonly keys: Jwk[];
}

export interface ModelCatalogEntry extends Resource {
  readonly model: string;
  readonly providers: string[];
  readonly price_classes: ModelPriceClass[];
  readonly model_settings: ModelSetting[];
}

export interface ModelDefaults extends Resource {
  readonly orchestrator: string;
  readonly subagent: string;
}

export interface ModelList extends Resource {
  readonly object: string;
  readonly data: ModelListEntry[];
  readonly defaults: ModelDefaults;
}

export interface ModelListEntry extends Resource {
  readonly id: string;
  readonly object: string;
  readonly created?: number | null;
  readonly owned_by: string;
  readonly type: string;
  readonly deprecated: boolean;
  readonly sunset_at: string | null;
  readonly display_name?: string | null;
  readonly description?: string | null;
  readonly canonical_slug?: string | null;
  readonly hugging_face_id?: string | null;
  readonly context_length?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly pricing?: Record<string, unknown> | null;
  readonly architecture?: OpenRouterArchitecture | null;
  readonly supported_parameters?: string[] | null;
  readonly default_parameters?: Record<string, unknown> | null;
  readonly reasoning?: Record<string, unknown> | null;
  readonly knowledge_cutoff?: string | null;
  readonly upstream_expiration_date?: string | null;
  readonly alias_target?: OpenRouterAliasTarget | null;
  readonly is_moderated?: boolean | null;
  readonly synced_at?: string | null;
  readonly team_id?: string | null;
}

export interface ModelPriceClass extends Resource {
  readonly key: string;
  readonly label: string;
  readonly providers_count: number;
  readonly average_price: ModelPriceClassAveragePrice;
}

export interface ModelPriceClassAveragePrice extends Resource {
  readonly amount: string | null;
  readonly currency: string | null;
}

export interface ModelSetting extends Resource {
  readonly key: string;
  readonly type: string;
  readonly providers: string[];
  readonly default?: unknown;
  readonly enum?: string[] | null;
  readonly range?: number[] | null;
  readonly defaults_by_provider?: Record<string, unknown> | null;
}

export interface OpenRouterAliasTarget extends Resource {
  readonly name?: string | null;
  readonly slug?: string | null;
}

export interface OpenRouterArchitecture extends Resource {
  readonly modality?: string | null;
  readonly input_modalities?: string[] | null;
  readonly output_modalities?: string[] | null;
  readonly tokenizer?: string | null;
  readonly instruct_type?: string | null;
}

export interface PhaseResult extends Resource {
  readonly status: string;
  readonly selected: number;
  readonly succeeded: number;
  readonly withdrawn: number;
  readonly failed: number;
  readonly files: FileOutcome[];
}

export interface RestoreChatAccepted extends Resource {
  readonly status: string;
  readonly turn_id: string | null;
}

export interface Team extends Resource {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly description: string | null;
  readonly orchestrator_id: string;
  readonly members: TeamMember[];
  readonly created_at: string;
  readonly updated_at: string;
}

export interface TeamMember extends Resource {
  readonly agent_definition_id: string;
  readonly name: string;
  readonly position: number;
  readonly role: string | null;
}

export interface TurnAccepted extends Resource {
  readonly turn_id: string;
}

export interface UsageCost extends Resource {
  readonly status: string;
  readonly basis: string;
  readonly scope_status: string;
  readonly revision: number;
  readonly as_of: string;
  readonly invocation_count: number;
  readonly pending_invocation_count: number;
  readonly totals: CurrencyAmount[] | null;
  readonly priced_subtotals: CurrencyAmount[];
}

export interface UserTool extends Resource {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly description: string | null;
  readonly parameters: Record<string, unknown>;
  readonly timeout_seconds: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface WebhookOk extends Resource {
  readonly status: string;
}

export interface WikiOperation extends Resource {
  readonly operation_id: string;
  readonly workspace_id: string;
  readonly kind: string;
  readonly status: string;
  readonly phase: string | null;
  readonly phases: WikiOperationPhases;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly batch_sizes: BatchSizes;
  readonly billing: BillingState;
  readonly usage_cost: UsageCost;
}

export interface WikiOperationPhases extends Resource {
  readonly inbox?: PhaseResult | null;
  readonly outbox?: PhaseResult | null;
}

export interface WikiSource extends Resource {
  readonly file_id: string;
  readonly workspace_id: string;
  readonly original_name: string;
  readonly mime_type: string;
  readonly byte_size: number;
  readonly lifecycle: string;
  readonly source_revision: number;
  readonly conversion: ConversionState;
  readonly indexing: IndexingState;
  readonly canonical_raw_path: string | null;
  readonly billing: BillingState;
  readonly usage_cost: UsageCost;
  readonly status_url: string;
}

export interface Workspace extends Resource {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly metadata: Record<string, unknown> | unknown[];
  readonly created_at: string;
  readonly updated_at: string;
}

export interface WorkspaceFile extends Resource {
  readonly path: string;
  readonly name: string;
  readonly type: string;
  readonly size: number;
  readonly modified_at: string | null;
  readonly mime_type: string | null;
  readonly content?: string | null;
  readonly entries?: WorkspaceFileEntry[] | null;
}

export interface WorkspaceFileEntry extends Resource {
  readonly path: string;
  readonly name: string;
  readonly type: string;
  readonly size: number;
  readonly modified_at: string | null;
  readonly mime_type: string | null;
}
