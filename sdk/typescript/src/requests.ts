/** Requests out of arguments, results out of answers: the HTTP half of the protocol, without I/O. */
import { CompatibilityError, type EnvaiError, InvalidResponseError, UnsafePathError, errorClass } from "./errors.js";
import { OPERATIONS, type Operation, type OperationId } from "./generated/operations.js";
import type { HttpRequest, Reply } from "./http.js";
import { IN_BROWSER, type Options } from "./options.js";
import { isObject } from "./resources.js";
import { type Upload, multipart } from "./uploads.js";

const VERSION_HEADER = "X-Envai-Contract-Version";
const TRACE_NAMES = ["traceparent", "tracestate", "baggage", "b3", "x-b3-", "x-request-id", "x-correlation-id"];
const ACCEPT: Readonly<Record<string, string>> = { bytes: "*/*", events: "text/event-stream" };
const LEGACY = new Set<OperationId>(["getCapabilitiesLegacy", "streamChatEventsLegacy"]);

export type Arguments = Readonly<Record<string, unknown>>;

/** The request for an operation; `version` is the contract spoken (2 or 3). Throws TypeError on unknown arguments. */
export async function build(
  options: Options,
  id: OperationId,
  given: Arguments,
  version: number,
  timeout: number | undefined,
): Promise<HttpRequest> {
  const operation = OPERATIONS[id];
  const args = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  checkArguments(id, operation, args);
  const headers = await baseHeaders(options, id, operation, version);
  for (const [name, wire] of Object.entries(operation.header ?? {})) {
    if (name in args) headers[wire] = headerValue(wire, args[name]);
  }
  const body = bodyOf(operation, args, headers);
  const label = version === 3 ? operation.path : operation.path.replace("/atp/v3/", "/");
  const wait = timeout ?? options.timeouts.request;
  const url = urlOf(options, id, operation, label, args);
  return { operation: id, method: operation.method, url, label, headers, body, headTimeout: wait, readTimeout: wait };
}

function pathNames(operation: Operation): string[] {
  return [...operation.path.matchAll(/{(\w+)}/g)].map((match) => match[1]!);
}

function checkArguments(id: OperationId, operation: Operation, args: Arguments): void {
  const { query = {}, header = {}, body = [] } = operation;
  const known = new Set([...pathNames(operation), ...Object.keys(query), ...Object.keys(header), ...body]);
  const unknown = Object.keys(args).filter((name) => !known.has(name));
  if (unknown.length > 0) throw new TypeError(`${id} has no argument ${unknown.sort().join(", ")}`);
  if (operation.path.includes("/files") && args["path"] !== undefined) checkWorkspacePath(args["path"]);
}

/** Refuse what no workspace accepts before it leaves; the server's own check stays the authority. */
function checkWorkspacePath(path: unknown): void {
  const whole = typeof path === "string" && path.startsWith("/") && !/\\|\/\/|[\0-\x1f\x7f]/.test(path);
  if (!whole || path.split("/").includes("..") || (path !== "/" && path.endsWith("/"))) {
    throw new UnsafePathError("workspace paths are absolute and hold no '..', backslash, control character or '//'");
  }
}

async function baseHeaders(
  options: Options,
  id: OperationId,
  operation: Operation,
  version: number,
): Promise<Record<string, string>> {
  const headers: Record<string, string> = { Accept: ACCEPT[operation.result] ?? "application/json" };
  if (!IN_BROWSER) {
    // Streams must flow, and downloads arrive as they are: compression only where the body is read whole.
    headers["Accept-Encoding"] = operation.result in ACCEPT ? "identity" : "gzip, deflate";
    headers["User-Agent"] = options.userAgent ?? "";
  }
  for (const [name, value] of Object.entries(options.traceHeaders?.() ?? {})) {
    if (TRACE_NAMES.some((start) => name.toLowerCase().startsWith(start))) headers[name] = value;
  }
  if (operation.negotiated && version === 3) headers[VERSION_HEADER] = LEGACY.has(id) ? "2" : "3";
  if (operation.auth && options.apiKey !== undefined) headers["Authorization"] = `Bearer ${await options.apiKey()}`;
  return headers;
}

function headerValue(name: string, value: unknown): string {
  if (typeof value !== "string" || !/^[!-~]{1,255}$/.test(value)) {
    throw new TypeError(`${name} must be 1 to 255 printable ASCII characters without spaces`);
  }
  return value;
}

