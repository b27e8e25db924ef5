/** Services with helpers beyond the contract's operations. */
import { type CallOptions, type Core, type ReadOptions, naming } from "./core.js";
import { ByteStream, type SaveOptions } from "./downloads.js";
import { EnvaiError, ForkFailedError, UnsafePathError } from "./errors.js";
import type { Event } from "./events.js";
import { type FollowOptions, Follower, type OnExpired, readHistory } from "./follow.js";
import type {
  Chat,
  ChatAttachment,
  Completion,
  CompletionCollection,
  CompletionCollectionLinks,
  CompletionCollectionMeta,
  ImageGenerationStatusRecord,
} from "./generated/models.js";
import type { CreateImageGenerationParams, ListCompletionsParams, SendChatMessageParams } from "./generated/operations.js";
import {
  AttachmentsOperations,
  ChatsOperations,
  CompletionsOperations,
  ImagesOperations,
  WikiOperations,
  WorkspaceFilesOperations,
} from "./generated/services.js";
import type { HttpRequest } from "./http.js";
import type { KeyRing } from "./keys.js";
import type { Ledger, LedgerRecord } from "./ledger.js";
import { inspect } from "./secrets.js";
import { EventStream, type RunOptions, ToolRun, TurnStream } from "./streams.js";
import { ToolCalls } from "./tool-calls.js";
import { type ClientTool, type OnAmbiguous, type ToolOutcome, type ToolOutput, registryOf, serialise } from "./tools.js";
import type { TurnResult } from "./turns.js";
import { backoff, deadlineOf, limitsOf, pause, remaining } from "./waits.js";
import { type WebhookBody, type WebhookEvent, type WebhookHeaders, verifyWebhook } from "./webhooks.js";

const SETTLED = new Set(["succeeded", "failed", "cancelled", "canceled", "completed"]);
const UNDER_WAY = new Set(["queued", "running"]);
const POLL_CEILING = 10_000;

/** What a turn is sent: its text, or the message with attachments and an idempotency key. */
export type Message = string | SendChatMessageParams;

export interface TurnOptions {
  /** Skips a replay already seen. */
  after?: number;
  epoch?: string | null;
  onExpired?: OnExpired;
  /** Milliseconds for all of it. */
  timeout?: number;
  signal?: AbortSignal;
}

export interface ToolOptions {
  /** Where calls are recorded; the client's by default. */
  ledger?: Ledger;
  /** Answers a call that another life of the program began. */
  onAmbiguous?: OnAmbiguous;
}

export interface WaitOptions extends TurnOptions, ToolOptions, Pick<RunOptions, "maxConcurrency"> {
  /** Answer the turn's client tools with these, as `runClientTools` does. */
  tools?: Iterable<ClientTool>;
}

export interface ForkResult {
  /** The destination that was created; it is yours to keep. */
  readonly chat: Chat;
  readonly sourceChatId: string;
}

const paramsOf = (message: Message): SendChatMessageParams => (typeof message === "string" ? { message } : message);

export class ChatsService extends ChatsOperations {
  readonly #keys: KeyRing;
  readonly #ledger: () => Ledger;

  /** @internal */
  constructor(core: Core, keys: KeyRing, ledger: () => Ledger) {
    super(core);
    this.#keys = keys;
    this.#ledger = ledger;
  }

  /**
   * `streamChatEvents`: every event after `after`, once and in order, through reconnections, without end.
   *
   * Throws ReplayGapError when events are lost for good, and CursorExpiredError when the log no longer continues from the
   * cursor, unless `onExpired: "restart"` says to read the new log from its beginning.
   */
  events(chatId: string, options: FollowOptions = {}): EventStream {
    return new EventStream(new Follower(this.core, chatId, options));
  }

  /** `streamChatEventsLegacy`: the finite version 2 replay after `after`. */
  eventsHistory(chatId: string, options: { after?: number } & CallOptions = {}): Promise<Event[]> {
    return naming("streamChatEventsLegacy", () => readHistory(this.core, chatId, options.after ?? 0, options));
  }

  /**
   * Attach, send `message` and iterate over the turn's events up to its terminal event. The message goes out once, after
   * the subscription is known to be live.
   */
  sendAndStream(chatId: string, message: Message, options: TurnOptions = {}): TurnStream {
    return new TurnStream(this.core, chatId, paramsOf(message), options);
  }

  /** Send and wait for the end of the turn. Gives whatever the ending was: see `TurnResult.orThrow`. */
  async sendAndWait(chatId: string, message: Message, options: WaitOptions = {}): Promise<TurnResult> {
    const { tools, ledger, onAmbiguous, maxConcurrency, ...turn } = options;
    const stream = this.sendAndStream(chatId, message, turn);
    if (tools === undefined) {
      for await (const _ of stream);
      return stream.result();
    }
    const run = this.runClientTools(stream, tools, { ledger, onAmbiguous, maxConcurrency });
    try {
      for await (const _ of run);
      return stream.result(run.outcomes);
    } catch (problem) {
      if (problem instanceof EnvaiError) problem.toolOutcomes = run.outcomes;
      throw problem;
    }
  }

