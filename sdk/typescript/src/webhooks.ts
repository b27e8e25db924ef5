/** Wiki webhooks: the raw bytes are verified, then read. `receiveWebhook` takes each event once. */
import { sha256 } from "./ed25519.js";
import { InvalidResponseError, SignatureError } from "./errors.js";
import type { KeyRing } from "./keys.js";
import { isObject } from "./resources.js";

const MAX_BODY = 1024 * 1024;
const TOLERANCE = 300_000;
const IDENTIFIER = /^[A-Za-z0-9_-]{1,255}$/;
const HEADERS = ["envai-webhook-id", "envai-webhook-timestamp", "envai-webhook-key-id", "envai-webhook-signature"];

export type WebhookBody = Uint8Array | ArrayBuffer;
/** A `Headers`, an object or a list of pairs. */
export type WebhookHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

interface WebhookBase {
  readonly schema_version: "1";
  readonly event_id: string;
  readonly operation_id: string;
  readonly workspace_id: string;
  readonly occurred_at: string;
}

export interface FileProcessed extends WebhookBase {
  readonly event_type: "wiki.inbox.file.processed";
  readonly file_id: string;
  readonly source_revision: number;
  readonly canonical_raw_path: string;
  readonly availability: "raw";
}

export interface FileDeleted extends WebhookBase {
  readonly event_type: "wiki.outbox.file.deleted";
  readonly file_id: string;
  readonly source_revision: number;
  readonly previous_canonical_raw_path: string | null;
  readonly lifecycle: "deleted";
}

/** The one logical end of an operation. */
export interface OperationEnded extends WebhookBase {
  readonly event_type: `wiki.${"inbox" | "outbox" | "sync"}.${"completed" | "failed"}`;
  readonly status: "completed" | "failed";
  readonly phases: Readonly<Record<string, unknown>>;
  readonly finished_at: string;
  readonly billing: Readonly<Record<string, unknown>>;
  readonly usage_cost: Readonly<Record<string, unknown>>;
}

/** The verified JSON, unknown fields included; `event_type` tells the kinds apart. */
export type WebhookEvent = FileProcessed | FileDeleted | OperationEnded;

/**
 * @internal
 * The event of a delivery. Throws SignatureError unless the raw `body` is genuine, fresh and for `workspaceId`. `body`
 * must be the bytes as received: a re-serialised body is another body.
 */
export async function verifyWebhook(
  keys: KeyRing,
  body: WebhookBody,
  headers: WebhookHeaders,
  workspaceId: string,
  options: { now?: Date; timeout?: number } = {},
): Promise<WebhookEvent> {
  if (!(body instanceof Uint8Array) && !(body instanceof ArrayBuffer)) {
    throw new TypeError("the raw body bytes are verified, not parsed or decoded JSON");
  }
  const bytes = body instanceof ArrayBuffer ? new Uint8Array(body) : body;
  const [id, stamp, kid, signature] = readHeaders(headers) as [string, string, string, string];
  if (bytes.length > MAX_BODY) throw new SignatureError("the webhook body is larger than 1 MiB");
  if (Math.abs((options.now?.getTime() ?? Date.now()) - Number(stamp) * 1000) > TOLERANCE) {
    throw new SignatureError("the webhook attempt is older or newer than 300 seconds");
  }
  const signed = `envai-webhook-v1\n${kid}\n${id}\n${stamp}\n${await sha256(bytes)}`;
  await keys.verify(kid, signature, new TextEncoder().encode(signed), options.timeout);
  const event = readWebhook(bytes);
  if (event.event_id !== id || event.workspace_id !== workspaceId) {
    throw new SignatureError("the webhook names another event or workspace than its headers and receiver");
  }
  return event;
}

/** The four signed header values, each present exactly once. */
function readHeaders(headers: WebhookHeaders): string[] {
  const pairs = Symbol.iterator in headers ? [...(headers as Iterable<readonly [string, string]>)] : Object.entries(headers);
  const values = HEADERS.map((name) => pairs.filter(([key]) => key.toLowerCase() === name).flatMap(([, value]) => value));
  if (values.some((lines) => lines.length !== 1)) {
    throw new SignatureError("the webhook headers must be present exactly once");
  }
  const [id, stamp, kid, signature] = values.map(([line]) => String(line)) as [string, string, string, string];
  if (!IDENTIFIER.test(id) || !IDENTIFIER.test(kid) || !/^[0-9]{1,12}$/.test(stamp)) {
    throw new SignatureError("the webhook headers are malformed");
  }
  return [id, stamp, kid, signature];
}

function readWebhook(body: Uint8Array): WebhookEvent {
  try {
    const raw: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
    if (isObject(raw) && isWebhook(raw)) return raw as unknown as WebhookEvent;
  } catch {
    // told below
  }
  throw new InvalidResponseError("a signed webhook is not a known event", { raw: body });
}

function isWebhook(raw: Readonly<Record<string, unknown>>): boolean {
  const texts = (...names: string[]): boolean => names.every((name) => typeof raw[name] === "string");
  const named = ["event_id", "operation_id", "workspace_id"].every((name) => raw[name] !== "");
  if (raw["schema_version"] !== "1" || !named) return false;
  if (!texts("event_id", "event_type", "operation_id", "workspace_id", "occurred_at")) return false;
  const type = raw["event_type"] as string;
  const revised = Number.isInteger(raw["source_revision"]) && (raw["source_revision"] as number) >= 1;
  if (type === "wiki.inbox.file.processed") {
    return texts("file_id", "canonical_raw_path") && revised && raw["availability"] === "raw";
  }
  if (type === "wiki.outbox.file.deleted") {
    const path = raw["previous_canonical_raw_path"];
    return texts("file_id") && revised && (path === null || typeof path === "string") && raw["lifecycle"] === "deleted";
  }
  const [, end] = /^wiki\.(?:inbox|outbox|sync)\.(completed|failed)$/.exec(type) ?? [];
  const objects = ["phases", "billing", "usage_cost"].every((name) => isObject(raw[name]));
  return end !== undefined && raw["status"] === end && texts("finished_at") && objects;
}
