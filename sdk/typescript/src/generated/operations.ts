// Generated from the contract by scripts/generate.mjs: do not edit.

import type { ByteStream } from "../downloads.js";
import type { Upload } from "../uploads.js";
import type { Agent, ApiKey, ApiKeyCreated, Capabilities, CapabilitiesLegacy, Categories, CategoryIndex, Chat, ChatAttachment, ChatForked, ChatMessageAccepted, Completion, CompletionCollection, Health, ImageGenerationAcceptedRecord, ImageGenerationStatusRecord, ImageUploadRecord, JwksDocument, ModelCatalogEntry, ModelList, RestoreChatAccepted, Team, TurnAccepted, UserTool, WebhookOk, WikiOperation, WikiSource, Workspace, WorkspaceFile } from "./models.js";

export interface AgentToolParam {
  name: string;
}

export interface TeamMemberParam {
  agent_definition_id: string;
  role?: string | null;
}

export interface InputImageParam {
  type: "url" | "base64" | "upload_id";
  payload: string;
  reference?: string | null;
  mime_type?: string | null;
}

export interface ImageDimensionsParam {
  width: number;
  height: number;
}

export interface ContextItemParam {
  kind: "compacted" | "assistant";
  turn_id?: string | null;
  content: string;
}

/** Arguments of `sendChatMessage`. */
export interface SendChatMessageParams {
  idempotency_key?: string;
  message: string;
  attachment_ids?: readonly string[];
}

/** Arguments of `streamChatEvents`. */
export interface StreamChatEventsParams {
  after?: number;
}

/** Arguments of `steerChatTurn`. */
export interface SteerChatTurnParams {
  text: string;
  target_agent_id?: string | null;
}

/** Arguments of `resolveChatTool`. */
export interface ResolveChatToolParams {
  call_id: string;
  output: string;
  is_error?: boolean;
}

/** Arguments of `resolveChatApproval`. */
export interface ResolveChatApprovalParams {
  approval_id: string;
  approve: boolean;
  reason?: string;
}

/** Arguments of `forkChat`. */
export interface ForkChatParams {
  destination_chat_id: string;
}

/** Arguments of `restoreChat`. */
export interface RestoreChatParams {
  orchestrator_context: readonly ContextItemParam[];
}

/** Arguments of `createWorkspace`. */
export interface CreateWorkspaceParams {
  name: string;
  metadata?: Readonly<Record<string, unknown>>;
}

/** Arguments of `updateWorkspace`. */
export interface UpdateWorkspaceParams {
  name?: string;
  metadata?: Readonly<Record<string, unknown>>;
}

/** Arguments of `createUserTool`. */
export interface CreateUserToolParams {
  name: string;
  kind?: "client";
  description?: string | null;
  parameters: Readonly<Record<string, unknown>>;
  timeout_seconds?: number;
}

/** Arguments of `updateUserTool`. */
export interface UpdateUserToolParams {
  description?: string | null;
  parameters?: Readonly<Record<string, unknown>>;
  timeout_seconds?: number;
}

/** Arguments of `createChat`. */
export interface CreateChatParams {
  team_id: string;
}

/** Arguments of `listCompletions`. */
export interface ListCompletionsParams {
  status?: "running" | "succeeded" | "failed" | "canceled";
  model_orchestrator?: string;
  started_at_from?: Date | string;
  started_at_to?: Date | string;
  per_page?: number;
  page?: number;
}

/** Arguments of `indexWorkspaceFiles`. */
export interface IndexWorkspaceFilesParams {
  path: string;
}

/** Arguments of `createWorkspaceFile`. */
export interface CreateWorkspaceFileParams {
  path: string;
  content: string;
}

/** Arguments of `updateWorkspaceFile`. */
export interface UpdateWorkspaceFileParams {
  path: string;
  content: string;
}

/** Arguments of `deleteWorkspaceFile`. */
export interface DeleteWorkspaceFileParams {
  path: string;
  recursive?: boolean;
}

/** Arguments of `downloadWorkspaceFile`. */
export interface DownloadWorkspaceFileParams {
  path: string;
}

/** Arguments of `convertWorkspaceFileToPdf`. */
export interface ConvertWorkspaceFileToPdfParams {
  path: string;
}

