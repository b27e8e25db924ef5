/** Event streams, turns and tool runs: what an application iterates over. */
import type { Core } from "./core.js";
import { asyncDispose } from "./downloads.js";
import { CancelledError, EnvaiError, SignatureError, StreamInUseError } from "./errors.js";
import type { Event } from "./events.js";
import { type FollowOptions, Follower } from "./follow.js";
import type { SendChatMessageParams } from "./generated/operations.js";
import { inspect } from "./secrets.js";
import type { ToolCalls, Work } from "./tool-calls.js";
import type { ToolOutcome } from "./tools.js";
import { TurnFlow, type TurnResult } from "./turns.js";
import { type Limits, now } from "./waits.js";

/**
 * A chat's events after a cursor, for `for await`. One reader; leaving the loop, a failure, `close` and `await using`
 * release the connection.
 *
 * An event counts as delivered when the next one is asked for, or when `acknowledge` is called. `lastSeq` and `epoch` are
 * what to pass to continue later.
 */
export class EventStream implements AsyncIterableIterator<Event> {
  /** @internal */
  protected readonly follower: Follower;
  #reading = false;

  /** @internal */
  constructor(follower: Follower) {
    this.follower = follower;
    Object.defineProperty(this, "follower", { enumerable: false });
  }

  get chatId(): string {
    return this.follower.chatId;
  }

  get lastSeq(): number {
    return this.follower.cursor.lastSeq;
  }

  get epoch(): string | null {
    return this.follower.cursor.epoch;
  }

  /** How often the connection was lost and taken up again. */
  get reconnects(): number {
    return this.follower.reconnects;
  }

  /** How often the policy `onExpired: "restart"` began again at zero. */
  get restarts(): number {
    return this.follower.restarts;
  }

  /** Whether this connection's replay is over: its first ping has come. */
  get isLive(): boolean {
    return this.follower.cursor.live;
  }

  /** @internal Tighten the limits, for a helper that takes over the reading; gives those until now. */
  bound(limits: Limits): Limits {
    const known = this.follower.limits;
    const deadline = Math.min(limits.deadline ?? Infinity, known.deadline ?? Infinity);
    this.follower.limits = { signal: limits.signal, deadline: deadline === Infinity ? undefined : deadline };
    return known;
  }

