/** Ed25519 verification and SHA-2 by WebCrypto, and by plain arithmetic where a runtime or a page has none of it. */

const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

/** Whether `signature` (64 bytes) is the one of `message` by the 32-byte `key`. */
export async function verifyEd25519(key: Uint8Array, signature: Uint8Array, message: Uint8Array): Promise<boolean> {
  if (key.length !== 32 || signature.length !== 64) return false;
  try {
    const algorithm = { name: "Ed25519" };
    const imported = await crypto.subtle.importKey("raw", key as BufferSource, algorithm, false, ["verify"]);
    return await crypto.subtle.verify(algorithm, imported, signature as BufferSource, message as BufferSource);
  } catch {
    return verifyPlainly(key, signature, message); // no such algorithm here, or no WebCrypto at all
  }
}

/** Lower-case hexadecimal SHA-256. */
export async function sha256(message: Uint8Array): Promise<string> {
  const subtle = globalThis.crypto?.subtle;
  const digest = subtle ? new Uint8Array(await subtle.digest("SHA-256", message as BufferSource)) : sha2(32, message);
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

type Point = readonly [bigint, bigint, bigint, bigint];

const mod = (value: bigint): bigint => ((value % P) + P) % P;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let square = base, left = exponent; left > 0n; left >>= 1n, square = (square * square) % P) {
    if (left & 1n) result = (result * square) % P;
  }
  return result;
}

const D = mod(-121665n * power(121666n, P - 2n));
const SQRT_OF_MINUS_1 = power(2n, (P - 1n) / 4n);

function add([x1, y1, z1, t1]: Point, [x2, y2, z2, t2]: Point): Point {
  const a = ((y1 - x1) * (y2 - x2)) % P;
  const b = ((y1 + x1) * (y2 + x2)) % P;
  const c = (2n * t1 * t2 * D) % P;
  const d = (2n * z1 * z2) % P;
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

function times(point: Point, scalar: bigint): Point {
  let result: Point = [0n, 1n, 1n, 0n];
  for (let doubled = point, left = scalar; left > 0n; left >>= 1n, doubled = add(doubled, doubled)) {
    if (left & 1n) result = add(result, doubled);
  }
  return result;
}

function decodePoint(bytes: Uint8Array): Point | undefined {
  const encoded = littleEndian(bytes);
  const y = mod(encoded & (2n ** 255n - 1n));
  const u = mod(y * y - 1n);
  const v = mod(D * y * y + 1n);
  let x = (u * power(v, 3n) * power((u * power(v, 7n)) % P, (P - 5n) / 8n)) % P;
  const check = mod(v * x * x);
  if (check === mod(-u)) x = (x * SQRT_OF_MINUS_1) % P;
  else if (check !== u) return undefined;
  if ((x & 1n) !== encoded >> 255n) x = mod(-x);
  return [x, y, 1n, (x * y) % P];
}

function encodePoint([x, y, z]: Point): bigint {
  const inverse = power(z, P - 2n);
  return mod(y * inverse) | ((mod(x * inverse) & 1n) << 255n);
}

const littleEndian = (bytes: Uint8Array): bigint => bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

let basePoint: Point | undefined;

/** The same by arithmetic: a few milliseconds. Verification handles nothing secret, so its time may tell everything. */
export function verifyPlainly(key: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  const point = decodePoint(key);
  const s = littleEndian(signature.subarray(32));
  if (point === undefined || s >= ORDER) return false;
  const signed = new Uint8Array(64 + message.length);
  signed.set(signature.subarray(0, 32));
  signed.set(key, 32);
  signed.set(message, 64);
  const h = littleEndian(sha2(64, signed)) % ORDER;
  basePoint ??= decodePoint(Uint8Array.from([0x58, ...Array<number>(31).fill(0x66)]))!;
  const [x, y, z, t] = point;
  const expected = add(times(basePoint, s), times([mod(-x), y, z, mod(-t)], h));
  return encodePoint(expected) === littleEndian(signature.subarray(0, 32));
}

const SHIFTS = {
  32: { sums: [2n, 13n, 22n, 6n, 11n, 25n], words: [7n, 18n, 3n, 17n, 19n, 10n], rounds: 64 },
  64: { sums: [28n, 34n, 39n, 14n, 18n, 41n], words: [1n, 8n, 7n, 19n, 61n, 6n], rounds: 80 },
} as const;

/** SHA-256 (`bits` 32) or SHA-512 (64): one design, two word sizes. */
export function sha2(bits: 32 | 64, message: Uint8Array): Uint8Array {
  const { sums, words, rounds } = SHIFTS[bits];
  const size = BigInt(bits);
  const mask = (1n << size) - 1n;
  const turn = (value: bigint, by: bigint): bigint => ((value >> by) | (value << (size - by))) & mask;
  const primes = firstPrimes(rounds);
  const constants = primes.map((prime) => root(3n, prime << (3n * size)) & mask);
  let state = primes.slice(0, 8).map((prime) => root(2n, prime << (2n * size)) & mask);
  const block = bits * 2; // in bytes
  const padded = new Uint8Array(Math.ceil((message.length + 1 + bits / 4) / block) * block);
  padded.set(message);
  padded[message.length] = 0x80;
  new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(message.length) * 8n);
  for (let start = 0; start < padded.length; start += block) {
    const w: bigint[] = [];
    for (let at = 0; at < 16; at++) {
      const from = start + (at * bits) / 8;
      w.push(padded.subarray(from, from + bits / 8).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n));
    }
    for (let at = 16; at < rounds; at++) {
      const [one, other] = [w[at - 15]!, w[at - 2]!];
      const s0 = turn(one, words[0]) ^ turn(one, words[1]) ^ (one >> words[2]);
      const s1 = turn(other, words[3]) ^ turn(other, words[4]) ^ (other >> words[5]);
      w.push((w[at - 16]! + s0 + w[at - 7]! + s1) & mask);
    }
    let [a, b, c, d, e, f, g, h] = state as [bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint];
    for (let at = 0; at < rounds; at++) {
      const s1 = turn(e, sums[3]) ^ turn(e, sums[4]) ^ turn(e, sums[5]);
      const first = h + s1 + ((e & f) ^ (~e & mask & g)) + constants[at]! + w[at]!;
      const s0 = turn(a, sums[0]) ^ turn(a, sums[1]) ^ turn(a, sums[2]);
      const second = s0 + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) & mask, c, b, a, (first + second) & mask];
    }
    state = [a, b, c, d, e, f, g, h].map((word, at) => (word + state[at]!) & mask);
  }
  const out = new Uint8Array(bits);
  for (let at = 0; at < bits; at++) {
    const word = state[Math.floor((at * 8) / bits)]!;
    out[at] = Number((word >> (size - 8n - BigInt((at * 8) % bits))) & 255n);
  }
  return out;
}

function firstPrimes(count: number): bigint[] {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate++) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  }
  return primes.map(BigInt);
}

/** The whole part of the `n`th root. */
function root(n: bigint, value: bigint): bigint {
  let low = 0n;
  let high = 1n << (BigInt(value.toString(2).length) / n + 1n);
  while (low < high) {
    const middle = (low + high + 1n) >> 1n;
    if (middle ** n <= value) low = middle;
    else high = middle - 1n;
  }
  return low;
}
