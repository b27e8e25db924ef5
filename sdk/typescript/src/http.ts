/** One request over `fetch`, and an answer that is read piece by piece. */
import { InvalidResponseError, RequestTimeoutError, TransportError } from "./errors.js";
import { IN_BROWSER } from "./options.js";
import { type Limits, remaining, within } from "./waits.js";

const BODY_LIMIT = 64 * 1024 * 1024;
// The request provably never left: no connection was there to carry it.
const UNSENT = new Set(
  "ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH UND_ERR_CONNECT_TIMEOUT ConnectionRefused".split(" "),
);

export interface HttpRequest {
  readonly operation: string;
  readonly method: string;
  readonly url: string;
  /** The path as the contract writes it: what may be seen by anyone. */
  readonly label: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: BodyInit | undefined;
  /** Milliseconds until the answer begins, and between two reads of it. */
  readonly headTimeout: number;
  readonly readTimeout: number;
}

/** Send, and give the answer once it begins. */
export async function open(send: typeof fetch, request: HttpRequest, limits: Limits): Promise<Reply> {
  const left = remaining(limits);
  const stop = new AbortController();
  const init: RequestInit & { duplex?: "half"; client?: unknown } = {
    method: request.method,
    headers: request.headers,
    redirect: "manual",
    credentials: "omit",
    signal: stop.signal,
  };
  if (IN_BROWSER) init.cache = "no-store";
  if (request.method !== "GET") init.client = unpooled();
  if (request.body !== undefined) {
    init.body = request.body;
    if (request.body instanceof ReadableStream) init.duplex = "half";
  }
  try {
    const work = Promise.resolve().then(() => send(request.url, init));
    const response = await within(work, bound(request.headTimeout, left), limits.signal, () =>
      late(request.headTimeout, left),
    );
    return new Reply(response, stop, request.readTimeout);
  } catch (problem) {
    stop.abort();
    throw failure(problem);
  }
}

interface DenoGlobal {
  Deno?: { createHttpClient?(options: { poolMaxIdlePerHost: number }): unknown };
}

let client: unknown;

/**
 * Deno sends a request again by itself, a POST too, when a connection that it had kept breaks. What must go out once goes
 * over a connection of its own there.
 */
function unpooled(): unknown {
  return (client ??= (globalThis as DenoGlobal).Deno?.createHttpClient?.({ poolMaxIdlePerHost: 0 }));
}

function bound(own: number, left: number | undefined): number {
  return left === undefined ? own : Math.min(own, left);
}

function late(own: number, left: number | undefined): never {
  const whose = left !== undefined && left <= own ? "the operation's timeout has passed" : "no answer in time";
  throw new RequestTimeoutError(whose);
}

/** Our error for a failed exchange. It does not chain: the original may hold the request and its headers. */
function failure(problem: unknown): unknown {
  if (!(problem instanceof Error) || "requestId" in problem) return problem;
  const codes = [codeOf(problem), codeOf(problem.cause)];
  const told = `${problem.message} ${(problem.cause as Error | undefined)?.message ?? ""}`;
  const unsent = codes.some((code) => code !== undefined && UNSENT.has(code)) || /connection refused/i.test(told);
  return new TransportError(`no answer: ${codes.find(Boolean) ?? problem.name}`, { sent: !unsent });
}

function codeOf(problem: unknown): string | undefined {
  const code = (problem as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Status, headers and a body to read. Close it, read or not. */
export class Reply {
  readonly status: number;
  readonly headers: Headers;
  /** A redirect that the runtime followed no further and tells nothing about. */
  readonly opaque: boolean;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #stop: AbortController;
  readonly #readTimeout: number;
  #done: boolean;

  constructor(response: Response, stop: AbortController, readTimeout: number) {
    this.status = response.status;
    this.headers = response.headers;
    this.opaque = response.type === "opaqueredirect";
    this.#reader = response.body?.getReader();
    this.#done = this.#reader === undefined;
    this.#stop = stop;
    this.#readTimeout = readTimeout;
  }

  /** The next bytes, null at the end. */
  async read(limits: Limits): Promise<Uint8Array | null> {
    const left = remaining(limits);
    if (this.#done || this.#reader === undefined) return null;
    try {
      const own = this.#readTimeout;
      const step = await within(this.#reader.read(), bound(own, left), limits.signal, () => late(own, left));
      this.#done = step.done;
      return step.value ?? null;
    } catch (problem) {
      throw failure(problem);
    }
  }

  /** The whole body, within reason; closed afterwards. */
  async all(limits: Limits, most = BODY_LIMIT): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    try {
      for (let chunk = await this.read(limits); chunk !== null; chunk = await this.read(limits)) {
        chunks.push(chunk);
        size += chunk.length;
        if (size > most) throw new InvalidResponseError(`the answer is larger than ${most} bytes`);
      }
    } finally {
      this.close();
    }
    return joined(chunks, size);
  }

  /** Release the connection: kept for others where the body was read to its end, closed where it was not. */
  close(): void {
    if (this.#done) return;
    this.#done = true;
    this.#stop.abort();
    this.#reader?.cancel().catch(() => undefined);
  }
}

export function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const out = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
  }
  return out;
}
