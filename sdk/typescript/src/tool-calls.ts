/**
 * A client-tool call from its signed request to its delivered answer.
 *
 * Verify, wait for the replay to pass, claim, record, run, keep the outcome, deliver it until that is settled. Two things
 * never happen: a handler runs twice for one call, and an outcome is known to nobody but a log.
 */
import type { Core } from "./core.js";
import { sha256 } from "./ed25519.js";
import {
  CancelledError,
  CompatibilityError,
  ConflictError,
  EnvaiError,
  NotFoundError,
  SignatureError,
  ToolStateError,
  TransportError,
} from "./errors.js";
import { type AgentEvent, type Event, isTerminal } from "./events.js";
import { type KeyRing, signedToolBytes } from "./keys.js";
import { type Ledger, type LedgerRecord, uniqueId } from "./ledger.js";
import { type Answer, type OnAmbiguous, type Tool, ToolContext, type ToolOutcome, refusal, serialise } from "./tools.js";
import { backoff, deadlineOf, now, sleep, within } from "./waits.js";

const CLAIMS = "tool_claims";
/** The part of a tool's timeout that is ours: the server's clock started before we heard of the call. */
const MARGIN = 0.9;
/** Allowed for a tool that is not registered here: the server's default. */
const UNKNOWN_TIMEOUT = 120_000;
const SILENCE = 1_000;
const POLL = 20;
/** For one attempt to claim or to deliver: a server that hangs must not be waited for longer. */
const POST_TIMEOUT = 10_000;
const BASE_DELAY = 250;
const MAX_DELAY = 5_000;
/** Of a server's `Retry-After` that is waited for. */
const MAX_ASKED = 30_000;
const REMEMBERED = 10_000;
const OWNER = uniqueId(); // this process's life: a claim by any other is not ours to finish
const TRANSIENT = new Set([408, 425, 429]);
/** The server will never take this output: an error output goes in its place. */
const NOT_ACCEPTED = new Set([400, 405, 411, 413, 414, 415, 422, 431]);
/** Notes of the ledger: outputs that are not sent again by themselves. */
const OVER = new Set(["not_found", "refused", "turn_ended"]);

/** A request whose signature verified, or an output that an earlier life left to deliver. */
interface Call {
  readonly chatId: string;
  readonly turnId: string;
  readonly callId: string;
  readonly tool: string;
  readonly args: object;
  readonly fingerprint: string;
  readonly context: ToolContext;
  /** When the request was read. */
  readonly seen: number;
  /** Aborted once the server has a result or the turn has ended: nothing is delivered any more. */
  readonly over: AbortController;
}

/** One post. Without an `outcome` nothing is settled and `answer` is to be sent next. */
interface Attempt {
  readonly answer: Answer;
  readonly outcome?: string | undefined;
  readonly status?: number | null;
  readonly retryAfter?: number | null;
}

/** Work that is done beside the reading. */
export type Work = () => Promise<void>;

/**
 * What stands between a stream and the handlers: which calls are active, which are over, what became of them.
 *
 * `admit` gives the work an event asks for; the runner does it beside its reading. `spawn`, set by the runner, starts
 * work that takes no place of a handler.
 */
export class ToolCalls {
  readonly outcomes: ToolOutcome[] = [];
  spawn: ((work: Work) => void) | undefined;
  readonly #core: Core;
  readonly #registry: ReadonlyMap<string, Tool>;
  readonly #ledger: Ledger;
  readonly #keys: KeyRing;
  readonly #onAmbiguous: OnAmbiguous | undefined;
  readonly #isLive: () => boolean;
  readonly #active = new Map<string, Call>();
  readonly #closing = new AbortController();
  readonly #answered = new Map<string, string>();
  readonly #turns = new Map<string, string>();
  readonly #ended = new Set<string>();
  readonly #chats = new Set<string>();
  #holder: Promise<string> | undefined;
  #heard = 0;

  constructor(
    core: Core,
    registry: ReadonlyMap<string, Tool>,
    ledger: Ledger,
    keys: KeyRing,
    onAmbiguous: OnAmbiguous | undefined,
    isLive: () => boolean,
  ) {
    this.#core = core;
    this.#registry = registry;
    this.#ledger = ledger;
    this.#keys = keys;
    this.#onAmbiguous = onAmbiguous;
    this.#isLive = isLive;
  }

