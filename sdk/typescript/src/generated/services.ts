// Generated from the contract by scripts/generate.mjs: do not edit.

import type { CallOptions, ReadOptions } from "../core.js";
import type { ByteStream } from "../downloads.js";
import { Service } from "../service.js";
import type {
  Agent,
  ApiKey,
  ApiKeyCreated,
  Capabilities,
  CapabilitiesLegacy,
  Categories,
  CategoryIndex,
  Chat,
  ChatAttachment,
  ChatForked,
  ChatMessageAccepted,
  Completion,
  Health,
  ImageGenerationAcceptedRecord,
  ImageGenerationStatusRecord,
  ImageUploadRecord,
  JwksDocument,
  ModelCatalogEntry,
  ModelList,
  RestoreChatAccepted,
  Team,
  TurnAccepted,
  UserTool,
  WikiOperation,
  WikiSource,
  Workspace,
  WorkspaceFile,
} from "./models.js";
import type {
  ClaimChatToolParams,
  ConvertWorkspaceFileToPdfParams,
  CreateAgentParams,
  CreateApiKeyParams,
  CreateChatParams,
  CreateImageGenerationParams,
  CreateTeamParams,
  CreateUserToolParams,
  CreateWikiInboxRunParams,
  CreateWikiOutboxRunParams,
  CreateWikiSyncRunParams,
  CreateWorkspaceFileParams,
  CreateWorkspaceParams,
  DeleteWorkspaceFileParams,
  DownloadArtifactParams,
  DownloadChatAttachmentParams,
  DownloadWorkspaceFileParams,
  ForkChatParams,
  GetWikiCategoryIndexParams,
  IndexWorkspaceFilesParams,
  ResolveChatApprovalParams,
  ResolveChatToolParams,
  RestoreChatParams,
  RetryChatAttachmentParams,
  SendChatMessageParams,
  SteerChatTurnParams,
  UpdateAgentParams,
  UpdateTeamParams,
  UpdateUserToolParams,
  UpdateWorkspaceFileParams,
  UpdateWorkspaceParams,
  UploadChatAttachmentParams,
  UploadImageParams,
  UploadWikiSourceParams,
  WithdrawWikiSourceParams,
} from "./operations.js";

export class ChatsOperations extends Service {
  /** `sendChatMessage`: POST /atp/v3/chats/{chat_id}/messages */
  sendMessage(chatId: string, params: SendChatMessageParams, options?: CallOptions): Promise<ChatMessageAccepted> {
    return this.core.call("sendChatMessage", { chat_id: chatId, ...params }, options);
  }

  /**
   * `cancelChatTurn`: POST /atp/v3/chats/{chat_id}/cancel
   *
   * The end is observed as `turn.cancelled` on the stream, not by this answer.
   */
  cancel(chatId: string, options?: CallOptions): Promise<TurnAccepted> {
    return this.core.call("cancelChatTurn", { chat_id: chatId }, options);
  }

  /**
   * `steerChatTurn`: POST /atp/v3/chats/{chat_id}/steer
   *
   * Without a target it is for the orchestrator. Unless `steer` is announced it may do nothing.
   */
  steer(chatId: string, params: SteerChatTurnParams, options?: CallOptions): Promise<TurnAccepted> {
    return this.core.call("steerChatTurn", { chat_id: chatId, ...params }, options);
  }

  /** `resolveChatTool`: POST /atp/v3/chats/{chat_id}/tool-output */
  submitToolOutput(chatId: string, params: ResolveChatToolParams, options?: CallOptions): Promise<void> {
    return this.core.call("resolveChatTool", { chat_id: chatId, ...params }, options);
  }

  /**
   * `resolveChatApproval`: POST /atp/v3/chats/{chat_id}/approval
   *
   * Only where the capabilities announce `approval`: the original alpha answers 409.
   */
  submitApproval(chatId: string, params: ResolveChatApprovalParams, options?: CallOptions): Promise<void> {
    return this.core.call("resolveChatApproval", { chat_id: chatId, ...params }, options);
  }

  /** `forkChat`: POST /atp/v3/chats/{chat_id}/fork */
  fork(chatId: string, params: ForkChatParams, options?: CallOptions): Promise<ChatForked> {
    return this.core.call("forkChat", { chat_id: chatId, ...params }, options);
  }

