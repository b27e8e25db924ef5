/** Following a chat's stream across connections: the reading algorithm of the protocol. */
import { type Core, closedError, naming } from "./core.js";
import { Cursor } from "./cursor.js";
import {
  ConflictError,
  CursorExpiredError,
  type EnvaiError,
  InvalidEventError,
  InvalidResponseError,
  ProtocolError,
  StreamInterruptedError,
  TransportError,
} from "./errors.js";
import { type Event, parseEvent } from "./events.js";
import { type HttpRequest, type Reply, open } from "./http.js";
import { IN_BROWSER } from "./options.js";
import { build, checkAcknowledgement, encoded, retryAfter } from "./requests.js";
import { isObject } from "./resources.js";
import { SseDecoder } from "./sse.js";
import { type Limits, backoff, limitsOf, now, pause, remaining } from "./waits.js";

export type OnExpired = "throw" | "restart";

/** From where to follow a chat, and how. */
export interface FollowOptions {
  /** The last sequence number that was dealt with. */
  after?: number;
  /** The log it is of, as `stream.epoch` said. */
  epoch?: string | null;
  onExpired?: OnExpired;
  includePings?: boolean;
  /** Milliseconds for all of it. */
  timeout?: number;
  signal?: AbortSignal;
}

// More than for requests: reopening a stream repeats nothing.
const RETRYABLE = new Set([429, 500, 502, 503, 504]);
const CARRIED: Readonly<Record<number, readonly number[]>> = { 2: [2], 3: [2, 3] };

/**
 * @internal
 * Every event of one chat after a cursor, once and in order, through reconnections.
 *
 * `poll` gives an event that needs no I/O; `next` waits for one. An event counts as delivered, and `lastSeq` moves, when
 * the next one is asked for or `settle` is called.
 */
export class Follower {
  readonly core: Core;
  readonly chatId: string;
  cursor: Cursor;
  limits: Limits;
  restarts = 0;
  reconnects = 0;
  closed = false;
  readonly #onExpired: OnExpired;
  readonly #includePings: boolean;
  #reply: Reply | undefined;
  #decoder: SseDecoder;
  #frames: Uint8Array[] = [];
  #at = 0; // of the next frame
  #inHand: Event | undefined;
  #reopen = false;
  #failures = 0;
  #failingSince = 0;
  #connectedAt: number | undefined;
  #version = 3;

  constructor(core: Core, chatId: string, options: FollowOptions) {
    this.core = core;
    this.chatId = chatId;
    this.cursor = new Cursor(chatId, options.after, options.epoch ?? null);
    this.limits = limitsOf(options);
    this.#onExpired = options.onExpired ?? "throw";
    this.#includePings = options.includePings ?? false;
    this.#decoder = new SseDecoder(core.options.maxFrameBytes);
  }