  /**
   * What there is to do because of `event`. Throws SignatureError, or ToolStateError for an id with other contents:
   * nothing was executed.
   */
  async admit(event: Event): Promise<Work[]> {
    this.#heard = now();
    const work: Work[] = [];
    if (!this.#chats.has(event.chat_id)) {
      this.#chats.add(event.chat_id);
      work.push(...(await this.#kept(event.chat_id)));
    }
    if (event.type === "agent.tool.result") await this.#resolve(event);
    else if (isTerminal(event)) this.#end(event.turn_id);
    else if (event.type === "agent.tool.request") {
      this.#turns.set(event.data.call_id, event.turn_id);
      if (this.#isOpen(event.data.call_id)) work.push(await this.#request(event));
    }
    return work;
  }

  /** Tell the handlers to stop and the deliveries to leave what they hold in the ledger. */
  close(): void {
    this.#closing.abort();
    for (const call of this.#active.values()) ToolContext.stop(call.context);
  }

  #end(turnId: string): void {
    this.#ended.add(turnId);
    for (const call of this.#active.values()) {
      if (this.#turns.get(call.callId) === turnId) finish(call);
    }
  }

  #isOpen(callId: string): boolean {
    return !this.#active.has(callId) && !this.#answered.has(callId);
  }

  /** The work that serves a request, verified here, or there if the keys cannot be had at the moment. */
  async #request(event: AgentEvent<"agent.tool.request">): Promise<Work> {
    const { call_id: callId, tool_name: tool, args } = event.data;
    const { chat_id: chatId, turn_id: turnId } = event;
    const message = signedToolBytes(callId, tool, args);
    const seen = now();
    const deadline = seen + MARGIN * (this.#registry.get(tool)?.timeout ?? UNKNOWN_TIMEOUT);
    const call: Call = {
      chatId,
      turnId,
      callId,
      tool,
      args,
      fingerprint: await sha256(new TextEncoder().encode(`${turnId}\n${new TextDecoder().decode(message)}`)),
      context: new ToolContext(chatId, turnId, callId, tool, deadline),
      seen,
      over: new AbortController(),
    };
    let verified = true;
    try {
      await this.#verify(event, call, message);
    } catch (problem) {
      if (!mayPass(problem)) throw problem;
      verified = false;
    }
    this.#active.set(callId, call);
    return () => this.#serve(call, verified ? undefined : () => this.#verifyLater(event, call, message));
  }

  async #verify(event: AgentEvent<"agent.tool.request">, call: Call, message: Uint8Array): Promise<void> {
    const { kid, sig } = event.data.signature;
    try {
      await this.#keys.verify(kid, sig, message);
    } catch (problem) {
      if (!(problem instanceof SignatureError)) throw problem;
      throw new SignatureError(`client tool refused: ${problem.serverMessage}`, { raw: event.raw });
    }
    const known = await this.#ledger.get(call.chatId, call.callId);
    if (known !== undefined && known.fingerprint !== "" && known.fingerprint !== call.fingerprint) {
      throw new ToolStateError("a call id came back with other contents: nothing was executed", { raw: event.raw });
    }
  }

  /** Whether the signature verified before the call was over or out of time. */
  async #verifyLater(event: AgentEvent<"agent.tool.request">, call: Call, message: Uint8Array): Promise<boolean> {
    for (let attempt = 1; await this.#pause(call, attempt, call.context.deadline); attempt++) {
      try {
        await this.#verify(event, call, message);
        return true;
      } catch (problem) {
        if (!mayPass(problem)) throw problem;
      }
    }
    return false;
  }

  /** The server has a result: remember it before anything else, and stop whoever still works on it. */
  async #resolve(event: AgentEvent<"agent.tool.result">): Promise<void> {
    const callId = event.data.call_id;
    this.#answered.set(callId, event.data.output);
    if (this.#answered.size > REMEMBERED) this.#answered.delete(this.#answered.keys().next().value!);
    const active = this.#active.get(callId);
    if (active !== undefined) finish(active);
    const known = await this.#ledger.get(event.chat_id, callId);
    if (known !== undefined && known.state !== "resolved") await this.#ledger.resolve(event.chat_id, callId, "observed");
  }

  /** Deliveries of what an earlier life finished and could not hand over. */
  async #kept(chatId: string): Promise<Work[]> {
    const records = await this.#ledger.unsettled(chatId);
    return records
      .filter(({ state, note, callId }) => state === "finished" && !OVER.has(note) && this.#isOpen(callId))
      .map((record) => {
        const call = this.#adopt(record);
        return () => this.#serve(call);
      });
  }

  #adopt({ chatId, callId, tool, fingerprint }: LedgerRecord): Call {
    const seen = now();
    const context = new ToolContext(chatId, "", callId, tool, seen);
    const call: Call = {
      chatId,
      turnId: "",
      callId,
      tool,
      args: {},
      fingerprint,
      context,
      seen,
      over: new AbortController(),
    };
    this.#active.set(callId, call);
    return call;
  }