  /** `restoreChat`: POST /atp/v3/chats/{chat_id}/restore */
  restore(chatId: string, params: RestoreChatParams, options?: CallOptions): Promise<RestoreChatAccepted> {
    return this.core.call("restoreChat", { chat_id: chatId, ...params }, options);
  }

  /** `createChat`: POST /workspaces/{workspace_id}/chats */
  create(workspaceId: string, params: CreateChatParams, options?: CallOptions): Promise<Chat> {
    return this.core.call("createChat", { workspace_id: workspaceId, ...params }, options);
  }

  /** `listChats`: GET /workspaces/{workspace_id}/chats */
  list(workspaceId: string, options?: ReadOptions): Promise<Chat[]> {
    return this.core.call("listChats", { workspace_id: workspaceId }, options);
  }

  /** `getChat`: GET /workspaces/{workspace_id}/chats/{chat_id} */
  get(workspaceId: string, chatId: string, options?: ReadOptions): Promise<Chat> {
    return this.core.call("getChat", { workspace_id: workspaceId, chat_id: chatId }, options);
  }

  /**
   * `claimChatTool`: POST /atp/v3/chats/{chat_id}/tool-claim
   *
   * Where `tool_claims` is announced: the call is this holder's, or the answer is 409.
   */
  claimToolCall(chatId: string, params: ClaimChatToolParams, options?: CallOptions): Promise<void> {
    return this.core.call("claimChatTool", { chat_id: chatId, ...params }, options);
  }
}

export class CapabilitiesOperations extends Service {
  /** `getCapabilities`: GET /atp/v3/capabilities */
  get(options?: ReadOptions): Promise<Capabilities> {
    return this.core.call("getCapabilities", {}, options);
  }

  /** `getWikiWebhookJwks`: GET /.well-known/wiki-webhook-jwks.json */
  wikiWebhookJwks(options?: ReadOptions): Promise<JwksDocument> {
    return this.core.call("getWikiWebhookJwks", {}, options);
  }

  /** `getCapabilitiesLegacy`: GET /capabilities */
  getLegacy(options?: ReadOptions): Promise<CapabilitiesLegacy> {
    return this.core.call("getCapabilitiesLegacy", {}, options);
  }
}

export class InfrastructureOperations extends Service {
  /** `healthCheck`: GET /up */
  health(options?: ReadOptions): Promise<Health> {
    return this.core.call("healthCheck", {}, options);
  }

  /** `getJwks`: GET /.well-known/jwks.json */
  jwks(options?: ReadOptions): Promise<JwksDocument> {
    return this.core.call("getJwks", {}, options);
  }
}

export class WorkspacesOperations extends Service {
  /** `createWorkspace`: POST /workspaces */
  create(params: CreateWorkspaceParams, options?: CallOptions): Promise<Workspace> {
    return this.core.call("createWorkspace", { ...params }, options);
  }

  /** `listWorkspaces`: GET /workspaces */
  list(options?: ReadOptions): Promise<Workspace[]> {
    return this.core.call("listWorkspaces", {}, options);
  }

  /** `getWorkspace`: GET /workspaces/{workspace_id} */
  get(workspaceId: string, options?: ReadOptions): Promise<Workspace> {
    return this.core.call("getWorkspace", { workspace_id: workspaceId }, options);
  }

  /** `updateWorkspace`: PUT /workspaces/{workspace_id} */
  update(workspaceId: string, params: UpdateWorkspaceParams = {}, options?: CallOptions): Promise<Workspace> {
    return this.core.call("updateWorkspace", { workspace_id: workspaceId, ...params }, options);
  }
}

export class UserToolsOperations extends Service {
  /** `createUserTool`: POST /tools */
  create(params: CreateUserToolParams, options?: CallOptions): Promise<UserTool> {
    return this.core.call("createUserTool", { ...params }, options);
  }

  /** `listUserTools`: GET /tools */
  list(options?: ReadOptions): Promise<UserTool[]> {
    return this.core.call("listUserTools", {}, options);
  }

  /** `getUserTool`: GET /tools/{name} */
  get(name: string, options?: ReadOptions): Promise<UserTool> {
    return this.core.call("getUserTool", { name }, options);
  }

