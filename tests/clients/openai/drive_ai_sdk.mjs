// The AI SDK with two of its providers; prints what came of it.
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [base, key, which] = [process.env.BASE, process.env.OPENAI_API_KEY, process.argv[2]];
const named =
  which === "open-responses"
    ? createOpenResponses({ name: "crossroads", url: `${base}/responses`, apiKey: key })
    : createOpenAI({ baseURL: base, apiKey: key }).responses;
const model = named("openclaw");
// Whether the provider sees its caller leave while this program is still there.
const upstreamLeft = async () => (await (await fetch(process.env.ENDLESS)).text()) === "closed";
const tools = {
  get_weather: tool({
    description: "The weather.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  }),
};
const stopWhen = stepCountIs(3);
const once = { model, maxRetries: 0 };

async function streamed(options) {
  const run = streamText({ ...once, ...options, onError: () => {} });
  let text = "";
  for await (const part of run.textStream) text += part;
  return text;
}

async function failed() {
  const early = await generateText({ ...once, prompt: "busy" }).then(
    () => false,
    () => true,
  );
  const run = streamText({ ...once, prompt: "break", onError: () => {} });
  let late = false;
  for await (const part of run.fullStream) if (part.type === "error" || part.finishReason === "error") late = true;
  return early && late;
}

async function faults() {
  const [known, odd] = [JSON.parse(process.env.FAULTS), []];
  for (const prompt of known.early) {
    await generateText({ ...once, prompt }).then(
      () => odd.push([prompt, "no error"]),
      () => {},
    );
  }
  for (const prompt of [...known.early, ...known.late]) {
    const [began, run] = [Date.now(), streamText({ ...once, prompt, onError: () => {} })];
    let failed = false;
    for await (const part of run.fullStream) {
      if (part.type === "error" || part.finishReason === "error") failed = true;
    }
    if (!failed || Date.now() - began > 15000) odd.push([prompt, "stream"]);
  }
  return odd;
}

async function cancelled() {
  const controller = new AbortController();
  const run = streamText({ ...once, model: named("openclaw/endless"), prompt: "wait", abortSignal: controller.signal, onError: () => {} });
  let aborted = false;
  for await (const part of run.fullStream) {
    if (part.type === "text-delta") controller.abort();
    if (part.type === "abort") aborted = true;
  }
  return aborted && (await upstreamLeft());
}

const pdf = { type: "file", mediaType: "application/pdf", filename: "a.pdf", data: process.env.PDF };
const image = { type: "image", image: process.env.PICTURE };
const first = await generateText({ ...once, prompt: "hi" });
const chain = [{ role: "user", content: "hi" }, ...first.response.messages, { role: "user", content: "and?" }];
const schema = z.object({ city: z.string(), degrees: z.number() });
const results = {
  text: first.text,
  stream: await streamed({ prompt: "hi" }),
  tools: (await generateText({ ...once, prompt: "weather?", tools, stopWhen })).text,
  stream_tools: await streamed({ prompt: "weather?", tools, stopWhen }),
  structured: (await generateObject({ ...once, prompt: "city as json", schema })).object,
  image: (await generateText({ ...once, messages: [{ role: "user", content: [{ type: "text", text: "look" }, image] }] })).text,
  file: (await generateText({ ...once, messages: [{ role: "user", content: [{ type: "text", text: "read" }, pdf] }] })).text,
  drip: await streamed({ prompt: "drip" }),
  chained: (await generateText({ ...once, messages: chain })).text,
  failed: await failed(),
  faults: await faults(),
  cancelled: await cancelled(),
};
console.log(JSON.stringify(results));
