/** Public keys by id, cached, and the signatures they verify. */
import type { Core } from "./core.js";
import { verifyEd25519 } from "./ed25519.js";
import { EnvaiError, InvalidResponseError, SignatureError } from "./errors.js";
import type { Jwk, JwksDocument } from "./generated/models.js";
import { canonicalJson } from "./jcs.js";
import type { ToolRequest } from "./payloads.js";
import { now } from "./waits.js";

const COOL_DOWN = 10_000;
/** The cool-down after a failure while no key is known at all: calls wait for one. */
const HURRIED = 1_000;
/** Milliseconds for one fetch, retries included: calls wait for it. */
const FETCH_TIMEOUT = 10_000;

/** Raw 32-byte Ed25519 keys by `kid`. */
export type Keys = ReadonlyMap<string, Uint8Array>;

/** Where the keys of one JWKS URL are kept; pluggable, for example to share them between processes. */
export interface KeyCache {
  /** The keys, or undefined when there are none or they are too old. */
  load(): Keys | undefined | Promise<Keys | undefined>;
  /** Replace them all. */
  store(keys: Keys): void | Promise<void>;
}

/** Keeps keys in memory for `ttl` milliseconds. */
export class MemoryKeyCache implements KeyCache {
  readonly ttl: number;
  #keys: Keys | undefined;
  #until = 0;

  constructor(ttl = 300_000) {
    this.ttl = ttl;
  }

  load(): Keys | undefined {
    return now() < this.#until ? this.#keys : undefined;
  }

  store(keys: Keys): void {
    this.#keys = keys;
    this.#until = now() + this.ttl;
  }
}

/**
 * @internal
 * Finds keys and verifies, with the last good set for as long as no better one can be had.
 *
 * A set is fetched when the cached one is too old, and once more when a signature does not verify: by one caller at a
 * time, whose answer the others share, and at most once per cool-down, whether it succeeds or fails. A fetch that fails,
 * or finds no usable key at all, leaves the known keys in use. A `kid` that names several keys names none.
 */
export class KeyRing {
  readonly #core: Core;
  readonly #operation: "getJwks" | "getWikiWebhookJwks";
  readonly #cache: KeyCache;
  readonly #coolDown: number;
  #lastGood: Keys = new Map();
  #failure: EnvaiError | undefined;
  #failedAt: number | undefined;
  #forcedAt: number | undefined;
  #generation = 0;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(core: Core, operation: "getJwks" | "getWikiWebhookJwks", cache?: KeyCache, coolDown = COOL_DOWN) {
    this.#core = core;
    this.#operation = operation;
    this.#cache = cache ?? new MemoryKeyCache(core.options.jwksTtl);
    this.#coolDown = coolDown;
  }

  /**
   * Check an Ed25519 signature (unpadded base64url). Throws SignatureError, never after a lenient guess, and the failure
   * of the fetch where the key is not known and cannot be had.
   */
  async verify(kid: string, signature: string, message: Uint8Array, timeout?: number): Promise<void> {
    const given = readSignature(signature);
    let generation = this.#generation;
    let keys = await this.#cache.load();
    if (keys === undefined) {
      keys = await this.#refresh(generation, timeout);
      generation = this.#generation;
    }
    if (await isValid(keys.get(kid), given, message)) return;
    keys = await this.#force(generation, timeout);
    if (await isValid(keys.get(kid), given, message)) return;
    if (!keys.has(kid) && this.#failure !== undefined) throw this.#failure;
    throw new SignatureError(keys.has(kid) ? "the signature does not verify" : "the signing key is unknown");
  }

  async #force(generation: number, timeout: number | undefined): Promise<Keys> {
    if (generation === this.#generation) {
      if (this.#forcedAt !== undefined && now() - this.#forcedAt < this.#coolDown) return this.#known();
      this.#forcedAt = now();
    }
    return this.#refresh(generation, timeout);
  }

  async #known(): Promise<Keys> {
    return (await this.#cache.load()) ?? this.#lastGood;
  }

  /** The keys after `generation`: fetched by whoever comes first, shared by those who waited. */
  #refresh(generation: number, timeout: number | undefined): Promise<Keys> {
    const turn = this.#queue.then(() => this.#fetch(generation, timeout));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  async #fetch(generation: number, timeout: number | undefined): Promise<Keys> {
    const pause = this.#lastGood.size > 0 ? this.#coolDown : Math.min(this.#coolDown, HURRIED);
    const cooling = this.#failedAt !== undefined && now() - this.#failedAt < pause;
    const fetched = generation !== this.#generation && (await this.#cache.load()) !== undefined;
    if (cooling || fetched) return this.#known();
    let keys: Keys;
    try {
      const most = Math.min(timeout ?? FETCH_TIMEOUT, FETCH_TIMEOUT);
      keys = readKeys(await this.#core.call(this.#operation, {}, { timeout: most }));
      if (this.#lastGood.size > 0 && keys.size === 0) {
        throw new InvalidResponseError("the key set holds no usable key");
      }
    } catch (problem) {
      if (!(problem instanceof EnvaiError)) throw problem;
      this.#failure = problem;
      this.#failedAt = now();
      return this.#known();
    }
    await this.#cache.store(keys);
    this.#lastGood = keys;
    this.#failure = this.#failedAt = undefined;
    this.#generation++;
    return keys;
  }
}