  /** `updateUserTool`: PUT /tools/{name} */
  update(name: string, params: UpdateUserToolParams = {}, options?: CallOptions): Promise<UserTool> {
    return this.core.call("updateUserTool", { name, ...params }, options);
  }

  /**
   * `deleteUserTool`: DELETE /tools/{name}
   *
   * Tools are addressed by name and shared by all workspaces of their owner.
   */
  delete(name: string, options?: CallOptions): Promise<void> {
    return this.core.call("deleteUserTool", { name }, options);
  }
}

export class CompletionsOperations extends Service {
  /** `getCompletion`: GET /workspaces/{workspace_id}/chats/{chat_id}/completions/{completion_id} */
  get(workspaceId: string, chatId: string, completionId: string, options?: ReadOptions): Promise<Completion> {
    return this.core.call("getCompletion", { workspace_id: workspaceId, chat_id: chatId, completion_id: completionId }, options);
  }
}

export class WorkspaceFilesOperations extends Service {
  /** `indexWorkspaceFiles`: GET /workspaces/{workspace_id}/files */
  readOrList(workspaceId: string, params: IndexWorkspaceFilesParams, options?: ReadOptions): Promise<WorkspaceFile> {
    return this.core.call("indexWorkspaceFiles", { workspace_id: workspaceId, ...params }, options);
  }

  /** `createWorkspaceFile`: POST /workspaces/{workspace_id}/files */
  create(workspaceId: string, params: CreateWorkspaceFileParams, options?: CallOptions): Promise<WorkspaceFile> {
    return this.core.call("createWorkspaceFile", { workspace_id: workspaceId, ...params }, options);
  }

  /** `updateWorkspaceFile`: PUT /workspaces/{workspace_id}/files */
  update(workspaceId: string, params: UpdateWorkspaceFileParams, options?: CallOptions): Promise<WorkspaceFile> {
    return this.core.call("updateWorkspaceFile", { workspace_id: workspaceId, ...params }, options);
  }

  /** `deleteWorkspaceFile`: DELETE /workspaces/{workspace_id}/files */
  delete(workspaceId: string, params: DeleteWorkspaceFileParams, options?: CallOptions): Promise<void> {
    return this.core.call("deleteWorkspaceFile", { workspace_id: workspaceId, ...params }, options);
  }

  /** `downloadWorkspaceFile`: GET /workspaces/{workspace_id}/files/download */
  download(workspaceId: string, params: DownloadWorkspaceFileParams, options?: CallOptions): Promise<ByteStream> {
    return this.core.call("downloadWorkspaceFile", { workspace_id: workspaceId, ...params }, options);
  }

  /** `convertWorkspaceFileToPdf`: POST /workspaces/{workspace_id}/files/convert-to-pdf */
  convertToPdf(workspaceId: string, params: ConvertWorkspaceFileToPdfParams, options?: CallOptions): Promise<ByteStream> {
    return this.core.call("convertWorkspaceFileToPdf", { workspace_id: workspaceId, ...params }, options);
  }

  /** `uploadWikiSource`: POST /workspaces/{workspace_id}/files/sources */
  uploadSource(workspaceId: string, params: UploadWikiSourceParams, options?: CallOptions): Promise<WikiSource> {
    return this.core.call("uploadWikiSource", { workspace_id: workspaceId, ...params }, options);
  }

  /** `getWikiSource`: GET /workspaces/{workspace_id}/files/sources/{file_id} */
  sourceStatus(workspaceId: string, fileId: string, options?: ReadOptions): Promise<WikiSource> {
    return this.core.call("getWikiSource", { workspace_id: workspaceId, file_id: fileId }, options);
  }

  /** `downloadWikiSource`: GET /workspaces/{workspace_id}/files/sources/{file_id}/download */
  downloadSource(workspaceId: string, fileId: string, options?: CallOptions): Promise<ByteStream> {
    return this.core.call("downloadWikiSource", { workspace_id: workspaceId, file_id: fileId }, options);
  }
}

export class AgentsOperations extends Service {
  /** `createAgent`: POST /agents */
  create(params: CreateAgentParams, options?: CallOptions): Promise<Agent> {
    return this.core.call("createAgent", { ...params }, options);
  }

  /** `listAgents`: GET /agents */
  list(options?: ReadOptions): Promise<Agent[]> {
    return this.core.call("listAgents", {}, options);
  }