/** Arguments of `createAgent`. */
export interface CreateAgentParams {
  name: string;
  description?: string | null;
  system_prompt: string;
  model?: string | null;
  mode: "primary" | "subagent";
  tools_enabled?: readonly AgentToolParam[];
  external_tools_enabled?: readonly AgentToolParam[];
  permissions?: Readonly<Record<string, unknown>>;
  can_write_knowledge?: boolean;
  can_write_skills?: boolean;
  config?: Readonly<Record<string, unknown>>;
}

/** Arguments of `updateAgent`. */
export interface UpdateAgentParams {
  name?: string;
  description?: string | null;
  system_prompt?: string;
  model?: string | null;
  mode?: "primary" | "subagent";
  tools_enabled?: readonly AgentToolParam[];
  external_tools_enabled?: readonly AgentToolParam[];
  permissions?: Readonly<Record<string, unknown>>;
  can_write_knowledge?: boolean;
  can_write_skills?: boolean;
  config?: Readonly<Record<string, unknown>>;
}

/** Arguments of `createTeam`. */
export interface CreateTeamParams {
  name: string;
  description?: string | null;
  orchestrator_id: string;
  members?: readonly TeamMemberParam[];
}

/** Arguments of `updateTeam`. */
export interface UpdateTeamParams {
  name?: string;
  description?: string | null;
  orchestrator_id?: string;
  members?: readonly TeamMemberParam[];
}

/** Arguments of `createApiKey`. */
export interface CreateApiKeyParams {
  name: string;
  scopes?: readonly "completions:write"[];
  expires_at?: "30d" | "90d" | "1y" | "never";
}

/** Arguments of `testGenerateImage`. */
export interface TestGenerateImageParams {
  files: readonly Upload[];
  prompt: string;
  model_code: string;
}

/** Arguments of `createImageGeneration`. */
export interface CreateImageGenerationParams {
  model: string;
  prompt: string;
  webhook_url: string;
  input_images?: readonly InputImageParam[];
  input_image?: InputImageParam;
  mask_image?: InputImageParam;
  objects_image?: InputImageParam;
  resolution?: "0.5k" | "1k" | "2k" | "3k" | "4k";
  dimensions?: ImageDimensionsParam;
  aspect_ratio?: "1:1" | "16:9" | "9:16" | "4:3" | "3:4" | "3:2" | "2:3" | "21:9" | "9:21" | "as_input_image";
  format?: "png" | "jpeg" | "webp" | "svg";
  quality?: number;
  model_settings?: Readonly<Record<string, unknown>>;
  providers?: readonly string[];
}

/** Arguments of `uploadImage`. */
export interface UploadImageParams {
  file: Upload;
}

/** Arguments of `downloadArtifact`. */
export interface DownloadArtifactParams {
  generation: string;
  artifact: string;
  expires?: number;
  signature: string;
}

/** Arguments of `handleProviderWebhook`. */
export interface HandleProviderWebhookParams {
  callback_token?: string;
  webhook_id?: string;
  webhook_timestamp?: string;
  webhook_signature?: string;
  x_fal_webhook_request_id?: string;
  x_fal_webhook_user_id?: string;
  x_fal_webhook_timestamp?: string;
  x_fal_webhook_signature?: string;
  x_bfl_signature?: string;
}

/** Arguments of `uploadChatAttachment`. */
export interface UploadChatAttachmentParams {
  idempotency_key: string;
  file: Upload;
}

/** Arguments of `retryChatAttachment`. */
export interface RetryChatAttachmentParams {
  idempotency_key: string;
}

/** Arguments of `downloadChatAttachment`. */
export interface DownloadChatAttachmentParams {
  kind: "original" | "derived";
}

/** Arguments of `uploadWikiSource`. */
export interface UploadWikiSourceParams {
  idempotency_key: string;
  file: Upload;
  processing?: "convert" | "original";
}

/** Arguments of `withdrawWikiSource`. */
export interface WithdrawWikiSourceParams {
  file_id: string;
}

/** Arguments of `createWikiInboxRun`. */
export interface CreateWikiInboxRunParams {
  idempotency_key: string;
  webhook_url: string;
}

/** Arguments of `createWikiOutboxRun`. */
export interface CreateWikiOutboxRunParams {
  idempotency_key: string;
  webhook_url: string;
}

/** Arguments of `createWikiSyncRun`. */
export interface CreateWikiSyncRunParams {
  idempotency_key: string;
  webhook_url: string;
}

