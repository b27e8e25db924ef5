/**
 * What can go wrong, by class and by `code`. No message, stack or console output names a key, token, signed URL,
 * argument or output: what the other side said is kept in getters, which nothing prints by itself.
 */
import type { Chat } from "./generated/models.js";
import type { ToolOutcome } from "./tools.js";
import type { TurnResult } from "./turns.js";
import { inspect, scrub } from "./secrets.js";

export interface ErrorFields {
  httpStatus?: number | null | undefined;
  type?: string | null | undefined;
  code?: string | null | undefined;
  details?: unknown;
  requestId?: string | null | undefined;
  retryAfter?: number | null | undefined;
  lastSeq?: number | null | undefined;
}

/** Base of every error of the SDK. Decide on the class and on `code`. */
export class EnvaiError extends Error {
  /** Status of the answer, null if there was none. */
  readonly httpStatus: number | null;
  readonly type: string | null;
  readonly code: string | null;
  /** What the infrastructure called the request. */
  readonly requestId: string | null;
  /** Milliseconds the server asked to wait. */
  readonly retryAfter: number | null;
  /** The operation that failed, as `createAgent POST /agents`. */
  where: string | null = null;
  /** With `turnId` and `lastSeq`: where a stream or a turn stood; what to go on from. */
  chatId: string | null = null;
  turnId: string | null = null;
  lastSeq: number | null;
  /** What became of the client-tool calls of a turn that was waited for, until it failed. */
  toolOutcomes: readonly ToolOutcome[] = [];
  readonly #said: string;
  readonly #details: unknown;

  constructor(message = "", fields: ErrorFields = {}) {
    super();
    this.httpStatus = fields.httpStatus ?? null;
    this.type = fields.type ?? null;
    this.code = fields.code ?? null;
    this.requestId = fields.requestId ?? null;
    this.retryAfter = fields.retryAfter ?? null;
    this.lastSeq = fields.lastSeq ?? null;
    this.#said = message;
    this.#details = fields.details ?? null;
    this.#tell();
  }

  /** The server's own words. They may quote what was sent. */
  get serverMessage(): string {
    return this.#said;
  }

  /** The `details` of the error envelope. They may quote what was sent. */
  get details(): unknown {
    return this.#details;
  }

  /** Say where a stream or an operation stood, unless the error knows better. */
  locate(place: { where?: string; chatId?: string; turnId?: string | null; lastSeq?: number }): this {
    this.where ??= place.where ?? null;
    this.chatId ??= place.chatId ?? null;
    this.turnId ??= place.turnId ?? null;
    this.lastSeq ??= place.lastSeq ?? null;
    this.#tell();
    return this;
  }

