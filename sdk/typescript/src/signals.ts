/** What an observer is told. Counts, ids and durations: never a payload, an argument, an output or a URL. */

export type Signal =
  | { readonly kind: "requestStarted"; operation: string; method: string; path: string }
  /** `status` is null when no answer arrived. */
  | { readonly kind: "requestEnded"; operation: string; method: string; path: string; status: number | null; ms: number }
  | { readonly kind: "retrying"; operation: string; attempt: number; delay: number; status: number | null }
  | { readonly kind: "streamOpened"; chatId: string; after: number; epoch: string | null }
  | { readonly kind: "streamClosed"; chatId: string; lastSeq: number }
  | { readonly kind: "reconnecting"; chatId: string; lastSeq: number; attempt: number; delay: number }
  /** The explicit policy `restart` was applied: what follows is a new epoch from its beginning. */
  | { readonly kind: "streamRestarted"; chatId: string; reason: string; lastSeq: number }
  | { readonly kind: "eventReceived"; type: string; id: string; seq: number; chatId: string; turnId: string | null }
  | { readonly kind: "toolStarted"; chatId: string; callId: string; tool: string }
  /** `outcome` is that of the call's `ToolOutcome`. */
  | { readonly kind: "toolEnded"; chatId: string; callId: string; tool: string; outcome: string; ms: number };

/** Where one line per signal goes: `console` is one. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
}

const WORTH_A_LOOK = new Set<Signal["kind"]>(["retrying", "reconnecting", "streamRestarted", "toolStarted", "toolEnded"]);

/** @internal One line per signal: debug for what happens per request or event, info for what is worth a look. */
export function writeLog(signal: Signal, logger: Logger): void {
  const { kind, ...fields } = signal;
  const line = `${kind} ${JSON.stringify(fields)}`;
  if (WORTH_A_LOOK.has(kind)) logger.info(line);
  else logger.debug(line);
}
