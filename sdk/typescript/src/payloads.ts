/**
 * The payload of every known event type. Closed: a field the schema does not name is a violation, not an extension.
 * Usage, agents and attachment manifests are open: what they carry beyond these fields is kept.
 */
import { MOMENT, isObject } from "./resources.js";

export interface Ping {}

export interface TitleUpdated {
  readonly title: string;
}

export interface Billing {
  readonly status: "inactive";
}

/** A decimal string: money is never rounded through a float. */
export interface Amount {
  readonly currency: string;
  readonly amount: string;
}

/** What is known of the provider's cost. `totals` is null until every part is priced; unknown is never zero. */
export interface CostState {
  readonly status: "pending" | "complete";
  readonly basis: "reported" | "calculated" | "mixed" | "none";
  readonly scope_status: "open" | "closed";
  readonly revision: number;
  readonly as_of: string;
  readonly invocation_count: number;
  readonly pending_invocation_count: number;
  readonly totals: readonly Amount[] | null;
  readonly priced_subtotals: readonly Amount[];
}

/** Tokens, milliseconds, USD. `cost_usd` is null when the provider's cost is unknown. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_usd: number | null;
  readonly duration_ms: number;
  readonly sprite_ms?: number;
  readonly sprite_ram_gb_ms?: number;
  readonly tool_calls?: number;
  readonly billing?: Billing;
  readonly usage_cost?: CostState;
}

export interface Manifest {
  readonly attachment_id: string;
  readonly original_name: string;
  readonly revision: number;
  readonly sha256: string;
  readonly bytes: number;
  readonly conversion: Readonly<Record<string, unknown>>;
}

export interface TurnStarted {
  readonly turn_id: string;
  readonly input: string;
  readonly attachments?: readonly Manifest[];
}

/** What the three endings share. `chat_usage` and `chat_cost` are informative totals, never a budget. */
export interface Terminal {
  readonly turn_id: string;
  readonly usage: Usage;
  readonly cost: number | null;
  readonly chat_usage: Usage;
  readonly chat_cost: number | null;
  readonly billing?: Billing;
  readonly usage_cost?: CostState;
}

export interface TurnCompleted extends Terminal {
  readonly finish_reason: string;
}

export interface TurnCancelled extends Terminal {
  readonly reason: string;
}

export interface TurnFailed extends Terminal {
  readonly code: string;
  readonly message: string;
}

export interface TurnSteered {
  readonly turn_id: string;
  readonly text: string;
  readonly target_agent_id?: string;
}

export interface AgentStarted {
  readonly name: string;
  readonly role: string;
  readonly model: string;
  readonly parent_id: string | null;
}

export interface Plan {
  readonly plan: string;
}

export interface TextDelta {
  readonly delta: string;
}

export interface TextDone {
  readonly text: string;
}

/** Additive: the deltas of this instance so far belong to an attempt that was lost. Open, as all additions are. */
export interface TextReset {
  readonly attempt?: number | null;
}

export interface Delegated {
  readonly child_instance_id: string;
  readonly child_name: string;
  readonly mode: "foreground" | "background";
  readonly title: string;
  readonly task: string;
}

export interface ToolStart {
  readonly call_id: string;
  readonly tool_name: string;
  readonly kind: "server" | "client" | "knowledge" | "code";
  readonly args: Readonly<Record<string, unknown>>;
}

export interface ToolDelta {
  readonly call_id: string;
  readonly delta: string;
}

/** `result` keeps its JSON shape: an object is not turned into a string. */
export interface ToolComplete {
  readonly call_id: string;
  readonly result: unknown;
  readonly is_error: boolean;
  readonly usage: Usage;
}

export interface Signature {
  readonly alg: "EdDSA";
  readonly kid: string;
  readonly sig: string;
}

/** Not to be run before its signature is verified. */
export interface ToolRequest {
  readonly call_id: string;
  readonly tool_name: string;
  readonly kind: "client";
  readonly args: Readonly<Record<string, unknown>>;
  readonly signature: Signature;
}

export interface ToolResult {
  readonly call_id: string;
  readonly output: string;
  readonly is_error: boolean;
}

