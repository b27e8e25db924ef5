/** What a client is configured with. Every limit is stated here and nowhere else; times are milliseconds. */
import type { Logger, Signal } from "./signals.js";
import { VERSION } from "./version.js";

const API_PREFIX = "/api/v1";

/** Milliseconds. `fetch` does not show connecting apart, so each bound includes it. */
export interface Timeouts {
  /** An ordinary request: until its answer begins, and between two reads of it. */
  request: number;
  /** Until the answer to opening a stream begins. */
  streamConnect: number;
  /** The silence on a stream, heartbeats included. */
  streamIdle: number;
  /** The wait for the ping that proves a subscription live. */
  attach: number;
}

/** For GET only. A `Retry-After` beyond `maxRetryAfter` is not slept: the error is thrown with its value. */
export interface RetryPolicy {
  maxRetries: number;
  baseDelay: number;
  maxDelay: number;
  maxRetryAfter: number;
}

/** Failures in a row before a stream gives up; progress, or a connection that lived `healthyAfter`, clears them. */
export interface ReconnectPolicy {
  maxReconnects: number;
  /** All of the attempts together; null: no bound. */
  maxTime: number | null;
  baseDelay: number;
  maxDelay: number;
  maxRetryAfter: number;
  healthyAfter: number;
}

export type ApiKey = string | (() => string | Promise<string>);
export type ContractVersion = "auto" | 2 | 3;

export interface Settings {
  /** A key, or a function that gives the one of the moment, such as a short-lived key from your own server. */
  apiKey?: ApiKey;
  /** May or may not end in `/api/v1`. */
  baseUrl?: string;
  /** Where the signing keys are, if not at the origin of `baseUrl`. */
  jwksUrl?: string;
  /** Where the keys of the wiki's webhooks are, if not at the origin of `baseUrl`. */
  webhookJwksUrl?: string;
  /** `"auto"`: asked of the server once, the first time it matters. */
  contractVersion?: ContractVersion;
  timeouts?: Partial<Timeouts>;
  retry?: Partial<RetryPolicy>;
  reconnect?: Partial<ReconnectPolicy>;
  /** Milliseconds for which the signing keys are kept. */
  jwksTtl?: number;
  maxFrameBytes?: number;
  /** In place of the global `fetch`: for tests, proxies and private certificates. */
  fetch?: typeof fetch;
  /** Asked for each request; only tracing names pass. */
  traceHeaders?: () => Readonly<Record<string, string>>;
  observer?: (signal: Signal) => void;
  logger?: Logger;
  /** In place of `envai-typescript/<version>` in the User-Agent, where the runtime lets one be set. */
  sdkName?: string;
}

/** @internal The settings, checked and complete. */
export interface Options extends Omit<Settings, "timeouts" | "retry" | "reconnect" | "apiKey"> {
  /** Asked for each request; a key never lies about as a property. */
  apiKey: (() => string | Promise<string>) | undefined;
  baseUrl: string;
  jwksUrl: string;
  webhookJwksUrl: string;
  contractVersion: ContractVersion;
  timeouts: Timeouts;
  retry: RetryPolicy;
  reconnect: ReconnectPolicy;
  jwksTtl: number;
  maxFrameBytes: number;
  fetch: typeof fetch;
  userAgent: string | undefined;
}

const TIMEOUTS: Timeouts = { request: 30_000, streamConnect: 45_000, streamIdle: 45_000, attach: 45_000 };
const RETRY: RetryPolicy = { maxRetries: 2, baseDelay: 500, maxDelay: 8_000, maxRetryAfter: 30_000 };
const RECONNECT: ReconnectPolicy = {
  maxReconnects: 5,
  maxTime: null,
  baseDelay: 250,
  maxDelay: 10_000,
  maxRetryAfter: 60_000,
  healthyAfter: 30_000,
};