  /**
   * Pass on the events of `stream` while answering its client-tool requests.
   *
   * Each request is verified before anything runs, claimed where the server announces `tool_claims`, recorded in the
   * ledger and run at most once per (chatId, callId). One that comes in a replay waits for the replay to end, because its
   * result may follow. A call that another life began is handed to `onAmbiguous`; without an answer it is left to the
   * application (`ledger.unsettled`, `settleToolCall`) and to the server's timeout.
   *
   * An output is kept and sent again until the server acknowledged it, answered 409, or the turn ended; also one that an
   * earlier life left. `outcomes` says what became of each call.
   */
  runClientTools(
    stream: AsyncIterable<Event>,
    tools: Iterable<ClientTool>,
    options: RunOptions & ToolOptions = {},
  ): ToolRun {
    const isLive = stream instanceof EventStream ? () => stream.isLive : () => false;
    const { ledger = this.#ledger(), onAmbiguous } = options;
    const calls = new ToolCalls(this.core, registryOf(tools), ledger, this.#keys, onAmbiguous, isLive);
    return new ToolRun(this.core, calls, stream, options);
  }

  /** Record and deliver the application's verdict on an unsettled call; says what became of the delivery. */
  settleToolCall(record: LedgerRecord, answer: ToolOutput, options: { timeout?: number } = {}): Promise<ToolOutcome> {
    return this.#quiet().settle(record, serialise(answer), options.timeout);
  }

  /**
   * Send what the client's ledger keeps undelivered, once each, of one chat or of all. Following a chat with
   * `runClientTools` does it too; this is for a program that starts and follows nothing yet.
   */
  deliverOutputs(chatId?: string, options: { timeout?: number } = {}): Promise<ToolOutcome[]> {
    return this.#quiet().handOverAll(chatId, options.timeout);
  }

  /** Create a chat and fork `chatId` into it. On a failed fork the new chat is kept: see ForkFailedError. */
  async forkChat(workspaceId: string, chatId: string, teamId: string, options: CallOptions = {}): Promise<ForkResult> {
    const limits = limitsOf(options);
    const chat = await this.create(workspaceId, { team_id: teamId }, options);
    try {
      const rest = { timeout: remaining(limits), signal: options.signal };
      const forked = await this.fork(chatId, { destination_chat_id: chat.id }, rest);
      return { chat, sourceChatId: forked.source_chat_id };
    } catch (problem) {
      throw problem instanceof EnvaiError ? new ForkFailedError(chat, problem) : problem;
    }
  }

  #quiet(): ToolCalls {
    return new ToolCalls(this.core, new Map(), this.#ledger(), this.#keys, undefined, () => true);
  }
}

type PageAsked = { workspaceId: string; chatId: string; filters: ListCompletionsParams; options: ReadOptions };

/** One page of completions. Iterating goes on through the pages that follow. */
export class CompletionPage implements AsyncIterable<Completion> {
  /** The completions of this page alone. */
  readonly data: readonly Completion[];
  readonly links: CompletionCollectionLinks;
  readonly meta: CompletionCollectionMeta;
  /** Fields beside these that the server sent. */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly #service: CompletionsService;
  readonly #asked: PageAsked;

  /** @internal */
  constructor(service: CompletionsService, collection: CompletionCollection, asked: PageAsked) {
    this.data = collection.data;
    this.links = collection.links;
    this.meta = collection.meta;
    this.extra = collection.extra;
    this.#service = service;
    this.#asked = asked;
  }

  get #page(): number {
    return this.#asked.filters.page ?? 1;
  }

  /** Whether the server says that something follows. */
  get hasNext(): boolean {
    const last = this.meta.last_page;
    return this.data.length > 0 && (Boolean(this.links.next) || (typeof last === "number" && this.#page < last));
  }

  /** The page after this one, undefined after the last. */
  async nextPage(): Promise<CompletionPage | undefined> {
    if (!this.hasNext) return undefined;
    const { workspaceId, chatId, filters, options } = this.#asked;
    return this.#service.list(workspaceId, chatId, { ...filters, page: this.#page + 1 }, options);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Completion, void> {
    for (let page: CompletionPage | undefined = this; page !== undefined; page = await page.nextPage()) {
      yield* page.data;
    }
  }

  [inspect](): string {
    return `<CompletionPage ${this.#page} ${this.data.length} completions>`;
  }
}

export class CompletionsService extends CompletionsOperations {
  /** `listCompletions`: a page; iterate over it for its completions and those of the pages that follow. */
  async list(
    workspaceId: string,
    chatId: string,
    filters: ListCompletionsParams = {},
    options: ReadOptions = {},
  ): Promise<CompletionPage> {
    const given = { workspace_id: workspaceId, chat_id: chatId, ...filters };
    const collection = await this.core.call("listCompletions", given, options);
    return new CompletionPage(this, collection, { workspaceId, chatId, filters, options });
  }

  /** Every completion, page by page, with the filters of `list`. `timeout` bounds each page. */
  async *iterate(
    workspaceId: string,
    chatId: string,
    filters: ListCompletionsParams = {},
    options: ReadOptions = {},
  ): AsyncGenerator<Completion, void> {
    yield* await this.list(workspaceId, chatId, { ...filters, page: filters.page ?? 1 }, options);
  }
}

export interface PollOptions extends CallOptions {
  /** Milliseconds between two looks; grows to 10 s. */
  interval?: number;
}

export class AttachmentsService extends AttachmentsOperations {
  /** Poll until the conversion of an attachment is over, in whatever way; 300 s by default. */
  async wait(
    workspaceId: string,
    chatId: string,
    attachmentId: string,
    { interval = 1_000, timeout = 300_000, signal }: PollOptions = {},
  ): Promise<ChatAttachment> {
    const limits = { deadline: deadlineOf(timeout), signal };
    for (let attempt = 1; ; attempt++) {
      const found = await this.get(workspaceId, chatId, attachmentId, { timeout: remaining(limits), signal });
      const { status, recoverable } = found.conversion;
      if (!UNDER_WAY.has(status) && !recoverable) return found;
      await pause(backoff(interval, POLL_CEILING, attempt), limits);
    }
  }
}

export class WorkspaceFilesService extends WorkspaceFilesOperations {
  /** Download a workspace file to `destination`; the rest as in `ByteStream.save`. */
  async downloadToFile(workspaceId: string, path: string, destination: string, options: SaveOptions = {}): Promise<void> {
    const { timeout, signal } = options;
    const stream = await this.download(workspaceId, { path }, { timeout, signal });
    await stream.save(destination, options);
  }
}

export class ImagesService extends ImagesOperations {
  /** Generate and poll until the record is settled; 300 s by default. */
  async generateAndWait(
    params: CreateImageGenerationParams,
    { interval = 1_000, timeout = 300_000, signal }: PollOptions = {},
  ): Promise<ImageGenerationStatusRecord> {
    const limits = { deadline: deadlineOf(timeout), signal };
    const { id } = await this.generate(params, { timeout, signal });
    for (let attempt = 1; ; attempt++) {
      await pause(backoff(interval, POLL_CEILING, attempt), limits);
      const status = await this.getGeneration(id, { timeout: remaining(limits), signal });
      if (SETTLED.has(status.status)) return status;
    }
  }

  /** Open a signed artifact URL as the server gave it, without credentials. */
  async downloadSigned(url: string, options: CallOptions = {}): Promise<ByteStream> {
    const request = signedRequest(this.core, url, options.timeout);
    return new ByteStream(await this.core.openRequest(request, limitsOf(options)), { signal: options.signal });
  }

  /** Download a signed artifact URL to `destination`; the rest as in `ByteStream.save`. */
  async downloadToFile(url: string, destination: string, options: SaveOptions = {}): Promise<void> {
    const { timeout, signal } = options;
    await (await this.downloadSigned(url, { timeout, signal })).save(destination, options);
  }
}

/** The request for a signed artifact URL, exactly as given: no credentials, only on the API's own origin. */
function signedRequest(core: Core, text: string, timeout: number | undefined): HttpRequest {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const known = url?.origin === new URL(core.options.baseUrl).origin && url.pathname.endsWith("/artifacts/download");
  if (!url || !known || url.username || url.hash || !url.searchParams.has("signature")) {
    throw new UnsafePathError("not a signed artifact URL of this server");
  }
  const wait = timeout ?? core.options.timeouts.request;
  const { userAgent } = core.options;
  const own: Record<string, string> = userAgent === undefined ? {} : { "Accept-Encoding": "identity", "User-Agent": userAgent };
  return {
    operation: "downloadArtifact",
    method: "GET",
    url: text,
    label: "/artifacts/download",
    headers: { Accept: "*/*", ...own },
    headTimeout: wait,
    readTimeout: wait,
  };
}

export class WikiService extends WikiOperations {
  readonly #keys: KeyRing;

  /** @internal */
  constructor(core: Core, keys: KeyRing) {
    super(core);
    this.#keys = keys;
  }

  /** The event of a webhook delivery, if it is genuine: pass the bytes as received. Throws SignatureError otherwise. */
  verifyWebhook(
    body: WebhookBody,
    headers: WebhookHeaders,
    workspaceId: string,
    options: { now?: Date; timeout?: number } = {},
  ): Promise<WebhookEvent> {
    return verifyWebhook(this.#keys, body, headers, workspaceId, options);
  }
}
