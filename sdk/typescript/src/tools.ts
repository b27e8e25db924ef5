/** Client tools as an application sees them: what it registers, what a handler is given, what became of a call. */
import type { LedgerRecord } from "./ledger.js";
import { compileSchema } from "./schema.js";
import { inspect } from "./secrets.js";
import { now } from "./waits.js";

const OUTPUT_LIMIT = 128 * 1024;
const NAME = /^[a-z][a-z0-9_]{0,254}$/;

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What zod, valibot, arktype and others have in common: https://standardschema.dev. */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly unknown[] };

/** What a handler may ask for: its call, how long it has, and whether to stop. */
export class ToolContext {
  readonly chatId: string;
  /** Empty for an output kept from an earlier life of the program. */
  readonly turnId: string;
  readonly callId: string;
  readonly tool: string;
  /** The moment of `performance.now()` by which the handler must have returned. */
  readonly deadline: number;
  readonly #stop = new AbortController();

  constructor(chatId: string, turnId: string, callId: string, tool: string, deadline: number) {
    this.chatId = chatId;
    this.turnId = turnId;
    this.callId = callId;
    this.tool = tool;
    this.deadline = deadline;
  }

  /** Milliseconds until the deadline; 0 once it has passed. */
  get timeLeft(): number {
    return Math.max(0, this.deadline - now());
  }

  /** Aborted once the answer is no longer wanted: the server has one, the turn ended, or the client stops. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** @internal */
  static stop(context: ToolContext): void {
    context.#stop.abort();
  }

  [inspect](): string {
    return `<ToolContext ${this.tool} ${this.callId}>`;
  }
}

/** Answers a call that another life of the program began; undefined leaves it as it is. */
export type OnAmbiguous = (record: LedgerRecord) => ToolOutput | undefined | Promise<ToolOutput | undefined>;

/** What answers a call. A handler may return one to report an error of its own. */
export class ToolOutput {
  readonly isError: boolean;
  readonly #output: unknown;

  constructor(output: unknown, options: { isError?: boolean } = {}) {
    this.#output = output;
    this.isError = options.isError ?? false;
  }

  get output(): unknown {
    return this.#output;
  }
}

/**
 * What became of one client-tool call, ids and codes only. `outcome` is one of:
 *
 * - `delivered`: the server acknowledged the output, or its result was seen on the stream.
 * - `tool_already_resolved`, `tool_timed_out` or another code of a 409: the server has another answer.
 * - `turn_ended`: the turn ended before the server had acknowledged the output.
 * - `not_found`: the server does not know the call (any more).
 * - `refused`: it accepted neither the output nor the error output in its place.
 * - `unconfirmed`: still kept in the ledger, delivered the next time this chat is followed.
 * - `tool_claimed`: another runner has the call; nothing ran here.
 * - `not_run`: the call could not be claimed or verified in time; nothing ran here.
 * - `cancelled`: the answer was no longer wanted; the handler did not run, or was told to stop.
 * - `ambiguous`: another life of the program began the call; it is for `onAmbiguous` or `settleToolCall`.
 */
export interface ToolOutcome {
  readonly chatId: string;
  /** Empty for an output kept from an earlier life of the program. */
  readonly turnId: string;
  readonly callId: string;
  readonly tool: string;
  readonly outcome: string;
  /** The code of the error output that was sent in the place of a result, null if none was. */
  readonly error: string | null;
  /** Of the answer that decided, where it was not a success. */
  readonly httpStatus: number | null;
}

/**
 * A tool that this program can run. Handlers should be idempotent or able to compensate: the protocol delivers at most
 * once, the world may still see half.
 */
export interface ClientTool<Args = any> {
  readonly name: string;
  /** A JSON Schema, or a schema of zod or any other library that follows Standard Schema. */
  readonly parameters: JsonSchema | StandardSchema<Args>;
  /** Milliseconds of the tool's `timeout_seconds`, at most 600,000; the handler gets nine tenths. 120,000 by default. */
  readonly timeout?: number;
  readonly run: (args: Args, context: ToolContext) => unknown;
}

/** A tool, its handler's arguments typed by its schema. */
export function defineTool<Args>(
  tool: Omit<ClientTool<Args>, "parameters"> & { readonly parameters: StandardSchema<Args> },
): ClientTool<Args>;
export function defineTool<Args = Record<string, unknown>>(
  tool: Omit<ClientTool<Args>, "parameters"> & { readonly parameters: JsonSchema },
): ClientTool<Args>;
export function defineTool(tool: object): unknown {
  return tool;
}

/** @internal What the runner has of a tool. `read` gives the arguments for the handler, or undefined if they are wrong. */
export interface Tool {
  readonly name: string;
  readonly timeout: number;
  readonly read: (args: unknown) => Promise<{ value: unknown } | undefined>;
  readonly run: (args: never, context: ToolContext) => unknown;
}

/** @internal The tools by name. Throws for a name the server would not accept, a name twice, a bad schema or timeout. */
export function registryOf(tools: Iterable<ClientTool>): ReadonlyMap<string, Tool> {
  const registry = new Map<string, Tool>();
  for (const { name, parameters, timeout = 120_000, run } of tools) {
    if (typeof name !== "string" || !NAME.test(name)) {
      throw new TypeError(
        `tool name ${JSON.stringify(name)}: a lower-case letter, then lower-case letters, digits and '_', at most 255`,
      );
    }
    if (registry.has(name)) throw new TypeError(`tool '${name}' is there twice`);
    if (!(timeout > 0 && timeout <= 600_000)) throw new RangeError(`tool '${name}': timeout must be within 600,000 ms`);
    if (typeof run !== "function") throw new TypeError(`tool '${name}': run must be a function`);
    registry.set(name, { name, timeout, run, read: readerOf(parameters) });
  }
  return registry;
}

function readerOf(parameters: JsonSchema | StandardSchema): Tool["read"] {
  if ("~standard" in parameters) {
    const { validate } = (parameters as StandardSchema)["~standard"];
    return async (args) => {
      const result = await validate(args);
      return result.issues === undefined ? { value: result.value } : undefined;
    };
  }
  const check = compileSchema(parameters);
  return async (args) => (check(args) ? { value: args } : undefined);
}

/** @internal The output string of a call as it is sent. `error` is the code of an error output of ours. */
export interface Answer {
  readonly output: string;
  readonly isError: boolean;
  readonly error: string | null;
}

/**
 * @internal
 * What is sent for a handler's value: a string as it is, anything else as JSON, once. What no server accepts becomes an
 * error output: nothing at all, what has no JSON form, more than 131,072 bytes.
 */
export function serialise(value: unknown): Answer {
  const given = value instanceof ToolOutput ? value : new ToolOutput(value);
  let text: string;
  try {
    // `undefined` is what a handler returns that has nothing to say: null, as in the other languages.
    const json = typeof given.output === "string" ? given.output : JSON.stringify(given.output ?? null);
    if (typeof json !== "string" || /\p{Surrogate}/u.test(json)) return refusal("output_not_serialisable");
    text = json;
  } catch {
    return refusal("output_not_serialisable");
  }
  if (new TextEncoder().encode(text).length > OUTPUT_LIMIT) return refusal("output_too_large");
  return text === "" ? refusal("output_empty") : { output: text, isError: given.isError, error: null };
}

/** @internal An error output the model can read; it never quotes arguments. */
export function refusal(code: string): Answer {
  return { output: JSON.stringify({ error: code }), isError: true, error: code };
}
