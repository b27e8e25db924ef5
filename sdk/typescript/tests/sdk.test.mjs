// What the shared cases do not see: printing, the arithmetic behind the signatures, schemas, ledgers, uploads, tools of zod.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { build } from "esbuild";
import * as z from "zod";
import {
  ConflictError,
  EnvaiClient,
  FileLedger,
  MemoryLedger,
  SqliteLedger,
  SseDecoder,
  ToolOutput,
  TransportError,
  parseEvent,
  receiveWebhook,
} from "envai-client";

const root = fileURLToPath(new URL("..", import.meta.url));
const fixture = (name) => JSON.parse(readFileSync(join(root, "../../conformance", name)));
const KEY = "envai_sk_0123456789";
const CHAT = "cht_01j5abcdefghjkmnpqrstvwxyz";

/** A module of src by itself, for what the package does not export. */
async function internal(name) {
  const outfile = join(mkdtempSync(join(tmpdir(), "envai-internal-")), `${name}.mjs`);
  await build({ entryPoints: [join(root, `src/${name}.ts`)], bundle: true, format: "esm", outfile, logLevel: "error" });
  return import(outfile);
}

async function serve(answer, work) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    answer(request, response, Buffer.concat(chunks));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await work(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const printed = (value) =>
  [inspect(value, { depth: 9, showHidden: true }), inspect([value]), String(value), JSON.stringify(value) ?? "", value?.stack ?? ""].join("\n");

test("no client, error, event, resource or outcome prints a secret or a text", async () => {
  const secret = "the-text-of-a-person";
  const answer = (_, response) => {
    response.writeHead(409, { "content-type": "application/json" });
    const error = { type: "conflict", code: "taken", message: `no ${KEY} at https://x.example/a?signature=1`, details: { name: [secret] } };
    response.end(JSON.stringify({ error }));
  };
  const problem = await serve(answer, async (baseUrl) => {
    const client = new EnvaiClient({ baseUrl, apiKey: KEY, ledger: new MemoryLedger() });
    assert.ok(!printed(client).includes(KEY) && !printed(client.chats).includes(KEY));
    return client.agents.get("agt_1").catch((raised) => raised);
  });
  assert.ok(problem instanceof ConflictError);
  assert.equal(problem.code, "taken");
  assert.match(problem.message, /getAgent GET \/agents.*/);
  assert.match(problem.message, /fields: name/);
  for (const hidden of [KEY, secret, "signature=1"]) assert.ok(!printed(problem).includes(hidden), printed(problem));
  assert.ok(JSON.stringify(problem.details).includes(secret));
  const [{ event: raw }] = fixture("atp/events.json").filter(({ valid, event }) => valid && event.type === "agent.text.delta");
  const event = parseEvent(JSON.stringify({ ...raw, data: { delta: secret } }));
  assert.ok(!inspect([event]).includes(secret));
  assert.equal(JSON.parse(JSON.stringify(event)).data.delta, secret);
});

test("resources keep what they do not know, also a field called __proto__, and print no text", async () => {
  const { decode } = await internal("resources");
  const raw = JSON.parse('{"id":"key_1","name":"secret name","scopes":[],"expires_at":null,"revoked_at":null,"created_at":"2026-01-01T00:00:00Z","__proto__":{"polluted":1},"new":2}');
  const key = decode("ApiKey", raw);
  assert.deepEqual(Object.keys(key.extra), ["__proto__", "new"]);
  assert.equal(key.polluted, undefined);
  assert.ok(!inspect(key).includes("secret name"));
  assert.throws(() => decode("ApiKey", { ...raw, id: 7 }), { name: "InvalidResponseError" });
});

test("signatures verify the same by arithmetic as by WebCrypto, and so do digests", async () => {
  const { sha2, verifyEd25519, verifyPlainly } = await internal("ed25519");
  const { readKeys, readSignature, signedToolBytes } = await internal("keys");
  const { keys, tool_requests: requests } = fixture("ed25519/vectors.json");
  const known = readKeys({ keys: keys.map(({ jwk }) => jwk) });
  let compared = 0;
  for (const { request, name } of requests) {
    let signature;
    try {
      signature = readSignature(request.signature.sig);
    } catch {
      continue;
    }
    const message = signedToolBytes(request.call_id, request.tool_name, request.args);
    for (const key of known.values()) {
      assert.equal(verifyPlainly(key, signature, message), await verifyEd25519(key, signature, message), name);
      compared++;
    }
  }
  assert.ok(compared >= 10);
  for (const length of [0, 1, 55, 56, 63, 64, 111, 112, 127, 128, 300]) {
    const message = Uint8Array.from({ length }, (_, at) => at);
    for (const [bits, name] of [[32, "SHA-256"], [64, "SHA-512"]]) {
      assert.deepEqual(sha2(bits, message), new Uint8Array(await crypto.subtle.digest(name, message)), `${name} of ${length}`);
    }
  }
});

const SCHEMAS = [
  [{ type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"], additionalProperties: false }, [{ n: 1 }], [{}, { n: 0 }, { n: 1.5 }, { n: 1, m: 1 }, [], null]],
  [{ enum: [1, "a", { b: [1] }] }, [1, "a", { b: [1] }], [2, { b: [2] }]],
  [{ const: null }, [null], [0]],
  [{ type: ["string", "null"], minLength: 2, pattern: "^a" }, ["ab", null], ["a", "ba", 7]],
  [{ type: "string", maxLength: 1 }, ["😀"], ["ab"]],
  [{ prefixItems: [{ type: "string" }], items: { type: "number" }, minItems: 1 }, [["a", 1]], [[], [1], ["a", "b"]]],
  [{ contains: { const: 1 }, maxContains: 1 }, [[1, 2]], [[2], [1, 1]]],
  [{ uniqueItems: true }, [[1, 2]], [[{ a: 1, b: 2 }, { b: 2, a: 1 }]]],
  [{ oneOf: [{ type: "integer" }, { minimum: 2 }] }, [1, 2.5], [3, 1.5]],
  [{ anyOf: [{ type: "string" }, { type: "number" }], not: { const: 5 } }, ["a", 4], [5, null]],
  [{ if: { required: ["a"] }, then: { required: ["b"] }, else: { required: ["c"] } }, [{ a: 1, b: 1 }, { c: 1 }], [{ a: 1 }, {}]],
  [{ $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, additionalProperties: false } }, $ref: "#/$defs/node" }, [{ next: { next: {} } }], [{ next: { other: 1 } }]],
  [{ patternProperties: { "^x-": { type: "string" } }, additionalProperties: { type: "number" } }, [{ "x-a": "b", c: 1 }], [{ "x-a": 1 }, { c: "d" }]],
  [{ propertyNames: { maxLength: 2 }, maxProperties: 1 }, [{ ab: 1 }], [{ abc: 1 }, { a: 1, b: 2 }]],
  [{ dependentRequired: { a: ["b"] } }, [{ b: 1 }, { a: 1, b: 1 }], [{ a: 1 }]],
  [{ multipleOf: 0.1 }, [0.3, "x"], [0.35]],
  [{ properties: { constructor: { type: "string" } }, required: ["toString"] }, [{ toString: 1 }], [{}]],
  [false, [], [1, null]],
];

test("schemas decide as draft 2020-12 says", async () => {
  const { compileSchema } = await internal("schema");
  for (const [schema, yes, no] of SCHEMAS) {
    const check = compileSchema(schema);
    for (const value of yes) assert.equal(check(value), true, `${JSON.stringify(schema)} ${JSON.stringify(value)}`);
    for (const value of no) assert.equal(check(value), false, `${JSON.stringify(schema)} ${JSON.stringify(value)}`);
  }
  assert.equal(compileSchema({ $ref: "#" })({}), false);
});

test("what is no schema, or needs what is not known here, is refused when it is read", async () => {
  const { compileSchema } = await internal("schema");
  const wrong = [7, { type: "text" }, { required: "a" }, { properties: [] }, { pattern: "(" }, { minimum: "1" }, { $ref: "http://x.example/" }];
  for (const schema of [...wrong, { $ref: "#/$defs/none" }, { unevaluatedProperties: false }, { items: { $dynamicRef: "#a" } }, { $defs: { a: 1 } }]) {
    assert.throws(() => compileSchema(schema), TypeError, JSON.stringify(schema));
  }
});

const { DatabaseSync } = await import("node:sqlite").catch(() => ({}));
const LEDGERS = { memory: () => new MemoryLedger(), file: () => new FileLedger(mkdtempSync(join(tmpdir(), "envai-ledger-"))) };
if (DatabaseSync) LEDGERS.sqlite = () => new SqliteLedger(new DatabaseSync(":memory:"));
const call = (callId) => ({ chatId: "cht_1", callId, tool: "t", fingerprint: "f", owner: "o" });

for (const [name, make] of Object.entries(LEDGERS)) {
  test(`the ${name} ledger claims once, keeps outputs until they are resolved, and forgets`, async () => {
    const ledger = make();
    const claims = await Promise.all(Array.from({ length: 8 }, () => ledger.claim(call("tc_1"))));
    assert.equal(claims.filter((record) => record === undefined).length, 1);
    assert.ok(claims.filter(Boolean).every(({ state }) => state === "started"));
    await ledger.finish("cht_1", "tc_1", "secret output", true);
    await ledger.finish("cht_1", "tc_1", "second", false); // only a started call can finish
    await ledger.note("cht_1", "tc_1", "unconfirmed");
    const kept = await ledger.get("cht_1", "tc_1");
    assert.deepEqual([kept.state, kept.output, kept.isError, kept.note], ["finished", "secret output", true, "unconfirmed"]);
    await ledger.claim(call("tc_2"));
    assert.deepEqual((await ledger.unsettled("cht_1")).map(({ callId }) => callId).sort(), ["tc_1", "tc_2"]);
    assert.deepEqual(await ledger.unsettled("cht_2"), []);
    await ledger.resolve("cht_1", "tc_1", "delivered");
    await ledger.resolve("cht_1", "tc_3", "observed");
    assert.equal((await ledger.get("cht_1", "tc_1")).output, null);
    assert.equal((await ledger.get("cht_1", "tc_3")).state, "resolved");
    assert.equal(await ledger.get("cht_1", "tc_4"), undefined);
    assert.equal(await ledger.holder(), await ledger.holder());
    assert.equal(await ledger.forget(-1000), 2);
    assert.equal((await ledger.unsettled()).length, 1);
  });
}

test("a file ledger keeps its records and its name through another life, and leaves no parts", async () => {
  const folder = mkdtempSync(join(tmpdir(), "envai-ledger-"));
  const [first, second] = [new FileLedger(folder), new FileLedger(folder)];
  await first.claim(call("tc_1"));
  assert.equal((await second.claim(call("tc_1"))).state, "started");
  assert.equal(await first.holder(), await second.holder());
  assert.deepEqual(readdirSync(folder).filter((name) => name.includes("part")), []);
});

test("a webhook is taken once, and a late one revives nothing", { skip: !DatabaseSync }, () => {
  const database = new DatabaseSync(":memory:");
  const taken = [];
  const take = (event) => receiveWebhook(database, event, (_, given) => taken.push(given.event_id));
  const base = { workspace_id: "w", file_id: "f", operation_id: "o" };
  const deleted = { ...base, event_id: "1", source_revision: 2, lifecycle: "deleted" };
  assert.equal(take(deleted), "accepted");
  assert.equal(take(deleted), "duplicate");
  assert.equal(take({ ...base, event_id: "2", source_revision: 2, availability: "raw" }), "stale");
  const fail = () => receiveWebhook(database, { ...deleted, event_id: "3", source_revision: 9 }, () => { throw new Error("no"); });
  assert.throws(fail, /no/);
  assert.equal(take({ ...deleted, event_id: "3", source_revision: 9 }), "accepted");
  assert.deepEqual(taken, ["1", "3"]);
});

test("frames are the same however their bytes are cut", () => {
  const bytes = new TextEncoder().encode("\ufeff: hi\r\ndata: {\"a\":\"è\"}\r\ndata: 2\r\r\nid: 1\ndata\n\ndata:x\n\n");
  const whole = new SseDecoder().feed(bytes).map((frame) => new TextDecoder().decode(frame));
  assert.deepEqual(whole, ['{"a":"è"}\n2', "", "x"]);
  for (let size = 1; size < bytes.length; size++) {
    const decoder = new SseDecoder();
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...decoder.feed(bytes.subarray(at, at + size)));
    assert.deepEqual(frames.map((frame) => new TextDecoder().decode(frame)), whole, `chunks of ${size}`);
  }
});

