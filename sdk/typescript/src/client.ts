/** The client. */
import { type CallOptions, Core, type RawResponse, type ReadOptions } from "./core.js";
import { asyncDispose } from "./downloads.js";
import type { OperationId, Operations } from "./generated/operations.js";
import {
  AgentsOperations,
  ApiKeysOperations,
  CapabilitiesOperations,
  InfrastructureOperations,
  ModelsOperations,
  TeamsOperations,
  UserToolsOperations,
  WorkspacesOperations,
} from "./generated/services.js";
import {
  AttachmentsService,
  ChatsService,
  CompletionsService,
  ImagesService,
  WikiService,
  WorkspaceFilesService,
} from "./helpers.js";
import { type KeyCache, KeyRing } from "./keys.js";
import { type Ledger, defaultLedger } from "./ledger.js";
import { type ReconnectPolicy, type RetryPolicy, type Settings, type Timeouts, numbers, readOptions } from "./options.js";
import { inspect } from "./secrets.js";

export interface ClientSettings extends Settings {
  /** Where client-tool calls are recorded. By default files in the user's state folder, in a browser its database. */
  ledger?: Ledger;
  /** Where the keys that sign tool requests are kept; in memory by default. */
  jwksCache?: KeyCache;
}

/** What `withOptions` changes. */
export interface OtherOptions {
  /** In place of `timeouts.request`. */
  timeout?: number;
  /** In place of `retry.maxRetries`. */
  maxRetries?: number;
  timeouts?: Partial<Timeouts>;
  retry?: Partial<RetryPolicy>;
  reconnect?: Partial<ReconnectPolicy>;
}

interface Shared {
  keys: KeyRing;
  webhookKeys: KeyRing;
  ledger: () => Ledger;
}

/**
 * The Envai API and the Agent Team Protocol.
 *
 * `apiKey` and `baseUrl` come from ENVAI_API_KEY and ENVAI_BASE_URL where there is an environment and they are not passed.
 */
export class EnvaiClient {
  readonly #core: Core;
  readonly #shared: Shared;
  #ledger: Ledger | undefined;
  #ownLedger = false;
  #owner = true;
  readonly agents: AgentsOperations;
  readonly apiKeys: ApiKeysOperations;
  readonly attachments: AttachmentsService;
  readonly capabilities: CapabilitiesOperations;
  readonly chats: ChatsService;
  readonly completions: CompletionsService;
  readonly files: WorkspaceFilesService;
  readonly images: ImagesService;
  readonly infrastructure: InfrastructureOperations;
  readonly models: ModelsOperations;
  readonly teams: TeamsOperations;
  readonly tools: UserToolsOperations;
  readonly wiki: WikiService;
  readonly workspaces: WorkspacesOperations;

  constructor(settings?: ClientSettings);
  /** @internal */
  constructor(settings: ClientSettings, made: { core: Core; shared: Shared });
  constructor(settings: ClientSettings = {}, made?: { core: Core; shared: Shared }) {
    const { ledger, jwksCache, ...rest } = settings;
    const core = made?.core ?? new Core(readOptions(rest));
    this.#core = core;
    this.#ledger = ledger;
    this.#owner = made === undefined;
    this.#shared = made?.shared ?? {
      keys: new KeyRing(core, "getJwks", jwksCache),
      webhookKeys: new KeyRing(core, "getWikiWebhookJwks"),
      ledger: () => this.#openLedger(),
    };
    const { keys, webhookKeys } = this.#shared;
    this.agents = new AgentsOperations(core);
    this.apiKeys = new ApiKeysOperations(core);
    this.attachments = new AttachmentsService(core);
    this.capabilities = new CapabilitiesOperations(core);
    this.chats = new ChatsService(core, keys, this.#shared.ledger);
    this.completions = new CompletionsService(core);
    this.files = new WorkspaceFilesService(core);
    this.images = new ImagesService(core);
    this.infrastructure = new InfrastructureOperations(core);
    this.models = new ModelsOperations(core);
    this.teams = new TeamsOperations(core);
    this.tools = new UserToolsOperations(core);
    this.wiki = new WikiService(core, webhookKeys);
    this.workspaces = new WorkspacesOperations(core);
  }

  get baseUrl(): string {
    return this.#core.options.baseUrl;
  }

  /** Where client-tool calls are recorded; opened on first use. */
  get ledger(): Ledger {
    return this.#shared.ledger();
  }

  /** A client with other settings, and the same keys and ledger; closing is left to this one. */
  withOptions(changes: OtherOptions): EnvaiClient {
    const { timeouts, retry, reconnect } = this.#core.options;
    const core = this.#core.withOptions({
      timeouts: numbers("timeouts", { ...timeouts, request: changes.timeout ?? timeouts.request }, changes.timeouts),
      retry: numbers("retry", { ...retry, maxRetries: changes.maxRetries ?? retry.maxRetries }, changes.retry),
      reconnect: numbers("reconnect", reconnect, changes.reconnect),
    });
    return new EnvaiClient({}, { core, shared: this.#shared });
  }

  /** Any operation of the contract under its own operation id: names that a façade may change and the contract never does. */
  call<K extends OperationId>(
    operation: K,
    args: Operations[K]["args"],
    options?: CallOptions,
  ): Promise<Operations[K]["result"]> {
    return this.#core.call(operation, args, options);
  }

  /** The answer to an operation of the contract as it came, refusals included: status, headers and body. */
  rawResponse<K extends OperationId>(
    operation: K,
    args: Operations[K]["args"],
    options?: ReadOptions,
  ): Promise<RawResponse> {
    return this.#core.rawResponse(operation, args, options);
  }

  /** Release the ledger, if the client opened it. Streams are closed by themselves. */
  async close(): Promise<void> {
    if (this.#owner && this.#ownLedger) await this.#ledger?.close?.();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  #openLedger(): Ledger {
    if (this.#ledger === undefined) {
      this.#ledger = defaultLedger();
      this.#ownLedger = true;
    }
    return this.#ledger;
  }

  [inspect](): string {
    return `<EnvaiClient ${this.baseUrl}>`;
  }
}