export interface Escalate {
  readonly escalation_id: string;
  readonly agent_id: string;
  readonly reason: string;
  readonly tool_name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface EscalationResult {
  readonly escalation_id: string;
  readonly approve: boolean;
  readonly reason: string;
}

export interface Artifact {
  readonly artifact_id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
}

export interface Compacting {
  readonly turn_id?: string;
  readonly reason?: string;
  readonly context_tokens?: number;
  readonly threshold_tokens?: number;
  readonly window_tokens?: number;
  readonly threshold?: number;
}

export interface Compacted {
  readonly new_context: string;
  readonly turn_id?: string;
  readonly context_tokens?: number;
}

export interface AgentDone {
  readonly status: string;
  readonly summary: string;
  readonly usage: Usage;
  readonly duration_ms: number;
}

export interface AgentFailed {
  readonly code: string;
  readonly message: string;
}

/** Fail closed at `deadline`: nothing is approved by silence. */
export interface ApprovalRequest {
  readonly approval_id: string;
  readonly origin_agent_id: string;
  readonly tool_name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly reason: string;
  readonly deadline: string;
}

export interface ApprovalResponse {
  readonly approval_id: string;
  readonly approve: boolean;
  readonly reason: string;
}

export interface ApprovalExpire {
  readonly approval_id: string;
}

// ---- how they are checked: the same fields, or the compiler objects

type Holds = ((value: unknown) => boolean) & { optional?: true };
type Fields<T> = { readonly [K in keyof Required<T>]: Holds };
/** The name of the first field that is wrong, undefined if none is. */
export interface Reader<T> {
  (data: Readonly<Record<string, unknown>>): string | undefined;
  /** Never there: what the type is of. */
  readonly of?: T;
}

/** @internal */
export const ULID = "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}";

function reader<T>(fields: Fields<T>, open = false): Reader<T> {
  const entries = Object.entries(fields) as [string, Holds][];
  return (data) => {
    let seen = 0;
    for (const [name, holds] of entries) {
      const value = data[name];
      if (value === undefined) {
        if (!holds.optional) return name;
        continue;
      }
      if (!holds(value)) return name;
      seen++;
    }
    if (open) return undefined;
    const names = Object.keys(data);
    return names.length === seen ? undefined : (names.find((name) => !(name in fields)) ?? "a field");
  };
}

const maybe = (holds: Holds): Holds => Object.assign((value: unknown) => holds(value), { optional: true as const });
const orNull = (holds: Holds): Holds => (value) => value === null || holds(value);
const is = <T>(check: Reader<T>): Holds => (value) => isObject(value) && check(value) === undefined;
const listOf = (holds: Holds): Holds => (value) => Array.isArray(value) && value.every(holds);
const oneOf = (...values: string[]): Holds => (value) => values.includes(value as string);
const like = (pattern: RegExp): Holds => (value) => typeof value === "string" && pattern.test(value);
const atMost = (length: number): Holds => (value) => {
  if (typeof value !== "string") return false;
  // Code points are counted, as the contract does: a pair of surrogates is one.
  return value.length <= length || (value.length <= 2 * length && [...value].length <= length);
};

const text: Holds = (value) => typeof value === "string";
const flag: Holds = (value) => typeof value === "boolean";
const object: Holds = isObject;
const anything: Holds = () => true;
const from = (least: number): Holds => (value) => Number.isInteger(value) && (value as number) >= least;
const count = from(0);
const cost: Holds = (value) => value === null || (typeof value === "number" && value >= 0);
const turnId = like(new RegExp(`^cmpl_${ULID}$`));
const agentId = like(new RegExp(`^ag_${ULID}$`));
const callId = like(new RegExp(`^tc_${ULID}$`));
const BREAKS = "\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029";
const oneLine = like(new RegExp(`^[^${BREAKS}]*(?:[^\\s\\x1c-\\x1f\\x85]|\\ufeff)[^${BREAKS}]*$`));
const title: Holds = (value) => oneLine(value) && atMost(255)(value);

/** @internal */
export const agentRef: Reader<AgentRef> = reader<AgentRef>(
  { instance_id: agentId, name: text, role: text, parent_id: orNull(agentId), model: maybe(text) },
  true,
);

/** The running instance that speaks; several may share a name. `parent_id` gives the delegation tree. */
export interface AgentRef {
  readonly instance_id: string;
  readonly name: string;
  readonly role: string;
  readonly parent_id: string | null;
  readonly model?: string;
}

const billing = is(reader<Billing>({ status: oneOf("inactive") }, true));
const amount = is(
  reader<Amount>({ currency: like(/^[A-Z]{3}$/), amount: like(/^(0|[1-9][0-9]*)(\.[0-9]+)?$/) }, true),
);
const costFields = reader<CostState>(
  {
    status: oneOf("pending", "complete"),
    basis: oneOf("reported", "calculated", "mixed", "none"),
    scope_status: oneOf("open", "closed"),
    revision: count,
    as_of: text,
    invocation_count: count,
    pending_invocation_count: count,
    totals: orNull(listOf(amount)),
    priced_subtotals: listOf(amount),
  },
  true,
);
/** Totals go with a complete, closed scope and with nothing else. */
const costState: Holds = (value) => {
  if (!isObject(value) || costFields(value) !== undefined) return false;
  const complete = value["status"] === "complete";
  const settled = value["scope_status"] === "closed" && value["pending_invocation_count"] === 0;
  return complete === (value["totals"] !== null) && (!complete || settled);
};
const usage = is(
  reader<Usage>(
    {
      input_tokens: count,
      output_tokens: count,
      cost_usd: cost,
      duration_ms: count,
      sprite_ms: maybe(count),
      sprite_ram_gb_ms: maybe(count),
      tool_calls: maybe(count),
      billing: maybe(billing),
      usage_cost: maybe(costState),
    },
    true,
  ),
);
const manifest = is(
  reader<Manifest>(
    {
      attachment_id: text,
      original_name: text,
      revision: from(1),
      sha256: like(/^[a-f0-9]{64}$/),
      bytes: count,
      conversion: object,
    },
    true,
  ),
);
const terminal: Fields<Terminal> = {
  turn_id: turnId,
  usage,
  cost,
  chat_usage: usage,
  chat_cost: cost,
  billing: maybe(billing),
  usage_cost: maybe(costState),
};
const delta = reader<TextDelta>({ delta: text });
const done = reader<TextDone>({ text });

/** What each type's payload must be. */
export const READERS = {
  ping: reader<Ping>({}),
  "chat.title.updated": reader<TitleUpdated>({ title }),
  "turn.started": reader<TurnStarted>({ turn_id: turnId, input: text, attachments: maybe(listOf(manifest)) }),
  "turn.completed": reader<TurnCompleted>({ ...terminal, finish_reason: text }),
  "turn.cancelled": reader<TurnCancelled>({ ...terminal, reason: text }),
  "turn.failed": reader<TurnFailed>({ ...terminal, code: text, message: text }),
  "turn.steered": reader<TurnSteered>({ turn_id: turnId, text, target_agent_id: maybe(agentId) }),
  "agent.started": reader<AgentStarted>({ name: text, role: text, model: text, parent_id: orNull(agentId) }),
  "agent.plan": reader<Plan>({ plan: text }),
  "agent.text.delta": delta,
  "agent.text.done": done,
  "agent.text.reset": reader<TextReset>({ attempt: maybe(orNull(Number.isInteger)) }, true),
  "agent.reasoning.delta": delta,
  "agent.reasoning.done": done,
  "agent.delegated": reader<Delegated>({
    child_instance_id: agentId,
    child_name: text,
    mode: oneOf("foreground", "background"),
    title: text,
    task: text,
  }),
  "agent.tool.start": reader<ToolStart>({
    call_id: text,
    tool_name: text,
    kind: oneOf("server", "client", "knowledge", "code"),
    args: object,
  }),
  "agent.tool.delta": reader<ToolDelta>({ call_id: text, delta: text }),
  "agent.tool.complete": reader<ToolComplete>({ call_id: text, result: anything, is_error: flag, usage }),
  "agent.tool.request": reader<ToolRequest>({
    call_id: callId,
    tool_name: text,
    kind: oneOf("client"),
    args: object,
    signature: is(reader<Signature>({ alg: oneOf("EdDSA"), kid: text, sig: text })),
  }),
  "agent.tool.result": reader<ToolResult>({ call_id: callId, output: atMost(131_072), is_error: flag }),
  "agent.escalate": reader<Escalate>({
    escalation_id: text,
    agent_id: text,
    reason: text,
    tool_name: text,
    args: object,
  }),
  "agent.escalation.result": reader<EscalationResult>({ escalation_id: text, approve: flag, reason: text }),
  "agent.artifact": reader<Artifact>({ artifact_id: text, name: text, media_type: text, size: count }),
  "agent.context.compacting": reader<Compacting>({
    turn_id: maybe(turnId),
    reason: maybe(text),
    context_tokens: maybe(count),
    threshold_tokens: maybe(count),
    window_tokens: maybe(from(1)),
    threshold: maybe((value) => typeof value === "number" && value > 0 && value <= 1),
  }),
  "agent.context.compacted": reader<Compacted>({
    new_context: text,
    turn_id: maybe(turnId),
    context_tokens: maybe(count),
  }),
  "agent.done": reader<AgentDone>({ status: text, summary: text, usage, duration_ms: count }),
  "agent.failed": reader<AgentFailed>({ code: text, message: text }),
  "approval.request": reader<ApprovalRequest>({
    approval_id: text,
    origin_agent_id: text,
    tool_name: text,
    args: object,
    reason: text,
    deadline: like(MOMENT),
  }),
  "approval.response": reader<ApprovalResponse>({ approval_id: text, approve: flag, reason: text }),
  "approval.expire": reader<ApprovalExpire>({ approval_id: text }),
} as const;

const COSTS = ["billing", "usage_cost"];
/** @internal Fields that a version 2 envelope of this type must not have. */
export const ONLY_IN_3: Readonly<Record<string, readonly string[]>> = {
  "turn.started": ["attachments"],
  "turn.completed": COSTS,
  "turn.cancelled": COSTS,
  "turn.failed": COSTS,
};