test("uploads travel as blobs or as streams, their names quoted", async () => {
  const bodies = [];
  const answer = (request, response, body) => {
    bodies.push([request.headers["content-type"], body.toString("latin1")]);
    response.writeHead(401).end();
  };
  await serve(answer, async (baseUrl) => {
    const client = new EnvaiClient({ baseUrl });
    async function* pieces() {
      yield new TextEncoder().encode("ab");
      yield new TextEncoder().encode("c");
    }
    const stream = new ReadableStream({ start(controller) { controller.enqueue(new TextEncoder().encode("abc")); controller.close(); } });
    for (const file of [new Blob(["abc"], { type: "image/png" }), new TextEncoder().encode("abc"), pieces(), stream, { name: 'a"\r\nb', content: pieces(), type: "image/png" }]) {
      await assert.rejects(client.images.upload({ file }), { name: "AuthenticationError" });
    }
  });
  assert.equal(bodies.length, 5);
  for (const [type, body] of bodies) {
    const boundary = /boundary=(.+)$/.exec(type)[1];
    assert.ok(body.startsWith(`--${boundary}\r\n`) && body.endsWith(`\r\nabc\r\n--${boundary}--\r\n`.replace("\r\nabc", "\r\n\r\nabc")), body);
  }
  assert.match(bodies[4][1], /filename="a%22%0D%0Ab"/);
});