/** Arguments of `getWikiCategoryIndex`. */
export interface GetWikiCategoryIndexParams {
  from?: number;
  to?: number;
  all?: boolean;
  type?: "raw" | "artifact";
  catalog_revision?: number;
}

/** Arguments of `streamChatEventsLegacy`. */
export interface StreamChatEventsLegacyParams {
  after?: number;
}

/** Arguments of `claimChatTool`. */
export interface ClaimChatToolParams {
  call_id: string;
  holder: string;
}

/** Every operation of the contract: its arguments and its result. */
export interface Operations {
  sendChatMessage: { args: { chat_id: string } & SendChatMessageParams; result: ChatMessageAccepted };
  streamChatEvents: { args: { chat_id: string } & StreamChatEventsParams; result: never };
  cancelChatTurn: { args: { chat_id: string }; result: TurnAccepted };
  steerChatTurn: { args: { chat_id: string } & SteerChatTurnParams; result: TurnAccepted };
  resolveChatTool: { args: { chat_id: string } & ResolveChatToolParams; result: void };
  resolveChatApproval: { args: { chat_id: string } & ResolveChatApprovalParams; result: void };
  forkChat: { args: { chat_id: string } & ForkChatParams; result: ChatForked };
  restoreChat: { args: { chat_id: string } & RestoreChatParams; result: RestoreChatAccepted };
  getCapabilities: { args: {}; result: Capabilities };
  healthCheck: { args: {}; result: Health };
  getJwks: { args: {}; result: JwksDocument };
  createWorkspace: { args: CreateWorkspaceParams; result: Workspace };
  listWorkspaces: { args: {}; result: Workspace[] };
  getWorkspace: { args: { workspace_id: string }; result: Workspace };
  updateWorkspace: { args: { workspace_id: string } & UpdateWorkspaceParams; result: Workspace };
  createUserTool: { args: CreateUserToolParams; result: UserTool };
  listUserTools: { args: {}; result: UserTool[] };
  getUserTool: { args: { name: string }; result: UserTool };
  updateUserTool: { args: { name: string } & UpdateUserToolParams; result: UserTool };
  deleteUserTool: { args: { name: string }; result: void };
  createChat: { args: { workspace_id: string } & CreateChatParams; result: Chat };
  listChats: { args: { workspace_id: string }; result: Chat[] };
  getChat: { args: { workspace_id: string; chat_id: string }; result: Chat };
  listCompletions: { args: { workspace_id: string; chat_id: string } & ListCompletionsParams; result: CompletionCollection };
  getCompletion: { args: { workspace_id: string; chat_id: string; completion_id: string }; result: Completion };
  indexWorkspaceFiles: { args: { workspace_id: string } & IndexWorkspaceFilesParams; result: WorkspaceFile };
  createWorkspaceFile: { args: { workspace_id: string } & CreateWorkspaceFileParams; result: WorkspaceFile };
  updateWorkspaceFile: { args: { workspace_id: string } & UpdateWorkspaceFileParams; result: WorkspaceFile };
  deleteWorkspaceFile: { args: { workspace_id: string } & DeleteWorkspaceFileParams; result: void };
  downloadWorkspaceFile: { args: { workspace_id: string } & DownloadWorkspaceFileParams; result: ByteStream };
  convertWorkspaceFileToPdf: { args: { workspace_id: string } & ConvertWorkspaceFileToPdfParams; result: ByteStream };
  createAgent: { args: CreateAgentParams; result: Agent };
  listAgents: { args: {}; result: Agent[] };
  getAgent: { args: { agent_id: string }; result: Agent };
  updateAgent: { args: { agent_id: string } & UpdateAgentParams; result: Agent };
  deleteAgent: { args: { agent_id: string }; result: void };
  createTeam: { args: CreateTeamParams; result: Team };
  listTeams: { args: {}; result: Team[] };
  getTeam: { args: { team_id: string }; result: Team };
  updateTeam: { args: { team_id: string } & UpdateTeamParams; result: Team };
  deleteTeam: { args: { team_id: string }; result: void };
  listModels: { args: {}; result: ModelList };
  createApiKey: { args: CreateApiKeyParams; result: ApiKeyCreated };
  listApiKeys: { args: {}; result: ApiKey[] };
  deleteApiKey: { args: { key_id: string }; result: void };
  testGenerateImage: { args: TestGenerateImageParams; result: unknown };
  createImageGeneration: { args: CreateImageGenerationParams; result: ImageGenerationAcceptedRecord };
  getImageGeneration: { args: { record: string }; result: ImageGenerationStatusRecord };
  uploadImage: { args: UploadImageParams; result: ImageUploadRecord };
  listImageModels: { args: {}; result: ModelCatalogEntry[] };
  downloadArtifact: { args: DownloadArtifactParams; result: ByteStream };
  handleProviderWebhook: { args: { provider: string } & HandleProviderWebhookParams; result: WebhookOk };
  uploadChatAttachment: { args: { workspace_id: string; chat_id: string } & UploadChatAttachmentParams; result: ChatAttachment };
  listChatAttachments: { args: { workspace_id: string; chat_id: string }; result: ChatAttachment[] };
  getChatAttachment: { args: { workspace_id: string; chat_id: string; attachment_id: string }; result: ChatAttachment };
  deleteChatAttachment: { args: { workspace_id: string; chat_id: string; attachment_id: string }; result: ChatAttachment };
  retryChatAttachment: { args: { workspace_id: string; chat_id: string; attachment_id: string } & RetryChatAttachmentParams; result: ChatAttachment };
  downloadChatAttachment: { args: { workspace_id: string; chat_id: string; attachment_id: string } & DownloadChatAttachmentParams; result: ByteStream };
  uploadWikiSource: { args: { workspace_id: string } & UploadWikiSourceParams; result: WikiSource };
  getWikiSource: { args: { workspace_id: string; file_id: string }; result: WikiSource };
  downloadWikiSource: { args: { workspace_id: string; file_id: string }; result: ByteStream };
  withdrawWikiSource: { args: { workspace_id: string } & WithdrawWikiSourceParams; result: WikiSource };
  createWikiInboxRun: { args: { workspace_id: string } & CreateWikiInboxRunParams; result: WikiOperation };
  createWikiOutboxRun: { args: { workspace_id: string } & CreateWikiOutboxRunParams; result: WikiOperation };
  createWikiSyncRun: { args: { workspace_id: string } & CreateWikiSyncRunParams; result: WikiOperation };
  getWikiOperation: { args: { workspace_id: string; operation_id: string }; result: WikiOperation };
  listWikiCategories: { args: { workspace_id: string }; result: Categories };
  getWikiCategoryIndex: { args: { workspace_id: string; category_id: string } & GetWikiCategoryIndexParams; result: CategoryIndex };
  getWikiWebhookJwks: { args: {}; result: JwksDocument };
  streamChatEventsLegacy: { args: { chat_id: string } & StreamChatEventsLegacyParams; result: never };
  getCapabilitiesLegacy: { args: {}; result: CapabilitiesLegacy };
  claimChatTool: { args: { chat_id: string } & ClaimChatToolParams; result: void };
}