/** @internal The usable Ed25519 keys of a JWKS, by `kid`. */
export function readKeys(document: JwksDocument): Keys {
  const found = new Map<string, Uint8Array | undefined>();
  for (const key of document.keys) {
    const raw = decodeBase64url(key.x);
    if (raw.length === 32 && isSigning(key)) found.set(key.kid, found.has(key.kid) ? undefined : raw);
  }
  return new Map([...found].filter((entry): entry is [string, Uint8Array] => entry[1] !== undefined));
}

function isSigning(key: Jwk): boolean {
  const operations = (key as { key_ops?: unknown }).key_ops;
  const usable = operations === undefined || operations === null || (Array.isArray(operations) && operations.includes("verify"));
  return usable && key.kty === "OKP" && key.crv === "Ed25519" && key.alg === "EdDSA" && key.use === "sig";
}

/** @internal The bytes of unpadded base64url, none at all for anything else. */
export function decodeBase64url(text: string): Uint8Array {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return new Uint8Array();
  return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
}

/** @internal The 64 bytes of a signature; only its canonical unpadded base64url form is accepted. */
export function readSignature(text: string): Uint8Array {
  const raw = decodeBase64url(text);
  const form = btoa(String.fromCharCode(...raw.subarray(0, 64))).replace(/\+/g, "-").replace(/\//g, "_");
  if (raw.length !== 64 || form.replace(/=+$/, "") !== text) {
    throw new SignatureError("the signature is not the unpadded base64url form of 64 bytes");
  }
  return raw;
}

async function isValid(key: Uint8Array | undefined, signature: Uint8Array, message: Uint8Array): Promise<boolean> {
  return key !== undefined && (await verifyEd25519(key, signature, message));
}

/** @internal What the server signs of a client-tool request. Throws SignatureError if the arguments have no canonical form. */
export function signedToolBytes(callId: string, toolName: string, args: object): Uint8Array {
  try {
    return new TextEncoder().encode(`${callId}\n${toolName}\n${canonicalJson(args)}`);
  } catch {
    throw new SignatureError("the arguments have no canonical form");
  }
}

/** Whether a client-tool request is signed by one of these keys: for programs with a runner of their own. */
export async function verifyToolRequest(document: JwksDocument, request: ToolRequest): Promise<boolean> {
  const { kid, sig } = request.signature;
  try {
    const message = signedToolBytes(request.call_id, request.tool_name, request.args);
    return await isValid(readKeys(document).get(kid), readSignature(sig), message);
  } catch (problem) {
    if (problem instanceof SignatureError) return false;
    throw problem;
  }
}