/** @internal Throws TypeError and RangeError, naming the setting alone. */
export function readOptions(settings: Settings): Options {
  const apiKey = settings.apiKey ?? environment("ENVAI_API_KEY");
  const baseUrl = settings.baseUrl ?? environment("ENVAI_BASE_URL");
  if (baseUrl === undefined) throw new TypeError("baseUrl is missing: pass it, or set ENVAI_BASE_URL");
  const base = normalizeBaseUrl(baseUrl);
  const { origin } = new URL(base);
  const version = settings.contractVersion ?? "auto";
  if (version !== "auto" && version !== 2 && version !== 3) {
    throw new RangeError('contractVersion must be 2, 3 or "auto"');
  }
  for (const name of ["observer", "traceHeaders", "fetch"] as const) {
    if (settings[name] !== undefined && typeof settings[name] !== "function") {
      throw new TypeError(`${name} must be a function`);
    }
  }
  const send = settings.fetch;
  return {
    ...settings,
    apiKey: keySource(apiKey),
    baseUrl: base,
    jwksUrl: settings.jwksUrl ?? `${origin}/.well-known/jwks.json`,
    webhookJwksUrl: settings.webhookJwksUrl ?? `${origin}/.well-known/wiki-webhook-jwks.json`,
    contractVersion: version,
    timeouts: numbers("timeouts", TIMEOUTS, settings.timeouts),
    retry: numbers("retry", RETRY, settings.retry),
    reconnect: numbers("reconnect", RECONNECT, settings.reconnect),
    ...numbers("client", { jwksTtl: 300_000, maxFrameBytes: 16 * 1024 * 1024 }, settings, true),
    // Looked up per call: a page or a test may replace it. Called plainly: browsers want no receiver.
    fetch: send ?? ((input, init) => globalThis.fetch(input, init)),
    userAgent: userAgent(settings.sdkName),
  };
}

/** @internal `defaults` with what was given. Throws for a field that is unknown or no number from 0 on. */
export function numbers<T extends object>(name: string, defaults: T, given: object | undefined, open = false): T {
  const out = { ...defaults } as Record<string, unknown>;
  for (const [field, value] of Object.entries(given ?? {})) {
    if (value === undefined || (open && !(field in defaults))) continue;
    if (!(field in defaults)) throw new TypeError(`${name} has no setting ${field}`);
    const none = value === null && (defaults as Record<string, unknown>)[field] === null;
    if (!none && typeof value !== "number") throw new TypeError(`${name}.${field} must be a number`);
    if (!none && !((value as number) >= 0)) throw new RangeError(`${name}.${field} must not be negative`);
    out[field] = value;
  }
  return out as T;
}

function keySource(key: ApiKey | undefined): Options["apiKey"] {
  if (key === undefined) return undefined;
  if (typeof key === "function") return async () => checkedKey(await key());
  const checked = checkedKey(key);
  return () => checked;
}

function checkedKey(key: unknown): string {
  if (typeof key !== "string" || key.trim() === "" || !/^[ -~]+$/.test(key)) {
    throw new TypeError("apiKey must be a non-empty printable ASCII string");
  }
  return key;
}

interface RuntimeGlobals {
  process?: { env?: Record<string, string | undefined>; versions?: Record<string, string | undefined> };
  Deno?: { version: { deno: string } };
  Bun?: { version: string };
  navigator?: { userAgent?: string };
  document?: object;
}

const runtime = globalThis as RuntimeGlobals;

/** @internal A page sets no User-Agent and no caching header: both would ask for a preflight and be dropped. */
export const IN_BROWSER: boolean = runtime.document !== undefined || "WorkerGlobalScope" in globalThis;

function environment(name: string): string | undefined {
  return runtime.process?.env?.[name] || undefined;
}

function userAgent(name: string | undefined): string | undefined {
  if (IN_BROWSER) return undefined;
  return `${name ?? `envai-typescript/${VERSION}`} (${runtimeName()})`;
}

/** @internal */
export function runtimeName(): string {
  if (runtime.Deno) return `deno/${runtime.Deno.version.deno}`;
  if (runtime.Bun) return `bun/${runtime.Bun.version}`;
  const node = runtime.process?.versions?.["node"];
  return node === undefined ? (IN_BROWSER ? "browser" : "edge") : `node/${node}`;
}

/** @internal `url` ending in `/api/v1` exactly once, without a trailing slash. */
export function normalizeBaseUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    throw new TypeError("baseUrl must be an absolute http or https URL");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError("baseUrl must be an absolute http or https URL");
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("baseUrl must carry no credentials, query or fragment");
  }
  const path = url.pathname.replace(/\/+$/, "");
  return url.origin + (path.endsWith(API_PREFIX) ? path : path + API_PREFIX);
}