export type OperationId = keyof Operations;

/** One row of the contract's inventory. `query` and `header` map argument names to wire names. */
export interface Operation {
  method: string;
  path: string;
  result: string;
  type?: string;
  unwrap?: string;
  auth?: true;
  negotiated?: true;
  query?: Record<string, string>;
  header?: Record<string, string>;
  body?: string[];
  files?: string[];
  media?: string;
}

export const OPERATIONS: Readonly<Record<OperationId, Operation>> = {
  sendChatMessage: {method: "POST", path: "/atp/v3/chats/{chat_id}/messages", result: "json", type: "ChatMessageAccepted", auth: true, negotiated: true, header: {idempotency_key: "Idempotency-Key"}, body: ["message", "attachment_ids"], media: "application/json"},
  streamChatEvents: {method: "GET", path: "/atp/v3/chats/{chat_id}/events", result: "events", auth: true, negotiated: true, query: {after: "after"}},
  cancelChatTurn: {method: "POST", path: "/atp/v3/chats/{chat_id}/cancel", result: "json", type: "TurnAccepted", auth: true, negotiated: true},
  steerChatTurn: {method: "POST", path: "/atp/v3/chats/{chat_id}/steer", result: "json", type: "TurnAccepted", auth: true, negotiated: true, body: ["text", "target_agent_id"], media: "application/json"},
  resolveChatTool: {method: "POST", path: "/atp/v3/chats/{chat_id}/tool-output", result: "none", auth: true, negotiated: true, body: ["call_id", "output", "is_error"], media: "application/json"},
  resolveChatApproval: {method: "POST", path: "/atp/v3/chats/{chat_id}/approval", result: "none", auth: true, negotiated: true, body: ["approval_id", "approve", "reason"], media: "application/json"},
  forkChat: {method: "POST", path: "/atp/v3/chats/{chat_id}/fork", result: "json", type: "ChatForked", auth: true, negotiated: true, body: ["destination_chat_id"], media: "application/json"},
  restoreChat: {method: "POST", path: "/atp/v3/chats/{chat_id}/restore", result: "json", type: "RestoreChatAccepted", auth: true, negotiated: true, body: ["orchestrator_context"], media: "application/json"},
  getCapabilities: {method: "GET", path: "/atp/v3/capabilities", result: "json", type: "Capabilities", auth: true, negotiated: true},
  healthCheck: {method: "GET", path: "/up", result: "json", type: "Health", unwrap: "data"},
  getJwks: {method: "GET", path: "/.well-known/jwks.json", result: "json", type: "JwksDocument"},
  createWorkspace: {method: "POST", path: "/workspaces", result: "json", type: "Workspace", unwrap: "data", auth: true, body: ["name", "metadata"], media: "application/json"},
  listWorkspaces: {method: "GET", path: "/workspaces", result: "json", type: "[Workspace", unwrap: "data", auth: true},
  getWorkspace: {method: "GET", path: "/workspaces/{workspace_id}", result: "json", type: "Workspace", unwrap: "data", auth: true},
  updateWorkspace: {method: "PUT", path: "/workspaces/{workspace_id}", result: "json", type: "Workspace", unwrap: "data", auth: true, body: ["name", "metadata"], media: "application/json"},
  createUserTool: {method: "POST", path: "/tools", result: "json", type: "UserTool", unwrap: "data", auth: true, body: ["name", "kind", "description", "parameters", "timeout_seconds"], media: "application/json"},
  listUserTools: {method: "GET", path: "/tools", result: "json", type: "[UserTool", unwrap: "data", auth: true},
  getUserTool: {method: "GET", path: "/tools/{name}", result: "json", type: "UserTool", unwrap: "data", auth: true},
  updateUserTool: {method: "PUT", path: "/tools/{name}", result: "json", type: "UserTool", unwrap: "data", auth: true, body: ["description", "parameters", "timeout_seconds"], media: "application/json"},
  deleteUserTool: {method: "DELETE", path: "/tools/{name}", result: "none", auth: true},
  createChat: {method: "POST", path: "/workspaces/{workspace_id}/chats", result: "json", type: "Chat", unwrap: "data", auth: true, body: ["team_id"], media: "application/json"},
  listChats: {method: "GET", path: "/workspaces/{workspace_id}/chats", result: "json", type: "[Chat", unwrap: "data", auth: true},
  getChat: {method: "GET", path: "/workspaces/{workspace_id}/chats/{chat_id}", result: "json", type: "Chat", unwrap: "data", auth: true},
  listCompletions: {method: "GET", path: "/workspaces/{workspace_id}/chats/{chat_id}/completions", result: "json", type: "CompletionCollection", auth: true, negotiated: true, query: {status: "status", model_orchestrator: "model_orchestrator", started_at_from: "started_at[from]", started_at_to: "started_at[to]", per_page: "per_page", page: "page"}},
  getCompletion: {method: "GET", path: "/workspaces/{workspace_id}/chats/{chat_id}/completions/{completion_id}", result: "json", type: "Completion", unwrap: "data", auth: true, negotiated: true},
  indexWorkspaceFiles: {method: "GET", path: "/workspaces/{workspace_id}/files", result: "json", type: "WorkspaceFile", unwrap: "data", auth: true, query: {path: "path"}},
  createWorkspaceFile: {method: "POST", path: "/workspaces/{workspace_id}/files", result: "json", type: "WorkspaceFile", unwrap: "data", auth: true, body: ["path", "content"], media: "application/json"},
  updateWorkspaceFile: {method: "PUT", path: "/workspaces/{workspace_id}/files", result: "json", type: "WorkspaceFile", unwrap: "data", auth: true, body: ["path", "content"], media: "application/json"},
  deleteWorkspaceFile: {method: "DELETE", path: "/workspaces/{workspace_id}/files", result: "none", auth: true, query: {path: "path", recursive: "recursive"}},
  downloadWorkspaceFile: {method: "GET", path: "/workspaces/{workspace_id}/files/download", result: "bytes", auth: true, query: {path: "path"}},
  convertWorkspaceFileToPdf: {method: "POST", path: "/workspaces/{workspace_id}/files/convert-to-pdf", result: "bytes", auth: true, body: ["path"], media: "application/json"},
  createAgent: {method: "POST", path: "/agents", result: "json", type: "Agent", unwrap: "data", auth: true, body: ["name", "description", "system_prompt", "model", "mode", "tools_enabled", "external_tools_enabled", "permissions", "can_write_knowledge", "can_write_skills", "config"], media: "application/json"},
  listAgents: {method: "GET", path: "/agents", result: "json", type: "[Agent", unwrap: "data", auth: true},
  getAgent: {method: "GET", path: "/agents/{agent_id}", result: "json", type: "Agent", unwrap: "data", auth: true},
  updateAgent: {method: "PUT", path: "/agents/{agent_id}", result: "json", type: "Agent", unwrap: "data", auth: true, body: ["name", "description", "system_prompt", "model", "mode", "tools_enabled", "external_tools_enabled", "permissions", "can_write_knowledge", "can_write_skills", "config"], media: "application/json"},
  deleteAgent: {method: "DELETE", path: "/agents/{agent_id}", result: "none", auth: true},
  createTeam: {method: "POST", path: "/teams", result: "json", type: "Team", unwrap: "data", auth: true, body: ["name", "description", "orchestrator_id", "members"], media: "application/json"},
  listTeams: {method: "GET", path: "/teams", result: "json", type: "[Team", unwrap: "data", auth: true},
  getTeam: {method: "GET", path: "/teams/{team_id}", result: "json", type: "Team", unwrap: "data", auth: true},
  updateTeam: {method: "PUT", path: "/teams/{team_id}", result: "json", type: "Team", unwrap: "data", auth: true, body: ["name", "description", "orchestrator_id", "members"], media: "application/json"},
  deleteTeam: {method: "DELETE", path: "/teams/{team_id}", result: "none", auth: true},
  listModels: {method: "GET", path: "/models", result: "json", type: "ModelList", auth: true},
  createApiKey: {method: "POST", path: "/api-keys", result: "json", type: "ApiKeyCreated", unwrap: "data", auth: true, body: ["name", "scopes", "expires_at"], media: "application/json"},
  listApiKeys: {method: "GET", path: "/api-keys", result: "json", type: "[ApiKey", unwrap: "data", auth: true},
  deleteApiKey: {method: "DELETE", path: "/api-keys/{key_id}", result: "none", auth: true},
  testGenerateImage: {method: "POST", path: "/tests/images/generate", result: "json", unwrap: "data", body: ["files", "prompt", "model_code"], files: ["files"], media: "multipart/form-data"},
  createImageGeneration: {method: "POST", path: "/images/generations", result: "json", type: "ImageGenerationAcceptedRecord", unwrap: "data", auth: true, body: ["model", "prompt", "webhook_url", "input_images", "input_image", "mask_image", "objects_image", "resolution", "dimensions", "aspect_ratio", "format", "quality", "model_settings", "providers"], media: "application/json"},
  getImageGeneration: {method: "GET", path: "/images/generations/{record}", result: "json", type: "ImageGenerationStatusRecord", unwrap: "data", auth: true},
  uploadImage: {method: "POST", path: "/images/uploads", result: "json", type: "ImageUploadRecord", unwrap: "data", auth: true, body: ["file"], files: ["file"], media: "multipart/form-data"},
  listImageModels: {method: "GET", path: "/images/models", result: "json", type: "[ModelCatalogEntry", unwrap: "data", auth: true},
  downloadArtifact: {method: "GET", path: "/artifacts/download", result: "bytes", query: {generation: "generation", artifact: "artifact", expires: "expires", signature: "signature"}},
  handleProviderWebhook: {method: "POST", path: "/webhooks/providers/{provider}", result: "json", type: "WebhookOk", query: {callback_token: "callback_token"}, header: {webhook_id: "webhook-id", webhook_timestamp: "webhook-timestamp", webhook_signature: "webhook-signature", x_fal_webhook_request_id: "X-Fal-Webhook-Request-Id", x_fal_webhook_user_id: "X-Fal-Webhook-User-Id", x_fal_webhook_timestamp: "X-Fal-Webhook-Timestamp", x_fal_webhook_signature: "X-Fal-Webhook-Signature", x_bfl_signature: "X-BFL-Signature"}, media: "application/json"},
  uploadChatAttachment: {method: "POST", path: "/workspaces/{workspace_id}/chats/{chat_id}/attachments", result: "json", type: "ChatAttachment", unwrap: "data", auth: true, negotiated: true, header: {idempotency_key: "Idempotency-Key"}, body: ["file"], files: ["file"], media: "multipart/form-data"},
  listChatAttachments: {method: "GET", path: "/workspaces/{workspace_id}/chats/{chat_id}/attachments", result: "json", type: "[ChatAttachment", unwrap: "data.attachments", auth: true, negotiated: true},
  getChatAttachment: {method: "GET", path: "/workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}", result: "json", type: "ChatAttachment", unwrap: "data", auth: true, negotiated: true},
  deleteChatAttachment: {method: "DELETE", path: "/workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}", result: "json", type: "ChatAttachment", unwrap: "data", auth: true, negotiated: true},
  retryChatAttachment: {method: "POST", path: "/workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}/retry", result: "json", type: "ChatAttachment", unwrap: "data", auth: true, negotiated: true, header: {idempotency_key: "Idempotency-Key"}},
  downloadChatAttachment: {method: "GET", path: "/workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}/download", result: "bytes", auth: true, negotiated: true, query: {kind: "kind"}},
  uploadWikiSource: {method: "POST", path: "/workspaces/{workspace_id}/files/sources", result: "json", type: "WikiSource", unwrap: "data", auth: true, negotiated: true, header: {idempotency_key: "Idempotency-Key"}, body: ["file", "processing"], files: ["file"], media: "multipart/form-data"},
  getWikiSource: {method: "GET", path: "/workspaces/{workspace_id}/files/sources/{file_id}", result: "json", type: "WikiSource", unwrap: "data", auth: true, negotiated: true},
  downloadWikiSource: {method: "GET", path: "/workspaces/{workspace_id}/files/sources/{file_id}/download", result: "bytes", auth: true, negotiated: true},
  withdrawWikiSource: {method: "POST", path: "/workspaces/{workspace_id}/wiki/outbox/files", result: "json", type: "WikiSource", unwrap: "data", auth: true, negotiated: true, body: ["file_id"], media: "application/json"},
  createWikiInboxRun: {method: "POST", path: "/workspaces/{workspace_id}/wiki/inbox/runs", result: "json", type: "WikiOperation", unwrap: "data", auth: true, negotiated: true, header: {idempotency_key: "Idempotency-Key"}, body: ["webhook_url"], media: "application/json"},
  createWikiOutboxRun: {method: "POST", path: "/workspaces/{workspace_id}/wiki/outbox/runs", result: "json", type: "WikiOperation", unwrap: "data", auth: true, negotiated: true, header: {idempotency_key: "Idempotency-Key"}, body: ["webhook_url"], media: "application/json"},
  createWikiSyncRun: {method: "POST", path: "/workspaces/{workspace_id}/wiki/syncs", result: "json", type: "WikiOperation", unwrap: "data", auth: true, negotiated: true, header: {idempotency_key: "Idempotency-Key"}, body: ["webhook_url"], media: "application/json"},
  getWikiOperation: {method: "GET", path: "/workspaces/{workspace_id}/wiki/operations/{operation_id}", result: "json", type: "WikiOperation", unwrap: "data", auth: true, negotiated: true},
  listWikiCategories: {method: "GET", path: "/workspaces/{workspace_id}/wiki/categories", result: "json", type: "Categories", unwrap: "data", auth: true, negotiated: true},
  getWikiCategoryIndex: {method: "GET", path: "/workspaces/{workspace_id}/wiki/categories/{category_id}/index", result: "json", type: "CategoryIndex", unwrap: "data", auth: true, negotiated: true, query: {from: "from", to: "to", all: "all", type: "type", catalog_revision: "catalog_revision"}},
  getWikiWebhookJwks: {method: "GET", path: "/.well-known/wiki-webhook-jwks.json", result: "json", type: "JwksDocument"},
  streamChatEventsLegacy: {method: "GET", path: "/chats/{chat_id}/events", result: "events", auth: true, negotiated: true, query: {after: "after"}},
  getCapabilitiesLegacy: {method: "GET", path: "/capabilities", result: "json", type: "CapabilitiesLegacy", auth: true, negotiated: true},
  claimChatTool: {method: "POST", path: "/atp/v3/chats/{chat_id}/tool-claim", result: "none", auth: true, negotiated: true, body: ["call_id", "holder"], media: "application/json"},
};
