export { EnvaiClient, type ClientSettings, type OtherOptions } from "./client.js";
export { RawResponse, type CallOptions, type ReadOptions } from "./core.js";
export { ByteStream, type SaveOptions } from "./downloads.js";
export * from "./errors.js";
export {
  type AgentEvent,
  type Event,
  type EventBase,
  type EventType,
  type PingEvent,
  type TerminalEvent,
  type TurnEvent,
  type UnknownEvent,
  isTerminal,
  parseEvent,
} from "./events.js";
export type { FollowOptions, OnExpired } from "./follow.js";
export type * from "./generated/models.js";
export type * from "./generated/operations.js";
export { OPERATIONS } from "./generated/operations.js";
export {
  type AttachmentsService,
  type ChatsService,
  CompletionPage,
  type CompletionsService,
  type ForkResult,
  type ImagesService,
  type Message,
  type PollOptions,
  type ToolOptions,
  type TurnOptions,
  type WaitOptions,
  type WikiService,
  type WorkspaceFilesService,
} from "./helpers.js";
export { canonicalJson } from "./jcs.js";
export { type KeyCache, type Keys, MemoryKeyCache, verifyToolRequest } from "./keys.js";
export { type Claim, FileLedger, IndexedDbLedger, type Ledger, type LedgerRecord, MemoryLedger } from "./ledger.js";
export type { ApiKey as ApiKeySource, ContractVersion, ReconnectPolicy, RetryPolicy, Settings, Timeouts } from "./options.js";
export type * from "./payloads.js";
export type { Resource } from "./resources.js";
export type { Logger, Signal } from "./signals.js";
export { type SqliteDatabase, SqliteLedger, receiveWebhook } from "./sqlite.js";
export { SseDecoder } from "./sse.js";
export { EventStream, type RunOptions, ToolRun, TurnStream } from "./streams.js";
export {
  type ClientTool,
  type JsonSchema,
  type OnAmbiguous,
  type StandardSchema,
  ToolContext,
  type ToolOutcome,
  ToolOutput,
  defineTool,
} from "./tools.js";
export { TurnAccumulator, TurnResult } from "./turns.js";
export type { Upload, UploadContent } from "./uploads.js";
export { VERSION } from "./version.js";
export type * from "./webhooks.js";