function urlOf(options: Options, id: OperationId, operation: Operation, path: string, args: Arguments): string {
  if (id === "getJwks") return options.jwksUrl;
  if (id === "getWikiWebhookJwks") return options.webhookJwksUrl;
  const filled = path.replace(/{(\w+)}/g, (_, name: string) => pathSegment(name, args[name]));
  const query = Object.entries(operation.query ?? {})
    .filter(([name]) => name in args)
    .map(([name, wire]) => `${encoded(wire)}=${encoded(textOf(args[name]))}`);
  return options.baseUrl + filled + (query.length > 0 ? `?${query.join("&")}` : "");
}

function pathSegment(name: string, value: unknown): string {
  if (typeof value !== "string" || value === "" || value === "." || value === "..") {
    throw new TypeError(`${name} must be a non-empty identifier`);
  }
  return encoded(value);
}

/** Percent-encoded to the last reserved character. */
export function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

function bodyOf(operation: Operation, args: Arguments, headers: Record<string, string>): BodyInit | undefined {
  if (operation.body === undefined && operation.media === undefined) return undefined;
  const files = operation.files ?? [];
  const fields = Object.fromEntries(
    (operation.body ?? []).filter((name) => name in args && !files.includes(name)).map((name) => [name, args[name]]),
  );
  if (files.length === 0) {
    headers["Content-Type"] = "application/json";
    return JSON.stringify(fields);
  }
  const parts = files.flatMap((name) => {
    const value = args[name];
    if (value === undefined || value === null) throw new TypeError(`${name} must be a file`);
    return (Array.isArray(value) ? (value as Upload[]) : [value as Upload]).map((item) => [name, item] as [string, Upload]);
  });
  const texts = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, textOf(value)]));
  const { body, type } = multipart(texts, parts);
  headers["Content-Type"] = type;
  return body;
}

/** A negotiated success names the contract version exactly once; anything else is another contract's answer. */
export function checkAcknowledgement(id: OperationId, reply: Reply, version: number): void {
  if (!OPERATIONS[id].negotiated || version === 2) return;
  const wanted = LEGACY.has(id) ? "2" : "3";
  // Repeated lines are joined by a comma, which is not the version either.
  if (reply.headers.get(VERSION_HEADER) !== wanted) {
    throw new CompatibilityError(`${id}: the answer does not acknowledge contract ${wanted} exactly once`, {
      httpStatus: reply.status,
      requestId: reply.headers.get("x-request-id"),
    });
  }
}

/** Parsed and unwrapped JSON of a successful answer, or undefined. Throws the mapped error otherwise. */
export function readResult(id: OperationId, reply: Reply, body: Uint8Array, version: number): unknown {
  if (reply.status < 200 || reply.status >= 300) throw readError(reply, body);
  checkAcknowledgement(id, reply, version);
  const operation = OPERATIONS[id];
  if (operation.result === "none") return undefined;
  let value = parseJson(body);
  for (const key of operation.unwrap?.split(".") ?? []) {
    if (!isObject(value) || !(key in value)) {
      throw new InvalidResponseError(`${id}: the answer has no '${operation.unwrap}'`, { raw: value });
    }
    value = value[key];
  }
  return value;
}

/** JSON out of UTF-8 bytes. Throws InvalidResponseError with the bytes kept. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new InvalidResponseError("the answer is not valid JSON", { raw: body });
  }
}

/** The typed error of an answer, whatever its body is. */
export function readError(reply: Reply, body: Uint8Array): EnvaiError {
  let envelope: unknown;
  try {
    envelope = (parseJson(body) as { error?: unknown } | null)?.error;
  } catch {
    envelope = undefined;
  }
  const given = isObject(envelope) ? envelope : { message: `HTTP ${reply.status} without an error envelope` };
  const type = textOrNull(given["type"]);
  const code = textOrNull(given["code"]);
  const kind = errorClass(reply.status, type, code);
  return new kind(typeof given["message"] === "string" ? given["message"] : "", {
    httpStatus: reply.status,
    type,
    code,
    details: given["details"],
    requestId: reply.headers.get("x-request-id"),
    retryAfter: retryAfter(reply),
  });
}

/** `value` if it is text: what a server writes in the place of a code may be anything. */
function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Milliseconds of a `Retry-After`, given in seconds or as a date; null when absent or unreadable. */
export function retryAfter(reply: Reply): number | null {
  const value = reply.headers.get("retry-after")?.trim();
  if (value === undefined) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}