  /** The event in hand has been dealt with: `lastSeq` includes it. */
  acknowledge(): void {
    this.follower.settle();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Event, undefined>> {
    if (this.#reading) throw new StreamInUseError("a stream has one reader");
    this.#reading = true;
    try {
      const value = this.follower.closed ? undefined : await this.step();
      return value === undefined ? { value, done: true } : { value, done: false };
    } catch (problem) {
      this.follower.close();
      throw this.located(problem);
    } finally {
      this.#reading = false;
    }
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    this.follower.close();
    return { value: undefined, done: true };
  }

  /** Release the connection now. */
  async close(): Promise<void> {
    this.follower.close();
  }

  async [asyncDispose](): Promise<void> {
    this.follower.close();
  }

  /** @internal */
  protected step(): Event | undefined | Promise<Event | undefined> {
    return this.follower.poll() ?? this.follower.next();
  }

  /** @internal */
  protected located(problem: unknown, turnId: string | null = null): unknown {
    const { chatId, lastSeq } = this;
    return problem instanceof EnvaiError ? problem.locate({ chatId, turnId, lastSeq }) : problem;
  }

  [inspect](): string {
    return `<EventStream chat=${this.chatId} lastSeq=${this.lastSeq}>`;
  }
}

/** The events of one turn, from its message to its terminal event; then `result()`. */
export class TurnStream extends EventStream {
  readonly #turn: TurnFlow;

  /** @internal */
  constructor(core: Core, chatId: string, message: SendChatMessageParams, options: FollowOptions) {
    const turn = new TurnFlow(core, chatId, message, options);
    super(turn.follower);
    this.#turn = turn;
  }

  /** null until the message was accepted. */
  get turnId(): string | null {
    return this.#turn.turn?.turnId ?? null;
  }

  /** The orchestrator's text so far. */
  get text(): string {
    return this.#turn.turn?.text ?? "";
  }

  /** Attach and send the message now, and give the turn's id. Iterating does it too. */
  async start(): Promise<string> {
    try {
      return this.turnId ?? (await this.#turn.start());
    } catch (problem) {
      this.follower.close();
      throw this.located(problem);
    }
  }

  /** How the turn ended. Throws ProtocolError before its terminal event. */
  result(toolOutcomes: readonly ToolOutcome[] = []): TurnResult {
    return this.#turn.result(toolOutcomes);
  }

  /** @internal */
  protected override step(): Event | undefined | Promise<Event | undefined> {
    return this.#turn.poll() ?? this.#turn.next();
  }

  /** @internal */
  protected override located(problem: unknown): unknown {
    return super.located(problem, this.turnId);
  }
}

export interface RunOptions {
  /** How many handlers run at once; 4 by default. */
  maxConcurrency?: number;
  /** What a request does whose signature does not verify: end the iteration (default), or be logged and left out. */
  onViolation?: "throw" | "skip";
  /** Milliseconds for the whole iteration. */
  timeout?: number;
  signal?: AbortSignal;
}

/**
 * The events of a stream, its client tools answered beside them. Iterate; close it to stop early, which closes the stream
 * too. `outcomes` says what became of each call, complete once the iteration has ended.
 */
export class ToolRun implements AsyncIterableIterator<Event> {
  readonly #core: Core;
  readonly #calls: ToolCalls;
  readonly #workers: Workers;
  readonly #skip: boolean;
  // A call that fails wakes the reader, which throws it now and not with the next event.
  readonly #wake = new AbortController();
  readonly #events: AsyncGenerator<Event, undefined>;

  /** @internal */
  constructor(core: Core, calls: ToolCalls, source: AsyncIterable<Event>, options: RunOptions) {
    this.#core = core;
    this.#calls = calls;
    this.#skip = options.onViolation === "skip";
    this.#workers = new Workers(options.maxConcurrency ?? 4, () => this.#wake.abort());
    calls.spawn = (work) => this.#workers.startUnlimited(work);
    const signals = [options.signal];
    if (source instanceof EventStream) {
      const deadline = options.timeout === undefined ? undefined : now() + options.timeout;
      signals.push(source.bound({ deadline, signal: this.#wake.signal }).signal);
    }
    this.#events = this.#run(source, signals.filter((signal) => signal !== undefined));
  }

  /** What became of the calls that have ended so far, in that order. */
  get outcomes(): readonly ToolOutcome[] {
    return [...this.#calls.outcomes];
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Event, undefined>> {
    return this.#events.next();
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    await this.close();
    return { value: undefined, done: true };
  }

  /** Stop the handlers and leave what is undelivered in the ledger. */
  async close(): Promise<void> {
    this.#wake.abort();
    await this.#events.return(undefined);
    await this.#finish(); // the iteration may never have begun
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#run(source: AsyncIterable<Event>, signals: AbortSignal[]): AsyncGenerator<Event, undefined> {
    const wake = (event: { target: unknown }): void => this.#wake.abort((event.target as AbortSignal).reason);
    try {
      for (const signal of signals) {
        signal.addEventListener("abort", wake);
        if (signal.aborted) this.#wake.abort(signal.reason);
      }
      for await (const event of source) {
        for (const work of await this.#admit(event)) this.#workers.start(work);
        yield event;
        this.#workers.throwFailures();
      }
    } catch (problem) {
      await this.#finish();
      // A call that failed is why the reader was woken.
      if (problem instanceof CancelledError) this.#workers.throwFailures();
      throw problem;
    } finally {
      for (const signal of signals) signal.removeEventListener("abort", wake);
      await this.#finish();
    }
    this.#workers.throwFailures();
    return undefined;
  }

  async #finish(): Promise<void> {
    this.#calls.close();
    await this.#workers.finish();
  }

  async #admit(event: Event): Promise<Work[]> {
    try {
      return await this.#calls.admit(event);
    } catch (problem) {
      if (!this.#skip || !(problem instanceof SignatureError)) throw problem;
      this.#core.options.logger?.warn("a client-tool request was refused: its signature does not verify");
      return [];
    }
  }

  [inspect](): string {
    return `<ToolRun ${this.#calls.outcomes.length} calls ended>`;
  }
}

/** Work beside a reader, at most `limit` at a time. `onFailure` is called when some of it fails. */
class Workers {
  readonly #limit: number;
  readonly #onFailure: () => void;
  readonly #waiting: Work[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #failures: unknown[] = [];
  #taken = 0;

  constructor(limit: number, onFailure: () => void) {
    if (!Number.isInteger(limit) || limit < 1) throw new RangeError("maxConcurrency must be an integer from 1 on");
    this.#limit = limit;
    this.#onFailure = onFailure;
  }

  start(work: Work): void {
    if (this.#taken >= this.#limit) {
      this.#waiting.push(work);
      return;
    }
    this.#taken++;
    this.#run(work, () => {
      this.#taken--;
      const next = this.#waiting.shift();
      if (next !== undefined) this.start(next);
    });
  }

  /** Work that takes no place, such as a delivery that waits for its server. */
  startUnlimited(work: Work): void {
    this.#run(work, () => undefined);
  }

  /** Throw what work that has ended could not answer for itself. */
  throwFailures(): void {
    if (this.#failures.length > 0) throw this.#failures.shift();
  }

  /** Wait for all of it. */
  async finish(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #run(work: Work, done: () => void): void {
    const running = work()
      .catch((problem: unknown) => {
        this.#failures.push(problem);
        this.#onFailure();
      })
      .finally(() => {
        this.#running.delete(running);
        done();
      });
    this.#running.add(running);
  }
}
