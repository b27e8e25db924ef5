/**
 * One ATP event out of one frame: version first, then the envelope, then the payload.
 *
 * `Event` is a union discriminated by `type`. What this SDK does not know is an `UnknownEvent`, whose `type` is
 * "unknown" and whose `wireType` is what the server called it.
 */
import { InvalidEventError, InvalidFrameError, UnsupportedVersionError } from "./errors.js";
import { type AgentRef, ONLY_IN_3, READERS, type Reader, ULID, agentRef } from "./payloads.js";
import { MOMENT, isObject } from "./resources.js";
import { inspect } from "./secrets.js";

/** What all events share. */
export interface EventBase {
  readonly v: number;
  readonly id: string;
  readonly seq: number;
  readonly ts: string;
  readonly chat_id: string;
  /** The JSON as received, unknown fields included. */
  readonly raw: Readonly<Record<string, unknown>>;
  /** The type as the server spells it. */
  readonly wireType: string;
  /** `ts`, to the millisecond. */
  readonly time: Date;
  /** Envelope fields that this SDK does not know. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** The log this event belongs to, where the server says so. */
  readonly epoch: string | null;
}

type Payloads = { [T in keyof typeof READERS]: (typeof READERS)[T] extends Reader<infer D> ? D : never };
type OfTurn =
  | "chat.title.updated"
  | "turn.started"
  | "turn.completed"
  | "turn.cancelled"
  | "turn.failed"
  | "turn.steered"
  | "approval.response";

/** Keeps the connection alive, and says that what follows is live. Has `seq` 0. */
export interface PingEvent extends EventBase {
  readonly type: "ping";
  readonly turn_id: null;
  readonly agent: null;
  readonly data: Payloads["ping"];
}

/** Of a turn, and of nobody in it. */
export interface TurnEvent<T extends OfTurn> extends EventBase {
  readonly type: T;
  readonly turn_id: string;
  readonly agent: null;
  readonly data: Payloads[T];
}

/** Of an agent at work in a turn. */
export interface AgentEvent<T extends Exclude<keyof Payloads, OfTurn | "ping">> extends EventBase {
  readonly type: T;
  readonly turn_id: string;
  readonly agent: AgentRef;
  readonly data: Payloads[T];
}

/** A type this SDK does not know: valid, delivered, its `data` the JSON object as received. */
export interface UnknownEvent extends EventBase {
  readonly type: "unknown";
  readonly turn_id: string | null;
  readonly agent: AgentRef | null;
  readonly data: Readonly<Record<string, unknown>>;
}

type EventsOfTurns = { [T in OfTurn]: TurnEvent<T> }[OfTurn];
type EventsOfAgents = {
  [T in Exclude<keyof Payloads, OfTurn | "ping">]: AgentEvent<T>;
}[Exclude<keyof Payloads, OfTurn | "ping">];

export type TerminalEvent = TurnEvent<"turn.completed"> | TurnEvent<"turn.cancelled"> | TurnEvent<"turn.failed">;
export type Event = PingEvent | EventsOfTurns | EventsOfAgents | UnknownEvent;
export type EventType = Event["type"];

/** Whether this is the one event that ends its turn. */
export function isTerminal(event: Event): event is TerminalEvent {
  return event.type === "turn.completed" || event.type === "turn.cancelled" || event.type === "turn.failed";
}

const ENVELOPE = ["v", "id", "seq", "ts", "chat_id", "turn_id", "agent", "type", "data"] as const;
const OF_TURN: ReadonlySet<string> = new Set<OfTurn>([
  "chat.title.updated",
  "turn.started",
  "turn.completed",
  "turn.cancelled",
  "turn.failed",
  "turn.steered",
  "approval.response",
]);
const TYPE = /^[a-z][a-z0-9]*(?:\.[a-z][a-z0-9]*)*$/;
const EVENT_ID = new RegExp(`^evt_${ULID}$`);
const CHAT_ID = new RegExp(`^cht_${ULID}$`);
const TURN_ID = new RegExp(`^cmpl_${ULID}$`);
const SUPPORTED: readonly number[] = [2, 3];
const readers = new Map<string, Reader<unknown>>(Object.entries(READERS));

type Raw = Record<string, unknown>;

/** Prints its ids and its type: payloads hold prompts, arguments and outputs. */
class AtpEvent {
  readonly v: number;
  readonly id: string;
  readonly seq: number;
  readonly ts: string;
  readonly chat_id: string;
  readonly turn_id: string | null;
  readonly agent: AgentRef | null;
  readonly type: string;
  readonly data: unknown;
  readonly #raw: Raw;

  constructor(raw: Raw, known: boolean) {
    this.v = raw["v"] as number;
    this.id = raw["id"] as string;
    this.seq = raw["seq"] as number;
    this.ts = raw["ts"] as string;
    this.chat_id = raw["chat_id"] as string;
    this.turn_id = raw["turn_id"] as string | null;
    this.agent = raw["agent"] as AgentRef | null;
    this.type = known ? (raw["type"] as string) : "unknown";
    this.data = raw["data"];
    this.#raw = raw;
  }

  get raw(): Raw {
    return this.#raw;
  }

  get wireType(): string {
    return this.#raw["type"] as string;
  }

  get time(): Date {
    return new Date(Math.floor(moment(this.ts) / 1000));
  }