  #tell(): void {
    const named = [this.httpStatus, this.type, this.code].filter((part) => part !== null).join(" ");
    const text = scrub(this.#said) || this.name;
    const parts = [named ? `${text} (${named})` : text, ...fieldsOf(this.#details)];
    const place = [
      ["in", this.where],
      ["chat", this.chatId],
      ["turn", this.turnId],
      ["after event", this.lastSeq],
      ["request", this.requestId],
    ].filter(([, value]) => value !== null);
    const told = place.length > 0 ? ` [${place.map((pair) => pair.join(" ")).join(", ")}]` : "";
    const message = scrub(parts.join("; ") + told);
    const frames = /(?:^|\n)\s+at [\s\S]*$/.exec(this.stack ?? "")?.[0].replace(/^\n/, "") ?? "";
    Object.defineProperty(this, "message", { value: message, configurable: true, writable: true });
    Object.defineProperty(this, "stack", {
      value: `${this.name}: ${message}${frames ? `\n${frames}` : ""}`,
      configurable: true,
      writable: true,
    });
  }

  toJSON(): object {
    const { name, message, httpStatus, type, code, requestId } = this;
    return { name, message, httpStatus, type, code, requestId };
  }

  [inspect](): string {
    return this.stack ?? `${this.name}: ${this.message}`;
  }
}

/** Which fields a validation error is about. What it says of them may quote them: that stays in `details`. */
function fieldsOf(details: unknown): string[] {
  if (details === null || typeof details !== "object" || Array.isArray(details)) return [];
  const names = Object.keys(details).map((name) => name.slice(0, 80));
  return names.length > 0 ? [`fields: ${names.slice(0, 8).join(", ")}`] : [];
}

/** 401. */
export class AuthenticationError extends EnvaiError {}

/** 403. */
export class AccessDeniedError extends EnvaiError {}

/** 404. */
export class NotFoundError extends EnvaiError {}

/** 409, for example `turn_in_progress`, `tool_already_resolved`, `tool_timed_out`. */
export class ConflictError extends EnvaiError {}

/** 422. */
export class ValidationError extends EnvaiError {}

/** 429. */
export class RateLimitError extends EnvaiError {}

/** A model or image provider failed. */
export class ProviderError extends EnvaiError {}

/** The workspace file service refused. */
export class FileError extends EnvaiError {}

/** 5xx, for example `gateway_draining`. */
export class ServerError extends EnvaiError {}

/** The two sides do not speak the same contract version, or the answer does not acknowledge it. */
export class CompatibilityError extends EnvaiError {}

/**
 * The log no longer continues from the cursor. Nothing is resumed silently: start from zero as a new epoch
 * (`onExpired: "restart"`) or reconcile.
 */
export class CursorExpiredError extends ConflictError {
  /** epoch_changed, trimmed, ahead or sequence_reset. */
  readonly reason: string;
  readonly epoch: string | null;

  constructor(message: string, fields: ErrorFields & { reason: string; lastSeq: number; epoch: string | null }) {
    super(message || `cursor ${fields.lastSeq} is no longer valid: ${fields.reason}`, {
      ...fields,
      code: fields.code ?? "cursor_expired",
    });
    this.reason = fields.reason;
    this.epoch = fields.epoch;
  }
}

/** No usable answer. `sent` is false only when the request provably never left; otherwise its effect is unknown. */
export class TransportError extends EnvaiError {
  readonly sent: boolean;

  constructor(message: string, fields: ErrorFields & { sent?: boolean } = {}) {
    super(message, fields);
    this.sent = fields.sent ?? true;
  }
}

/** The connection, the answer or the helper's own `timeout` took too long. */
export class RequestTimeoutError extends TransportError {}

/** The caller's signal was aborted. `cause` is its reason. */
export class CancelledError extends EnvaiError {
  constructor(reason?: unknown) {
    super("cancelled by the caller");
    if (reason !== undefined) Object.defineProperty(this, "cause", { value: reason, configurable: true });
  }
}

/** The stream ended and could not be resumed within the reconnection policy. `lastSeq` is where to go on. */
export class StreamInterruptedError extends TransportError {}

/** One stream has one reader: it was read from two places at once. */
export class StreamInUseError extends EnvaiError {}

/** The other side broke the protocol. `raw` is what it sent, untouched and never printed. */
export class ProtocolError extends EnvaiError {
  readonly #raw: unknown;

  constructor(message: string, fields: ErrorFields & { raw?: unknown } = {}) {
    super(message, fields);
    this.#raw = fields.raw ?? null;
  }

  get raw(): unknown {
    return this.#raw;
  }
}

/** An answer that does not fit the contract. */
export class InvalidResponseError extends ProtocolError {}

/** A frame of a stream that is not UTF-8 JSON, or is too large. */
export class InvalidFrameError extends ProtocolError {}

/** An event that breaks the schema of its type. */
export class InvalidEventError extends ProtocolError {}

/** An envelope version that is not supported here. */
export class UnsupportedVersionError extends ProtocolError {}

/** Events are lost for good: the server retains nothing of `missingFrom` to `missingTo`. */
export class ReplayGapError extends ProtocolError {
  readonly missingFrom: number;
  readonly missingTo: number;

  constructor(gap: { chatId: string; missingFrom: number; missingTo: number; lastSeq: number }) {
    super(`events ${gap.missingFrom} to ${gap.missingTo} are missing and cannot be replayed`, { lastSeq: gap.lastSeq });
    this.chatId = gap.chatId;
    this.missingFrom = gap.missingFrom;
    this.missingTo = gap.missingTo;
  }
}

/** A redirect that would carry credentials to another origin, or that a mutation may not follow. */
export class RedirectRefusedError extends ProtocolError {}

/** A client-tool request or webhook whose signature does not verify. Nothing was executed. */
export class SignatureError extends ProtocolError {}

/** A call id came back with other contents than the ledger recorded. Nothing was executed. */
export class ToolStateError extends ProtocolError {}

/** A local or workspace path that could escape, or that the workspace refuses. */
export class UnsafePathError extends EnvaiError {}

/** The destination `chat` exists but the fork into it failed; it was not deleted. */
export class ForkFailedError extends EnvaiError {
  readonly chat: Chat;

  constructor(chat: Chat, problem: EnvaiError) {
    super(problem.serverMessage, problem);
    this.chat = chat;
  }
}

/** Thrown by `TurnResult.orThrow`: the turn ended, but not with `turn.completed`. */
export class TurnFailedError extends EnvaiError {
  readonly result: TurnResult;

  constructor(result: TurnResult) {
    const ended = result.terminalEvent;
    super(`the turn ended with ${ended.type}`, { code: ended.type === "turn.failed" ? ended.data.code : null });
    this.result = result;
    this.toolOutcomes = result.toolOutcomes;
    this.locate(result);
  }
}

type Kind = new (message: string, fields: ErrorFields) => EnvaiError;

const BY_STATUS: Readonly<Record<number, Kind>> = {
  401: AuthenticationError,
  403: AccessDeniedError,
  404: NotFoundError,
  409: ConflictError,
  422: ValidationError,
  426: CompatibilityError,
  429: RateLimitError,
};
const INCOMPATIBLE = new Set(["contract_upgrade_required", "unsupported_contract_version"]);

/** @internal The class for an error answer: codes about the contract, then the status, then the type. */
export function errorClass(status: number, type: string | null, code: string | null): Kind {
  if (code !== null && INCOMPATIBLE.has(code)) return CompatibilityError;
  const known = BY_STATUS[status];
  if (known !== undefined) return known;
  if (type === "provider_error") return ProviderError;
  if (type?.startsWith("file_") || type?.startsWith("invalid_path")) return FileError;
  return status >= 500 ? ServerError : EnvaiError;
}

// The names that errors print, whatever a bundler calls the classes.
for (const [name, kind] of Object.entries({
  EnvaiError,
  AuthenticationError,
  AccessDeniedError,
  NotFoundError,
  ConflictError,
  ValidationError,
  RateLimitError,
  ProviderError,
  FileError,
  ServerError,
  CompatibilityError,
  CursorExpiredError,
  TransportError,
  RequestTimeoutError,
  CancelledError,
  StreamInterruptedError,
  StreamInUseError,
  ProtocolError,
  InvalidResponseError,
  InvalidFrameError,
  InvalidEventError,
  UnsupportedVersionError,
  ReplayGapError,
  RedirectRefusedError,
  SignatureError,
  ToolStateError,
  UnsafePathError,
  ForkFailedError,
  TurnFailedError,
})) {
  Object.defineProperty(kind.prototype, "name", { value: name, configurable: true, writable: true });
}
