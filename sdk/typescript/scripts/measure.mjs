// CPU per event through the whole client (fetch, SSE, checks, cursor, `for await`), memory over 100,000 events, import time.
//
//     node --expose-gc scripts/measure.mjs
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { EnvaiClient } from "../dist/esm/index.js";

const EVENTS = 100_000;
const CHAT = "cht_01j5abcdefghjkmnpqrstvwxyz";
const agent = { instance_id: "ag_01j5abcdefghjkmnpqrstvwxyz", name: "Ada", role: "orchestrator", parent_id: null };

function frames() {
  let seq = 0;
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      let text = "";
      for (let more = 0; more < 20; more++) {
        seq++;
        const id = `evt_01j5${String(seq).padStart(22, "0")}`;
        const event = { v: 3, id, seq, ts: "2026-08-17T14:00:00.123456Z", chat_id: CHAT, turn_id: `cmpl_${CHAT.slice(4)}`, agent };
        text += `data: ${JSON.stringify({ ...event, type: "agent.text.delta", data: { delta: "some words of text " } })}\n\n`;
      }
      controller.enqueue(encoder.encode(text));
      if (seq >= EVENTS) controller.close();
    },
  });
}

const headers = { "content-type": "text/event-stream", "x-envai-contract-version": "3" };
const answer = async () => new Response(frames(), { headers });

async function consume(source) {
  const before = process.cpuUsage();
  let count = 0;
  let low = Infinity;
  let high = 0;
  for await (const _ of source) {
    if (++count % 10_000 === 0) {
      globalThis.gc?.();
      const used = process.memoryUsage().heapUsed / 2 ** 20;
      low = Math.min(low, used);
      high = Math.max(high, used);
    }
    if (count === EVENTS) break;
  }
  const { user, system } = process.cpuUsage(before);
  return { ms: (user + system) / 1000, low, high };
}

/** The same bytes without the client: what making and reading them costs by itself. */
async function* bare() {
  const reader = (await answer()).body.getReader();
  for (let step = await reader.read(); !step.done; step = await reader.read()) for (let more = 0; more < 20; more++) yield more;
}

const client = new EnvaiClient({ baseUrl: "http://localhost", contractVersion: 3, fetch: answer });
await consume(client.chats.events(CHAT));
const floor = await consume(bare());
const whole = await consume(client.chats.events(CHAT));
const spent = (code) => {
  const tail = ";process.on('exit',()=>{const u=process.cpuUsage();console.log((u.user+u.system)/1000)})";
  const all = Array.from({ length: 7 }, () => Number(execFileSync(process.execPath, ["-e", code + tail])));
  return all.sort((one, other) => one - other)[3];
};
const at = new URL("../dist/esm/index.js", import.meta.url).href;
const bareNode = spent("import('data:text/javascript,')");
console.log(
  JSON.stringify({
    node: process.versions.node,
    cpu_ms_per_event: Number(((whole.ms - floor.ms) / EVENTS).toFixed(5)),
    heap_mib: { low: Number(whole.low.toFixed(1)), high: Number(whole.high.toFixed(1)) },
    import_cpu_ms_beyond_bare_node: Number((spent(`import(${JSON.stringify(at)})`) - bareNode).toFixed(1)),
    measured_by: fileURLToPath(import.meta.url).split("/").at(-1),
  }),
);
