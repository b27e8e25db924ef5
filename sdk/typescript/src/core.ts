/** One client's state and the flows every operation goes through: versions, retries, redirects, results. */
import { ByteStream } from "./downloads.js";
import { CompatibilityError, EnvaiError, NotFoundError, RedirectRefusedError, TransportError } from "./errors.js";
import type { Capabilities } from "./generated/models.js";
import { OPERATIONS, type OperationId, type Operations } from "./generated/operations.js";
import { type HttpRequest, Reply, open } from "./http.js";
import type { Options } from "./options.js";
import { type Arguments, build, checkAcknowledgement, parseJson, readError, readResult, retryAfter } from "./requests.js";
import { decode } from "./resources.js";
import { type Signal, writeLog } from "./signals.js";
import { type Limits, backoff, limitsOf, now, sleep } from "./waits.js";

const RETRYABLE = new Set([429, 502, 503, 504]);
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 3;
const KEPT_ELSEWHERE = ["Accept", "Accept-Encoding", "User-Agent"];

/** What every call may be given. */
export interface CallOptions {
  /** Milliseconds for all of it, retries included. */
  timeout?: number;
  signal?: AbortSignal;
}

/** What calls that only read may be given. */
export interface ReadOptions extends CallOptions {
  /** In place of that of the client's `retry`. */
  maxRetries?: number;
}

/** @internal Settings, what was learnt about the server, and who watches. Shared by everything of one client. */
export class Core {
  readonly options: Options;
  version: number | undefined;
  capabilities: Capabilities | undefined;

  constructor(options: Options) {
    this.options = options;
    this.version = options.contractVersion === "auto" ? undefined : options.contractVersion;
  }

  /** The same with other settings; what was learnt stays. */
  withOptions(changes: Partial<Options>): Core {
    const other = new Core({ ...this.options, ...changes });
    other.version = this.version;
    other.capabilities = this.capabilities;
    return other;
  }

  get isWatched(): boolean {
    return this.options.observer !== undefined || this.options.logger !== undefined;
  }

  /** Tell the log and the observer; a failing observer is reported and never breaks a request. */
  notify(signal: Signal): void {
    const { logger, observer } = this.options;
    if (logger !== undefined) writeLog(signal, logger);
    try {
      observer?.(signal);
    } catch (problem) {
      logger?.warn(`observer failed: ${(problem as Error)?.name}`); // the application's code
    }
  }

  /** Perform an operation of the contract. */
  async call<K extends OperationId>(
    id: K,
    given: Operations[K]["args"],
    options: ReadOptions = {},
  ): Promise<Operations[K]["result"]> {
    const { result, type } = OPERATIONS[id];
    if (result === "events") throw new TypeError(`${id} is a stream: see chats.events`);
    return naming(id, async () => {
      if (result === "bytes") return this.#openBytes(id, given as Arguments, options);
      const { reply, body, version } = await this.#answer(id, given as Arguments, options);
      return decode(type, readResult(id, reply, body, version));
    }) as Promise<Operations[K]["result"]>;
  }

  /** The answer to an operation as it came, refusals included. */
  async rawResponse<K extends OperationId>(
    id: K,
    given: Operations[K]["args"],
    options: ReadOptions = {},
  ): Promise<RawResponse> {
    const operation = OPERATIONS[id];
    if (operation?.result !== "json" && operation?.result !== "none") {
      throw new TypeError(`${id} is no operation that answers JSON or nothing`);
    }
    return naming(id, async () => {
      const { reply, body, version } = await this.#answer(id, given as Arguments, options);
      return new RawResponse(id, reply, body, version);
    });
  }