  /**
   * Let a replay go by: the result or the end of the turn may be a few events behind the request. Live is after the
   * connection's first ping; a stream that has been silent for a while counts as live too.
   */
  async #awaitLive(call: Call): Promise<void> {
    while (!this.#isLive() && !call.context.signal.aborted && now() - this.#heard < SILENCE) await sleep(POLL);
  }

  /** Take one call to the point where there is something to deliver, or to its end. */
  async #serve(call: Call, verifying?: () => Promise<boolean>): Promise<void> {
    const { chatId, callId, tool, context } = call;
    this.#core.notify({ kind: "toolStarted", chatId, callId, tool });
    let passedOn = false;
    try {
      if (verifying !== undefined && !(await verifying())) {
        this.#conclude(call, context.signal.aborted ? "cancelled" : "not_run");
        return;
      }
      await this.#awaitLive(call);
      const result = context.signal.aborted ? "cancelled" : await this.#work(call);
      if (typeof result === "string") this.#conclude(call, result);
      else if (this.spawn === undefined) await this.#deliver(call, result);
      else {
        passedOn = true;
        this.spawn(() => this.#deliver(call, result));
      }
    } finally {
      if (!passedOn) this.#active.delete(callId);
    }
  }

  /** The answer to deliver, or the outcome of a call that has none. */
  async #work(call: Call): Promise<Answer | string> {
    const { chatId, callId, tool, fingerprint } = call;
    let known = await this.#ledger.get(chatId, callId);
    if (known === undefined) {
      const refused = await this.#claim(call);
      if (refused !== undefined) return refused;
      known = await this.#ledger.claim({ chatId, callId, tool, fingerprint, owner: OWNER });
    }
    if (known !== undefined) return this.#resume(known);
    const answer = await this.#execute(call);
    if (answer === undefined) return "cancelled";
    await this.#ledger.finish(chatId, callId, answer.output, answer.isError);
    return answer;
  }

  /** undefined once this runner may run the call; else why it may not. Asked of servers that announce claims. */
  async #claim(call: Call): Promise<string | undefined> {
    for (let attempt = 1; ; attempt++) {
      const verdict = await this.#askFor(call);
      if (verdict !== "again") return verdict;
      if (!(await this.#pause(call, attempt, call.context.deadline))) {
        return call.context.signal.aborted ? "cancelled" : "not_run";
      }
    }
  }

  async #askFor(call: Call): Promise<string | undefined> {
    const { chatId: chat_id, callId: call_id } = call;
    try {
      if (await this.#claimsAnnounced()) {
        // A ledger that outlives the process has a name of its own: what it claimed, its next life may run.
        this.#holder ??= Promise.resolve(this.#ledger.holder?.() ?? OWNER);
        const holder = await this.#holder;
        await this.#core.call("claimChatTool", { chat_id, call_id, holder }, { timeout: POST_TIMEOUT });
      }
    } catch (problem) {
      if (problem instanceof ConflictError) return problem.code ?? "conflict";
      if (problem instanceof NotFoundError) return "not_found";
      if (!(problem instanceof EnvaiError)) throw problem;
      return mayPass(problem) ? "again" : "not_run";
    }
    return undefined;
  }

  async #claimsAnnounced(): Promise<boolean> {
    try {
      const { features } = await this.#core.learnCapabilities({ deadline: deadlineOf(POST_TIMEOUT) });
      return features.includes(CLAIMS);
    } catch (problem) {
      if (problem instanceof NotFoundError || problem instanceof CompatibilityError) return false; // announces nothing
      throw problem;
    }
  }

  /** The answer of the handler, or the reason there is none; undefined once the call was cancelled. */
  async #execute(call: Call): Promise<Answer | undefined> {
    const { context } = call;
    const tool = this.#registry.get(call.tool);
    if (tool === undefined) return refusal("tool_not_registered");
    const args = await tool.read(call.args).catch(() => undefined);
    if (args === undefined) return refusal("invalid_arguments");
    const left = context.deadline - now();
    if (left <= 0) return refusal("tool_capacity_exceeded");
    try {
      const work = Promise.resolve().then(() => tool.run(args.value as never, context));
      const value = await within(work, left, context.signal, () => {
        throw new OutOfTime();
      });
      return context.signal.aborted ? undefined : serialise(value);
    } catch (problem) {
      if (context.signal.aborted) return undefined;
      ToolContext.stop(context);
      if (problem instanceof OutOfTime) return refusal("tool_timeout");
      // The application's code; its message may hold arguments.
      this.#core.options.logger?.info(`tool handler failed: ${(problem as Error | undefined)?.name}`);
      return refusal("tool_failed");
    }
  }

  /** A call the ledger already knows: never run its handler. */
  async #resume(known: LedgerRecord): Promise<Answer | string> {
    const { chatId, callId, state, note, output, isError } = known;
    if (state === "resolved") return note === "observed" ? "delivered" : note;
    if (state === "finished" && output !== null) return { output, isError, error: null };
    const settlement = await this.#onAmbiguous?.(known);
    if (settlement === undefined) return "ambiguous";
    const answer = serialise(settlement);
    await this.#ledger.finish(chatId, callId, answer.output, answer.isError);
    return answer;
  }

  /** Post an answer until that is settled: acknowledged, refused, seen on the stream, or the turn over. */
  async #deliver(call: Call, first: Answer): Promise<void> {
    let answer = first;
    try {
      for (let attempt = 1; ; attempt++) {
        let tried = await this.#attempt(call, answer);
        answer = tried.answer;
        if (tried.outcome === undefined && !(await this.#pause(call, attempt, undefined, tried.retryAfter ?? 0))) {
          tried = { ...tried, outcome: this.#standing(call, answer) ?? "unconfirmed" };
        }
        if (tried.outcome === undefined) continue;
        await this.#settled(call, tried);
        return;
      }
    } finally {
      this.#active.delete(call.callId);
    }
  }

  async #attempt(call: Call, answer: Answer, timeout = POST_TIMEOUT): Promise<Attempt> {
    const standing = this.#standing(call, answer);
    if (standing !== undefined) return { answer, outcome: standing };
    const { output, isError: is_error } = answer;
    const given = { chat_id: call.chatId, call_id: call.callId, output, is_error };
    try {
      await this.#core.call("resolveChatTool", given, { timeout });
    } catch (problem) {
      if (!(problem instanceof EnvaiError)) throw problem;
      const status = problem.httpStatus;
      // Somebody's result stands, or it came too late: either way there is nothing left to deliver.
      if (problem instanceof ConflictError) return { answer, outcome: problem.code ?? "conflict", status };
      // After the terminal a delivered call is unknown too: this says nothing about an earlier attempt.
      if (problem instanceof NotFoundError) return { answer, outcome: "not_found", status };
      return refused(problem, answer);
    }
    return { answer, outcome: "delivered" };
  }

  async #settled(call: Call, tried: Attempt): Promise<void> {
    const outcome = tried.outcome ?? "unconfirmed";
    const kept = outcome === "not_found" || outcome === "refused" || outcome === "unconfirmed";
    await this.#ledger[kept ? "note" : "resolve"](call.chatId, call.callId, outcome);
    this.#conclude(call, outcome, tried.answer.error, tried.status ?? null);
  }

  /** What is known of a call that needs no delivery any more. */
  #standing(call: Call, answer: Answer): string | undefined {
    const seen = this.#answered.get(call.callId);
    if (seen !== undefined) return seen === answer.output ? "delivered" : "tool_already_resolved";
    return this.#ended.has(this.#turns.get(call.callId) ?? "") ? "turn_ended" : undefined;
  }

  /** Wait before the next attempt; false once the call is over, the runner closes, or `until` has passed. */
  async #pause(call: Call, attempt: number, until: number | undefined, atLeast = 0): Promise<boolean> {
    const over = (): boolean => call.over.signal.aborted || this.#closing.signal.aborted;
    const ms = Math.max(backoff(BASE_DELAY, MAX_DELAY, Math.min(attempt, 10)), Math.min(atLeast, MAX_ASKED));
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    call.over.signal.addEventListener("abort", abort);
    this.#closing.signal.addEventListener("abort", abort);
    try {
      const left = until === undefined ? ms : Math.min(ms, until - now());
      if (!over() && left > 0) await sleep(left, { signal: stop.signal });
      return !over() && (until === undefined || now() < until);
    } catch (problem) {
      if (problem instanceof CancelledError) return false;
      throw problem;
    } finally {
      call.over.signal.removeEventListener("abort", abort);
      this.#closing.signal.removeEventListener("abort", abort);
    }
  }

  #conclude(call: Call, outcome: string, error: string | null = null, httpStatus: number | null = null): void {
    const { chatId, turnId, callId, tool, seen } = call;
    this.outcomes.push({ chatId, turnId, callId, tool, outcome, error, httpStatus });
    this.#core.notify({ kind: "toolEnded", chatId, callId, tool, outcome, ms: now() - seen });
  }

  /** Record the application's word on a call and send it once. */
  async settle(record: LedgerRecord, answer: Answer, timeout: number | undefined): Promise<ToolOutcome> {
    await this.#ledger.finish(record.chatId, record.callId, answer.output, answer.isError);
    return this.handOver(record, answer, timeout);
  }

  /** One attempt to deliver what the ledger keeps; two if an error output must go in its place. */
  async handOver(record: LedgerRecord, answer: Answer, timeout = POST_TIMEOUT): Promise<ToolOutcome> {
    const call = this.#adopt(record);
    try {
      let tried = await this.#attempt(call, answer, timeout);
      if (tried.outcome === undefined && tried.answer !== answer) {
        tried = await this.#attempt(call, tried.answer, timeout);
      }
      await this.#settled(call, tried);
    } finally {
      this.#active.delete(record.callId);
    }
    return this.outcomes.at(-1)!;
  }

  /** One attempt for everything that is finished and undelivered, of a chat or of all. */
  async handOverAll(chatId: string | undefined, timeout: number | undefined): Promise<ToolOutcome[]> {
    for (const record of await this.#ledger.unsettled(chatId)) {
      const { state, output, isError } = record;
      if (state === "finished" && output !== null) await this.handOver(record, { output, isError, error: null }, timeout);
    }
    return this.outcomes;
  }
}

class OutOfTime extends Error {}

/** What an error answer says about an output: try again, send an error output in its place, or give up. */
function refused(problem: EnvaiError, answer: Answer): Attempt {
  const status = problem.httpStatus;
  if (mayPass(problem)) return { answer, status, retryAfter: problem.retryAfter };
  // A key, a version, a proxy: nothing the output could help.
  if (status === null || !NOT_ACCEPTED.has(status)) return { answer, outcome: "unconfirmed", status };
  const outcome = answer.error === "output_refused" ? "refused" : undefined;
  return { answer: refusal("output_refused"), outcome, status };
}

/** The call is over: stop its handler and its delivery. */
function finish(call: Call): void {
  call.over.abort();
  ToolContext.stop(call.context);
}

/** Whether the same request may succeed a little later. */
function mayPass(problem: unknown): boolean {
  if (!(problem instanceof EnvaiError)) return false;
  const status = problem.httpStatus;
  if (status === null) return problem instanceof TransportError;
  return TRANSIENT.has(status) || status >= 500;
}