  /** The event handed out last has been dealt with. */
  settle(): void {
    if (this.#inHand === undefined) return;
    this.cursor.settle(this.#inHand);
    this.#inHand = undefined;
  }

  /** The next event among the bytes already read. */
  poll(): Event | undefined {
    this.settle();
    while (this.#at < this.#frames.length && !this.#reopen) {
      const event = this.#judge(this.#frames[this.#at++]!);
      if (event === undefined) continue;
      this.#inHand = event;
      return event;
    }
    return undefined;
  }

  /** The next event, whatever it takes: connecting, waiting, resuming. */
  async next(): Promise<Event> {
    for (;;) {
      const event = this.poll();
      if (event !== undefined) return event;
      await this.advance();
    }
  }

  /** Have an open connection, without waiting for any event. */
  async connect(): Promise<void> {
    while (this.#reply === undefined || this.#reopen) await this.advance();
  }

  /** Release the connection. The cursor stays readable. */
  close(): void {
    this.closed = true;
    this.#release();
  }

  /** Read again from just after `after`, which lies behind the cursor. */
  rewind(after: number): void {
    this.#inHand = undefined;
    this.#release();
    this.cursor = new Cursor(this.chatId, after, this.cursor.epoch);
  }

  #judge(frame: Uint8Array): Event | undefined {
    const event = parseEvent(frame, CARRIED[this.#version]);
    if (event.chat_id !== this.chatId && event.chat_id.toLowerCase() !== this.chatId.toLowerCase()) {
      throw new InvalidEventError("the stream of one chat carries an event of another", { raw: event.raw });
    }
    let verdict: string;
    try {
      verdict = this.cursor.judge(event);
    } catch (problem) {
      if (!(problem instanceof CursorExpiredError)) throw problem;
      this.#expired(problem);
      return undefined;
    }
    if (verdict === "replay") {
      this.#dropFrames();
      this.#reopen = true;
    }
    if (verdict !== "deliver") return undefined;
    if (event.seq > 0) this.#failures = 0;
    if (this.core.isWatched) {
      const { wireType: type, id, seq, chat_id: chatId, turn_id: turnId } = event;
      this.core.notify({ kind: "eventReceived", type, id, seq, chatId, turnId });
    }
    return this.#includePings || event.type !== "ping" ? event : undefined;
  }

  /** Apply the caller's policy. Restarting twice without progress would loop: the second one throws. */
  #expired(problem: CursorExpiredError): void {
    const { lastSeq } = this.cursor;
    if (this.#onExpired !== "restart" || (lastSeq === 0 && this.restarts > 0)) throw problem;
    this.core.notify({ kind: "streamRestarted", chatId: this.chatId, reason: problem.reason, lastSeq });
    this.restarts++;
    this.cursor.restart(problem.reason === "epoch_changed" ? problem.epoch : null);
    this.#dropFrames();
    this.#reopen = true;
  }

  /** Bring in more bytes, (re)connecting if need be. */
  async advance(): Promise<void> {
    if (this.closed) throw new StreamInterruptedError("the stream is closed", { lastSeq: this.cursor.lastSeq });
    if (this.#reopen) {
      this.#release();
      this.#reopen = false;
    }
    if (this.#reply === undefined) {
      await naming("streamChatEvents", () => this.#connect());
      return;
    }
    let chunk: Uint8Array | null;
    try {
      chunk = await this.#reply.read(this.limits);
    } catch (problem) {
      if (!(problem instanceof TransportError)) throw problem;
      await this.#lost(problem);
      return;
    }
    if (chunk === null) {
      await this.#lost(undefined);
      return;
    }
    this.#frames = this.#decoder.feed(chunk);
    this.#at = 0;
  }

  async #connect(): Promise<void> {
    let reply: Reply;
    try {
      reply = await open(this.core.options.fetch, await this.#request(), this.limits);
    } catch (problem) {
      if (!(problem instanceof TransportError)) throw problem;
      await this.#lost(problem);
      return;
    }
    if (reply.status !== 200) {
      await this.#refused(reply);
      return;
    }
    this.#reply = reply;
    checkAcknowledgement("streamChatEvents", reply, this.#version);
    const type = reply.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
    if (type !== "text/event-stream") {
      throw new InvalidResponseError("the event stream is not text/event-stream", { httpStatus: 200 });
    }
    this.#decoder = new SseDecoder(this.core.options.maxFrameBytes);
    this.#connectedAt = now();
    try {
      this.cursor.connected(reply.headers.get("x-envai-stream-epoch"));
    } catch (problem) {
      if (!(problem instanceof CursorExpiredError)) throw problem;
      this.#expired(problem);
      return;
    }
    const { lastSeq: after, epoch } = this.cursor;
    this.core.notify({ kind: "streamOpened", chatId: this.chatId, after, epoch });
  }

  async #request(): Promise<HttpRequest> {
    const { core, cursor } = this;
    this.#version = await core.contractVersion("streamChatEvents", this.limits);
    const given = { chat_id: this.chatId, after: cursor.lastSeq };
    const request = await build(core.options, "streamChatEvents", given, this.#version, undefined);
    return {
      ...request,
      url: request.url + (cursor.epoch === null ? "" : `&epoch=${encoded(cursor.epoch)}`),
      headers: IN_BROWSER ? request.headers : { ...request.headers, "Cache-Control": "no-store" },
      headTimeout: core.options.timeouts.streamConnect,
      readTimeout: core.options.timeouts.streamIdle,
    };
  }

  async #refused(reply: Reply): Promise<void> {
    const problem = await closedError(reply, this.limits);
    if (RETRYABLE.has(reply.status)) {
      await this.#lost(problem, retryAfter(reply));
      return;
    }
    if (!(problem instanceof ConflictError) || problem.code !== "cursor_expired") throw problem;
    this.#expired(expiredBy(problem, this.cursor));
  }

  /** The connection is gone: wait and let the caller try again, or say where the stream stopped. */
  async #lost(problem: EnvaiError | undefined, asked: number | null = null): Promise<void> {
    this.#release();
    remaining(this.limits);
    const policy = this.core.options.reconnect;
    const at = now();
    const healthy = this.#connectedAt !== undefined && at - this.#connectedAt > policy.healthyAfter;
    this.#connectedAt = undefined;
    if (this.#failures === 0 || healthy) {
      this.#failures = 0;
      this.#failingSince = at;
    }
    this.#failures++;
    const tooLong = policy.maxTime !== null && at - this.#failingSince >= policy.maxTime;
    const { lastSeq } = this.cursor;
    if (this.#failures > policy.maxReconnects || tooLong || (asked ?? 0) > policy.maxRetryAfter) {
      const { httpStatus, code } = problem ?? {};
      const message = `the stream stopped after event ${lastSeq} and could not be resumed`;
      throw new StreamInterruptedError(message, { lastSeq, httpStatus, code, retryAfter: asked });
    }
    const delay = asked ?? backoff(policy.baseDelay, policy.maxDelay, this.#failures);
    this.reconnects++;
    this.core.notify({ kind: "reconnecting", chatId: this.chatId, lastSeq, attempt: this.#failures, delay });
    await pause(delay, this.limits);
  }

  #dropFrames(): void {
    this.#frames = [];
    this.#at = 0;
  }

  #release(): void {
    this.#dropFrames();
    if (this.#reply === undefined) return;
    this.#reply.close();
    this.#reply = undefined;
    this.core.notify({ kind: "streamClosed", chatId: this.chatId, lastSeq: this.cursor.lastSeq });
  }
}

/** The server's `cursor_expired` answer as the error the caller handles. */
function expiredBy(problem: ConflictError, cursor: Cursor): CursorExpiredError {
  const details = isObject(problem.details) ? problem.details : {};
  const { httpStatus, type, code, requestId } = problem;
  return new CursorExpiredError(problem.serverMessage, {
    httpStatus,
    type,
    code,
    requestId,
    details: problem.details,
    reason: typeof details["reason"] === "string" ? details["reason"] : "expired",
    lastSeq: cursor.lastSeq,
    epoch: typeof details["epoch"] === "string" ? details["epoch"] : null,
  });
}

/** @internal A finite version 2 replay: contiguous from `after`, complete, or an error. */
export async function readHistory(core: Core, chatId: string, after: number, options: FollowOptions): Promise<Event[]> {
  const id = "streamChatEventsLegacy";
  const limits = limitsOf(options);
  const request = await build(core.options, id, { chat_id: chatId, after }, 3, options.timeout);
  const reply = await open(core.options.fetch, request, limits);
  if (reply.status !== 200) throw await closedError(reply, limits);
  const cursor = new Cursor(chatId, after);
  const decoder = new SseDecoder(core.options.maxFrameBytes);
  const events: Event[] = [];
  try {
    checkAcknowledgement(id, reply, 3);
    for (let chunk = await reply.read(limits); chunk !== null; chunk = await reply.read(limits)) {
      for (const frame of decoder.feed(chunk)) {
        const event = parseEvent(frame, CARRIED[2]);
        if (cursor.judge(event) !== "deliver") {
          throw new ProtocolError("a finite replay is not contiguous", { raw: event.raw });
        }
        cursor.settle(event);
        if (event.type !== "ping") events.push(event);
      }
    }
  } finally {
    reply.close();
  }
  return events;
}