  /** `getAgent`: GET /agents/{agent_id} */
  get(agentId: string, options?: ReadOptions): Promise<Agent> {
    return this.core.call("getAgent", { agent_id: agentId }, options);
  }

  /** `updateAgent`: PUT /agents/{agent_id} */
  update(agentId: string, params: UpdateAgentParams = {}, options?: CallOptions): Promise<Agent> {
    return this.core.call("updateAgent", { agent_id: agentId, ...params }, options);
  }

  /** `deleteAgent`: DELETE /agents/{agent_id} */
  delete(agentId: string, options?: CallOptions): Promise<void> {
    return this.core.call("deleteAgent", { agent_id: agentId }, options);
  }
}

export class TeamsOperations extends Service {
  /** `createTeam`: POST /teams */
  create(params: CreateTeamParams, options?: CallOptions): Promise<Team> {
    return this.core.call("createTeam", { ...params }, options);
  }

  /** `listTeams`: GET /teams */
  list(options?: ReadOptions): Promise<Team[]> {
    return this.core.call("listTeams", {}, options);
  }

  /** `getTeam`: GET /teams/{team_id} */
  get(teamId: string, options?: ReadOptions): Promise<Team> {
    return this.core.call("getTeam", { team_id: teamId }, options);
  }

  /** `updateTeam`: PUT /teams/{team_id} */
  update(teamId: string, params: UpdateTeamParams = {}, options?: CallOptions): Promise<Team> {
    return this.core.call("updateTeam", { team_id: teamId, ...params }, options);
  }

  /** `deleteTeam`: DELETE /teams/{team_id} */
  delete(teamId: string, options?: CallOptions): Promise<void> {
    return this.core.call("deleteTeam", { team_id: teamId }, options);
  }
}

export class ModelsOperations extends Service {
  /** `listModels`: GET /models */
  list(options?: ReadOptions): Promise<ModelList> {
    return this.core.call("listModels", {}, options);
  }
}

export class ApiKeysOperations extends Service {
  /**
   * `createApiKey`: POST /api-keys
   *
   * `token` is in this answer and never again: store it now. A key lasts 30 days by default.
   */
  create(params: CreateApiKeyParams, options?: CallOptions): Promise<ApiKeyCreated> {
    return this.core.call("createApiKey", { ...params }, options);
  }

  /** `listApiKeys`: GET /api-keys */
  list(options?: ReadOptions): Promise<ApiKey[]> {
    return this.core.call("listApiKeys", {}, options);
  }

  /** `deleteApiKey`: DELETE /api-keys/{key_id} */
  revoke(keyId: string, options?: CallOptions): Promise<void> {
    return this.core.call("deleteApiKey", { key_id: keyId }, options);
  }
}

export class ImagesOperations extends Service {
  /** `createImageGeneration`: POST /images/generations */
  generate(params: CreateImageGenerationParams, options?: CallOptions): Promise<ImageGenerationAcceptedRecord> {
    return this.core.call("createImageGeneration", { ...params }, options);
  }

  /** `getImageGeneration`: GET /images/generations/{record} */
  getGeneration(record: string, options?: ReadOptions): Promise<ImageGenerationStatusRecord> {
    return this.core.call("getImageGeneration", { record }, options);
  }

  /** `uploadImage`: POST /images/uploads */
  upload(params: UploadImageParams, options?: CallOptions): Promise<ImageUploadRecord> {
    return this.core.call("uploadImage", { ...params }, options);
  }

  /** `listImageModels`: GET /images/models */
  listModels(options?: ReadOptions): Promise<ModelCatalogEntry[]> {
    return this.core.call("listImageModels", {}, options);
  }

  /**
   * `downloadArtifact`: GET /artifacts/download
   *
   * For the parts of a signed URL; `downloadSigned` takes the URL as it was given.
   */
  downloadArtifact(params: DownloadArtifactParams, options?: CallOptions): Promise<ByteStream> {
    return this.core.call("downloadArtifact", { ...params }, options);
  }
}

export class AttachmentsOperations extends Service {
  /** `uploadChatAttachment`: POST /workspaces/{workspace_id}/chats/{chat_id}/attachments */
  upload(workspaceId: string, chatId: string, params: UploadChatAttachmentParams, options?: CallOptions): Promise<ChatAttachment> {
    return this.core.call("uploadChatAttachment", { workspace_id: workspaceId, chat_id: chatId, ...params }, options);
  }