  async #answer(
    id: OperationId,
    given: Arguments,
    options: ReadOptions,
  ): Promise<{ reply: Reply; body: Uint8Array; version: number }> {
    const limits = limitsOf(options);
    const version = await this.contractVersion(id, limits);
    const request = await build(this.options, id, given, version, options.timeout);
    return { ...(await this.send(id, request, limits, options.maxRetries)), version };
  }

  async #openBytes(id: OperationId, given: Arguments, options: CallOptions): Promise<ByteStream> {
    const limits = limitsOf(options);
    const version = await this.contractVersion(id, limits);
    const request = await build(this.options, id, given, version, options.timeout);
    const reply = await this.openRequest(request, limits);
    try {
      checkAcknowledgement(id, reply, version);
    } catch (problem) {
      reply.close();
      throw problem;
    }
    return new ByteStream(reply, { signal: options.signal });
  }

  /** The version to speak; asked of the server once, the first time it matters. */
  async contractVersion(id: OperationId, limits: Limits): Promise<number> {
    if (this.version === undefined) {
      if (!OPERATIONS[id].negotiated || id === "getCapabilitiesLegacy") return 3;
      await this.learnCapabilities(limits);
    }
    return this.version ?? 3;
  }

  /** What the server announces, cached. Falls back to the version 2 paths only if version 3 is not there. */
  async learnCapabilities(limits: Limits): Promise<Capabilities> {
    if (this.capabilities !== undefined) return this.capabilities;
    const id = "getCapabilities";
    for (const version of this.version === undefined ? [3, 2] : [this.version]) {
      const request = await build(this.options, id, {}, version, undefined);
      const { reply, body } = await this.send(id, request, limits);
      let raw: unknown;
      try {
        raw = readResult(id, reply, body, version);
      } catch (problem) {
        const absent = problem instanceof NotFoundError || problem instanceof CompatibilityError;
        if (!absent || version === 2 || this.version !== undefined) throw problem;
        continue;
      }
      this.capabilities = decode("Capabilities", raw) as Capabilities;
      this.version = version;
      return this.capabilities;
    }
    throw new Error("unreachable: the last version throws");
  }

  /** The answer, after the retries that are safe: GET only, whatever a mutation carries. */
  async send(
    id: OperationId,
    request: HttpRequest,
    limits: Limits,
    maxRetries = this.options.retry.maxRetries,
  ): Promise<{ reply: Reply; body: Uint8Array }> {
    const policy = this.options.retry;
    for (let attempt = 1; ; attempt++) {
      let answer: { reply: Reply; body: Uint8Array } | undefined;
      let failure: TransportError | undefined;
      try {
        answer = await this.#exchange(request, limits);
      } catch (problem) {
        if (!(problem instanceof TransportError)) throw problem;
        failure = problem;
      }
      if (answer !== undefined && !RETRYABLE.has(answer.reply.status)) return answer;
      const asked = answer === undefined ? null : retryAfter(answer.reply);
      const tooLong = asked !== null && asked > policy.maxRetryAfter;
      const outOfTime = limits.deadline !== undefined && now() + (asked ?? 0) >= limits.deadline;
      if (request.method !== "GET" || attempt > maxRetries || tooLong || outOfTime) {
        if (answer === undefined) throw failure!;
        return answer;
      }
      const delay = asked ?? backoff(policy.baseDelay, policy.maxDelay, attempt);
      this.notify({ kind: "retrying", operation: id, attempt, delay, status: answer?.reply.status ?? null });
      await sleep(delay, limits);
    }
  }

  /** One whole answer, following the redirects that keep to the origin. */
  async #exchange(request: HttpRequest, limits: Limits): Promise<{ reply: Reply; body: Uint8Array }> {
    let asked = request;
    for (let hops = 0; ; hops++) {
      const reply = await this.#watched(asked, limits);
      const body = await reply.all(limits);
      if (!REDIRECTS.has(reply.status) && !reply.opaque) return { reply, body };
      asked = redirected(asked, reply, hops, false);
    }
  }

  /** An open, successful answer, after at most a few redirects. Anything else is closed and thrown. */
  async openRequest(request: HttpRequest, limits: Limits): Promise<Reply> {
    let asked = request;
    for (let hops = 0; ; hops++) {
      const reply = await this.#watched(asked, limits);
      if (reply.status >= 200 && reply.status < 300) return reply;
      const problem = await closedError(reply, limits);
      if (!REDIRECTS.has(reply.status) && !reply.opaque) throw problem;
      asked = redirected(asked, reply, hops, true);
    }
  }

  async #watched(request: HttpRequest, limits: Limits): Promise<Reply> {
    const { operation, method, label } = request;
    const started = now();
    let status: number | null = null;
    this.notify({ kind: "requestStarted", operation, method, path: label });
    try {
      const reply = await open(this.options.fetch, request, limits);
      status = reply.status;
      return reply;
    } finally {
      this.notify({ kind: "requestEnded", operation, method, path: label, status, ms: now() - started });
    }
  }
}

/** @internal Let every error say which operation it is of. */
export async function naming<T>(id: OperationId, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (problem) {
    const { method, path } = OPERATIONS[id];
    throw problem instanceof EnvaiError ? problem.locate({ where: `${id} ${method} ${path}` }) : problem;
  }
}

/** @internal Read a little of a refusal, close it, and say what it was. */
export async function closedError(reply: Reply, limits: Limits): Promise<EnvaiError> {
  let body: Uint8Array = new Uint8Array();
  try {
    body = await reply.all(limits, 65_536);
  } catch (problem) {
    // The status alone still names the error.
    if (!(problem instanceof EnvaiError) || limits.signal?.aborted) throw problem;
  }
  return readError(reply, body);
}

/** The request a redirect leads to. Another origin never sees credentials, and only downloads may go there. */
function redirected(request: HttpRequest, reply: Reply, hops: number, toBytes: boolean): HttpRequest {
  const refuse = (why: string): never => {
    throw new RedirectRefusedError(why, { httpStatus: reply.status });
  };
  if (hops >= MAX_REDIRECTS) refuse("too many redirects");
  const location = reply.headers.get("location");
  const from = new URL(request.url);
  let target: URL;
  try {
    target = new URL(location ?? "", from);
  } catch {
    return refuse("refused a redirect");
  }
  const same = target.origin === from.origin;
  const downgrade = from.protocol === "https:" && target.protocol !== "https:";
  const web = target.protocol === "http:" || target.protocol === "https:";
  if (request.method !== "GET" || location === null || downgrade || !web || !(same || toBytes)) {
    refuse("refused a redirect");
  }
  const kept = Object.entries(request.headers).filter(([name]) => same || KEPT_ELSEWHERE.includes(name));
  return { ...request, url: target.href, headers: Object.fromEntries(kept) };
}

/** An answer as it came: status, headers and bytes. */
export class RawResponse {
  readonly operation: OperationId;
  readonly httpStatus: number;
  readonly headers: Headers;
  /** The contract version that was spoken. */
  readonly version: number;
  readonly #reply: Reply;
  readonly #content: Uint8Array;

  /** @internal */
  constructor(operation: OperationId, reply: Reply, content: Uint8Array, version: number) {
    this.operation = operation;
    this.httpStatus = reply.status;
    this.headers = reply.headers;
    this.version = version;
    this.#reply = reply;
    this.#content = content;
  }

  get content(): Uint8Array {
    return this.#content;
  }

  get requestId(): string | null {
    return this.headers.get("x-request-id");
  }

  /** The body, parsed. Throws InvalidResponseError if it is not JSON. */
  json(): unknown {
    return parseJson(this.#content);
  }

  /** This answer, or the error it stands for. */
  orThrow(): this {
    if (this.httpStatus < 200 || this.httpStatus >= 300) throw readError(this.#reply, this.#content);
    return this;
  }
}