test("a server that cannot be reached was sent nothing", async () => {
  const closed = await serve(() => undefined, async (baseUrl) => baseUrl);
  const client = new EnvaiClient({ baseUrl: closed, retry: { maxRetries: 0 } });
  const problem = await client.workspaces.create({ name: "w" }).catch((raised) => raised);
  assert.ok(problem instanceof TransportError);
  assert.equal(problem.sent, false);
});

test("an aborted signal ends a request, a wait and a stream at once, with its reason as the cause", async () => {
  await serve(() => undefined, async (baseUrl) => {
    const client = new EnvaiClient({ baseUrl, contractVersion: 3 });
    for (const begin of [
      (signal) => client.workspaces.list({ signal }),
      (signal) => client.chats.events(CHAT, { signal }).next(),
      (signal) => client.chats.sendAndWait(CHAT, "hi", { signal }),
    ]) {
      const stop = new AbortController();
      const work = assert.rejects(begin(stop.signal), { name: "CancelledError", cause: "enough" });
      stop.abort("enough");
      await work;
    }
  });
});

test("settings that are wrong are refused when the client is made, by their name alone", () => {
  for (const settings of [{ baseUrl: "ftp://x" }, { baseUrl: `http://u:${KEY}@x` }, { baseUrl: "http://x", apiKey: " " }, { baseUrl: "http://x", retry: { maxRetries: "2" } }, { baseUrl: "http://x", timeouts: { none: 1 } }, { baseUrl: "http://x", contractVersion: 4 }]) {
    assert.throws(() => new EnvaiClient(settings), (problem) => !problem.message.includes(KEY));
  }
});

test("a zod tool gets parsed arguments, and wrong ones are answered with an error", async () => {
  const { registryOf, serialise } = await internal("tools");
  const tool = { name: "t", parameters: z.object({ n: z.coerce.number() }), run: ({ n }) => n + 1 };
  const known = registryOf([tool]).get("t");
  assert.deepEqual(await known.read({ n: "4" }), { value: { n: 4 } });
  assert.equal(await known.read({ n: "x" }), undefined);
  assert.equal(serialise(undefined).output, "null");
  assert.equal(serialise("").error, "output_empty");
  assert.equal(serialise(1n).error, "output_not_serialisable");
  assert.equal(serialise("è".repeat(65_537)).error, "output_too_large");
  assert.throws(() => registryOf([{ ...tool, name: "Bad" }]), TypeError);
  assert.throws(() => registryOf([tool, tool]), /twice/);
  assert.ok(!inspect(new ToolOutput("secret")).includes("secret"));
});
