/** One turn: its text, its end, and what sends a message and follows it to the terminal event. */
import type { Core } from "./core.js";
import { ProtocolError, RequestTimeoutError, TurnFailedError } from "./errors.js";
import { type Event, type TerminalEvent, isTerminal } from "./events.js";
import { type FollowOptions, Follower } from "./follow.js";
import type { SendChatMessageParams } from "./generated/operations.js";
import type { Usage } from "./payloads.js";
import { inspect } from "./secrets.js";
import type { ToolOutcome } from "./tools.js";
import { now, remaining } from "./waits.js";

const ATOMIC_ATTACH = "atomic_attach";

/** How a turn ended. `text` is the orchestrator's; `usage` and `cost` are the server's, `cost` null if unknown. */
export class TurnResult {
  readonly chatId: string;
  readonly turnId: string;
  readonly terminalEvent: TerminalEvent;
  readonly lastSeq: number;
  readonly epoch: string | null;
  /** What became of each client-tool call that was answered here. */
  readonly toolOutcomes: readonly ToolOutcome[];
  readonly #text: string;

  constructor(chatId: string, turn: TurnAccumulator, epoch: string | null, toolOutcomes: readonly ToolOutcome[]) {
    if (turn.terminal === undefined) throw new ProtocolError("the turn has no terminal event yet");
    this.chatId = chatId;
    this.turnId = turn.turnId;
    this.terminalEvent = turn.terminal;
    this.lastSeq = turn.lastSeq;
    this.epoch = epoch;
    this.toolOutcomes = toolOutcomes;
    this.#text = turn.text;
  }

  get text(): string {
    return this.#text;
  }

  get usage(): Usage {
    return this.terminalEvent.data.usage;
  }

  /** USD; null if the provider's cost is unknown. */
  get cost(): number | null {
    return this.terminalEvent.data.cost;
  }

  get completed(): boolean {
    return this.terminalEvent.type === "turn.completed";
  }

  /** This result, or TurnFailedError if the turn was cancelled or failed. */
  orThrow(): this {
    if (!this.completed) throw new TurnFailedError(this);
    return this;
  }

  [inspect](): string {
    return `<TurnResult ${this.turnId} ${this.terminalEvent.type} lastSeq=${this.lastSeq}>`;
  }
}

/** Rebuilds the text of each agent instance of one turn. Reasoning and tools never enter a text. */
export class TurnAccumulator {
  readonly turnId: string;
  terminal: TerminalEvent | undefined;
  lastSeq = 0;
  /** The instance whose text is the turn's. */
  orchestrator: string | undefined;
  readonly #partial = new Map<string, string>();
  readonly #done = new Map<string, string>();

  constructor(turnId: string) {
    this.turnId = turnId;
  }

  /** Take an event; those of other turns are ignored. Throws ProtocolError on anything after the terminal. */
  add(event: Event): void {
    if (event.turn_id !== this.turnId) return;
    if (this.terminal !== undefined) {
      throw new ProtocolError(`${event.wireType} after the turn's terminal event`, { raw: event.raw });
    }
    this.lastSeq = Math.max(this.lastSeq, event.seq);
    if (isTerminal(event)) this.terminal = event;
    else if (event.agent !== null) {
      this.#addText(event, event.agent.instance_id);
      if (event.agent.role === "orchestrator") this.orchestrator ??= event.agent.instance_id;
    }
  }

  #addText(event: Event, instance: string): void {
    if (event.type === "agent.text.delta") {
      this.#partial.set(instance, (this.#partial.get(instance) ?? "") + event.data.delta);
    } else if (event.type === "agent.text.done") {
      this.#done.set(instance, event.data.text);
      this.#partial.delete(instance);
    } else if (event.type === "agent.text.reset") this.#partial.delete(instance);
  }

  /** The text of one instance: what it is writing now, else what it finished last. */
  textOf(instanceId: string): string {
    return this.#partial.get(instanceId) ?? this.#done.get(instanceId) ?? "";
  }

  /** The user-facing text: the orchestrator's. */
  get text(): string {
    return this.orchestrator === undefined ? "" : this.textOf(this.orchestrator);
  }
}

/** @internal Attach, send, follow. `next` gives the turn's events and undefined after its terminal event. */
export class TurnFlow {
  readonly core: Core;
  readonly follower: Follower;
  readonly #message: SendChatMessageParams;
  turn: TurnAccumulator | undefined;
  readonly #firstSeen = new Map<string, number>();

  constructor(core: Core, chatId: string, message: SendChatMessageParams, options: FollowOptions) {
    this.core = core;
    this.#message = message;
    this.follower = new Follower(core, chatId, { ...options, includePings: true });
  }

  /** The turn's next event among the bytes already read. */
  poll(): Event | undefined {
    while (this.turn !== undefined && this.turn.terminal === undefined) {
      const event = this.follower.poll();
      if (event === undefined) return undefined;
      if (event.turn_id !== this.turn.turnId) continue;
      this.turn.add(event);
      return event;
    }
    return undefined;
  }

  async next(): Promise<Event | undefined> {
    if (this.turn === undefined) await this.start();
    while (this.turn?.terminal === undefined) {
      const event = this.poll();
      if (event !== undefined) return event;
      await this.follower.advance();
    }
    this.follower.settle();
    this.follower.close();
    return undefined;
  }

  /** Attach and send the message, once, and give the turn's id. Never retried: an unclear outcome is the caller's. */
  async start(): Promise<string> {
    const { core, follower } = this;
    const { features } = await core.learnCapabilities(follower.limits);
    if (features.includes(ATOMIC_ATTACH) && this.#message.idempotency_key === undefined) await follower.connect();
    else await this.#awaitPing();
    const timeout = remaining(follower.limits);
    const given = { chat_id: follower.chatId, ...this.#message };
    const { signal } = follower.limits;
    const { turn_id: turnId } = await core.call("sendChatMessage", given, { timeout, signal });
    this.turn = new TurnAccumulator(turnId);
    // A repeated idempotency key names a turn that the replay already showed: read it again from its start.
    const first = this.#firstSeen.get(turnId);
    if (first !== undefined) follower.rewind(first - 1);
    return turnId;
  }

  /** Read the replay until the ping that proves the live subscription. What it replays is of earlier turns. */
  async #awaitPing(): Promise<void> {
    const { follower } = this;
    const outer = follower.limits;
    const deadline = Math.min(now() + this.core.options.timeouts.attach, outer.deadline ?? Infinity);
    follower.limits = { ...outer, deadline };
    try {
      for (;;) {
        const event = await follower.next();
        if (event.type === "ping") break;
        const turn = event.turn_id ?? "";
        if (!this.#firstSeen.has(turn)) this.#firstSeen.set(turn, event.seq);
      }
    } catch (problem) {
      if (!(problem instanceof RequestTimeoutError)) throw problem;
      throw new RequestTimeoutError("no ping confirmed the live subscription: nothing was sent", { sent: false });
    } finally {
      follower.limits = outer;
    }
    follower.settle();
  }

  /** The ended turn's result. Throws ProtocolError before that. */
  result(toolOutcomes: readonly ToolOutcome[] = []): TurnResult {
    if (this.turn === undefined) throw new ProtocolError("the turn has not begun");
    return new TurnResult(this.follower.chatId, this.turn, this.follower.cursor.epoch, toolOutcomes);
  }
}