  get extra(): Raw {
    const known: readonly string[] = ENVELOPE;
    return Object.fromEntries(Object.entries(this.#raw).filter(([name]) => !known.includes(name)));
  }

  get epoch(): string | null {
    const value = this.#raw["epoch"];
    return typeof value === "string" ? value : null;
  }

  /** The original. */
  toJSON(): Raw {
    return this.#raw;
  }

  [inspect](): string {
    return `<Event ${this.wireType} id=${this.id} seq=${this.seq} turn=${this.turn_id}>`;
  }
}

/**
 * The event in the JSON of one frame or journal line, as a stream would deliver it.
 *
 * Every violation throws with the original kept in `raw`: InvalidFrameError, UnsupportedVersionError (for an envelope
 * version that is not in `versions`), InvalidEventError. An unknown type is an `UnknownEvent`.
 */
export function parseEvent(frame: Uint8Array | string, versions: readonly number[] = SUPPORTED): Event {
  const raw = parseFrame(frame);
  const version = raw["v"];
  if (!Number.isInteger(version)) throw new InvalidEventError("the envelope has no integer version", { raw });
  if (!versions.includes(version as number)) {
    throw new UnsupportedVersionError(`envelope version ${String(version)} is not supported here`, { raw });
  }
  checkEnvelope(raw);
  const name = raw["type"] as string;
  const agent = raw["agent"];
  const wrong = agent === null ? undefined : agentRef(agent as Raw);
  if (wrong !== undefined) throw new InvalidEventError(`${name}: its agent's ${wrong} is invalid`, { raw });
  const reader = readers.get(name);
  if (reader !== undefined) checkKnown(raw, name, reader);
  return new AtpEvent(raw, reader !== undefined) as unknown as Event;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function parseFrame(frame: Uint8Array | string): Raw {
  let raw: unknown;
  try {
    const text = typeof frame === "string" ? frame : utf8.decode(frame);
    raw = JSON.parse(text);
    // Half of a surrogate pair is no text; it can only have come as an escape.
    if (/\\u[dD][89a-fA-F]/.test(text) && hasLoneSurrogate(raw)) throw new SyntaxError("no text");
  } catch {
    throw new InvalidFrameError("a frame is not valid UTF-8 JSON", { raw: frame });
  }
  if (!isObject(raw)) throw new InvalidFrameError("a frame is not a JSON object", { raw: frame });
  return raw;
}

function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return /\p{Surrogate}/u.test(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, item]) => hasLoneSurrogate(name) || hasLoneSurrogate(item));
}

const like =
  (pattern: RegExp) =>
  (value: unknown): boolean =>
    typeof value === "string" && pattern.test(value);

const isTurnId = like(TURN_ID);
const FIELDS: readonly (readonly [string, (value: unknown, raw: Raw) => boolean])[] = [
  ["type", like(TYPE)],
  ["id", like(EVENT_ID)],
  ["chat_id", like(CHAT_ID)],
  ["turn_id", (value) => value === null || isTurnId(value)],
  ["ts", like(MOMENT)],
  ["seq", (value, { type }) => (type === "ping" ? value === 0 : Number.isInteger(value) && (value as number) >= 1)],
  ["agent", (value) => value === null || isObject(value)],
  ["data", isObject],
];

/** The fields every event has, in the shapes every event gives them. */
function checkEnvelope(raw: Raw): void {
  for (const name of ENVELOPE) {
    if (!(name in raw)) throw new InvalidEventError(`the envelope lacks ${name}`, { raw });
  }
  const invalid = FIELDS.find(([name, holds]) => !holds(raw[name], raw))?.[0];
  if (invalid !== undefined) throw new InvalidEventError(`the envelope's ${invalid} is invalid`, { raw });
}

/** What a known type says about its payload and its envelope: whose it is and which turn it belongs to. */
function checkKnown(raw: Raw, name: string, reader: Reader<unknown>): void {
  const wrong = reader(raw["data"] as Raw);
  if (wrong !== undefined) throw new InvalidEventError(`${name}: ${wrong} is invalid`, { raw });
  const ping = name === "ping";
  if ((raw["turn_id"] === null) !== ping) {
    throw new InvalidEventError(`${name} must ${ping ? "name no" : "name its"} turn`, { raw });
  }
  if ((raw["agent"] === null) !== (ping || OF_TURN.has(name))) {
    throw new InvalidEventError(`${name}: the agent is ${raw["agent"] === null ? "missing" : "out of place"}`, { raw });
  }
  const newer = raw["v"] === 2 ? ONLY_IN_3[name] : undefined;
  if (newer?.some((field) => field in (raw["data"] as Raw))) {
    throw new InvalidEventError(`${name}: a field of version 3 in a version 2 envelope`, { raw });
  }
}

/** @internal A valid RFC 3339 time in microseconds; finer digits are cut. A leap second, or no day of its month, is before all. */
export function moment(ts: string): number {
  const [, head, fraction = "", zone] = /^(.{19})(?:\.(\d+))?(.*)$/.exec(ts.toUpperCase()) ?? [];
  const ms = Date.parse(`${head}${zone}`);
  const day = Number(ts.slice(8, 10));
  // Date.parse may roll a 30th of February over, where it should refuse it.
  const real = new Date(Date.UTC(Number(ts.slice(0, 4)), Number(ts.slice(5, 7)) - 1, day)).getUTCDate() === day;
  return Number.isNaN(ms) || !real ? -Infinity : ms * 1000 + Number(fraction.slice(0, 6).padEnd(6, "0"));
}