  /** `listChatAttachments`: GET /workspaces/{workspace_id}/chats/{chat_id}/attachments */
  list(workspaceId: string, chatId: string, options?: ReadOptions): Promise<ChatAttachment[]> {
    return this.core.call("listChatAttachments", { workspace_id: workspaceId, chat_id: chatId }, options);
  }

  /** `getChatAttachment`: GET /workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id} */
  get(workspaceId: string, chatId: string, attachmentId: string, options?: ReadOptions): Promise<ChatAttachment> {
    return this.core.call("getChatAttachment", { workspace_id: workspaceId, chat_id: chatId, attachment_id: attachmentId }, options);
  }

  /** `deleteChatAttachment`: DELETE /workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id} */
  delete(workspaceId: string, chatId: string, attachmentId: string, options?: CallOptions): Promise<ChatAttachment> {
    return this.core.call("deleteChatAttachment", { workspace_id: workspaceId, chat_id: chatId, attachment_id: attachmentId }, options);
  }

  /** `retryChatAttachment`: POST /workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}/retry */
  retry(workspaceId: string, chatId: string, attachmentId: string, params: RetryChatAttachmentParams, options?: CallOptions): Promise<ChatAttachment> {
    return this.core.call("retryChatAttachment", { workspace_id: workspaceId, chat_id: chatId, attachment_id: attachmentId, ...params }, options);
  }

  /** `downloadChatAttachment`: GET /workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}/download */
  download(workspaceId: string, chatId: string, attachmentId: string, params: DownloadChatAttachmentParams, options?: CallOptions): Promise<ByteStream> {
    return this.core.call("downloadChatAttachment", { workspace_id: workspaceId, chat_id: chatId, attachment_id: attachmentId, ...params }, options);
  }
}

export class WikiOperations extends Service {
  /** `withdrawWikiSource`: POST /workspaces/{workspace_id}/wiki/outbox/files */
  withdraw(workspaceId: string, params: WithdrawWikiSourceParams, options?: CallOptions): Promise<WikiSource> {
    return this.core.call("withdrawWikiSource", { workspace_id: workspaceId, ...params }, options);
  }

  /** `createWikiInboxRun`: POST /workspaces/{workspace_id}/wiki/inbox/runs */
  inbox(workspaceId: string, params: CreateWikiInboxRunParams, options?: CallOptions): Promise<WikiOperation> {
    return this.core.call("createWikiInboxRun", { workspace_id: workspaceId, ...params }, options);
  }

  /** `createWikiOutboxRun`: POST /workspaces/{workspace_id}/wiki/outbox/runs */
  outbox(workspaceId: string, params: CreateWikiOutboxRunParams, options?: CallOptions): Promise<WikiOperation> {
    return this.core.call("createWikiOutboxRun", { workspace_id: workspaceId, ...params }, options);
  }

  /** `createWikiSyncRun`: POST /workspaces/{workspace_id}/wiki/syncs */
  sync(workspaceId: string, params: CreateWikiSyncRunParams, options?: CallOptions): Promise<WikiOperation> {
    return this.core.call("createWikiSyncRun", { workspace_id: workspaceId, ...params }, options);
  }

  /** `getWikiOperation`: GET /workspaces/{workspace_id}/wiki/operations/{operation_id} */
  operation(workspaceId: string, operationId: string, options?: ReadOptions): Promise<WikiOperation> {
    return this.core.call("getWikiOperation", { workspace_id: workspaceId, operation_id: operationId }, options);
  }

  /** `listWikiCategories`: GET /workspaces/{workspace_id}/wiki/categories */
  categories(workspaceId: string, options?: ReadOptions): Promise<Categories> {
    return this.core.call("listWikiCategories", { workspace_id: workspaceId }, options);
  }

  /** `getWikiCategoryIndex`: GET /workspaces/{workspace_id}/wiki/categories/{category_id}/index */
  categoryIndex(workspaceId: string, categoryId: string, params: GetWikiCategoryIndexParams = {}, options?: ReadOptions): Promise<CategoryIndex> {
    return this.core.call("getWikiCategoryIndex", { workspace_id: workspaceId, category_id: categoryId, ...params }, options);
  }
}
