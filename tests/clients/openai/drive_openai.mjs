// Everything that the official JavaScript client can ask of the door; prints what came of it.
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ maxRetries: 0, timeout: 30000 });
const model = "openclaw";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tool = { type: "function", name: "get_weather", description: "", parameters, strict: false };
const weather = (text) => `sunny in ${JSON.parse(text).city}`;
const outputs = (response) =>
  response.output
    .filter((item) => item.type === "function_call")
    .map((item) => ({ type: "function_call_output", call_id: item.call_id, output: weather(item.arguments) }));
// Whether the provider sees its caller leave while this program is still there.
const upstreamLeft = async () => (await (await fetch(process.env.ENDLESS)).text()) === "closed";
const user = (...content) => [{ role: "user", content }];

async function stream() {
  const events = client.responses.stream({ model, input: "hi" });
  let text = "";
  for await (const event of events) if (event.type === "response.output_text.delta") text += event.delta;
  const last = await events.finalResponse();
  if (last.output_text !== text) throw new Error(`${last.output_text} is not ${text}`);
  return text;
}

async function tools() {
  const first = await client.responses.create({ model, input: "weather?", tools: [tool] });
  const next = { model, input: outputs(first), previous_response_id: first.id, tools: [tool] };
  return (await client.responses.create(next)).output_text;
}

async function structured() {
  const format = zodTextFormat(z.object({ city: z.string(), degrees: z.number() }), "city");
  return (await client.responses.parse({ model, input: "city as json", text: { format } })).output_parsed;
}

async function image() {
  const parts = [{ type: "input_text", text: "look" }, { type: "input_image", image_url: process.env.PICTURE }];
  return (await client.responses.create({ model, input: user(...parts) })).output_text;
}

async function file() {
  const one = { type: "input_file", filename: "a.txt", file_data: process.env.FILE };
  return (await client.responses.create({ model, input: user({ type: "input_text", text: "read" }, one) })).output_text;
}

async function chained() {
  const first = await client.responses.create({ model, input: "hi" });
  return (await client.responses.create({ model, input: "and?", previous_response_id: first.id })).output_text;
}

async function cancelled() {
  const events = await client.responses.create({ model: "openclaw/endless", input: "wait", stream: true });
  for await (const event of events) if (event.type === "response.output_text.delta") events.controller.abort();
  if (!(await upstreamLeft())) return false;
  const job = await client.responses.create({ model, input: "slowly", background: true });
  return (await client.responses.cancel(job.id)).status === "cancelled";
}

async function drip() {
  let text = "";
  for await (const event of await client.responses.create({ model, input: "drip", stream: true }))
    if (event.type === "response.output_text.delta") text += event.delta;
  return text;
}

async function failed() {
  const status = await client.responses.create({ model, input: "busy" }).catch((error) => error.status);
  try {
    for await (const _ of await client.responses.create({ model, input: "break", stream: true }));
  } catch (error) {
    return status === 502 && error instanceof OpenAI.APIError;
  }
  return false;
}

async function faults() {
  const [known, odd] = [JSON.parse(process.env.FAULTS), []];
  const tries = known.early.flatMap((word) => [
    [word, false],
    [word, true],
  ]);
  for (const [input, stream] of [...tries, ...known.late.map((word) => [word, true])]) {
    const began = Date.now();
    try {
      const made = await client.responses.create({ model, input, stream });
      if (stream) for await (const _ of made);
      odd.push([input, stream, "no error"]);
    } catch (error) {
      if (!(error instanceof OpenAI.APIError) || Date.now() - began > 15000) odd.push([input, stream, String(error)]);
    }
  }
  return odd;
}

async function chatTools() {
  const run = client.chat.completions.runTools({
    model,
    stream: true,
    messages: [{ role: "user", content: "weather?" }],
    tools: [{ type: "function", function: { ...tool, type: undefined, function: weather } }],
  });
  return await run.finalContent();
}

const messages = [{ role: "user", content: "hi" }];
const results = {
  text: (await client.responses.create({ model, input: "hi" })).output_text,
  stream: await stream(),
  tools: await tools(),
  structured: await structured(),
  image: await image(),
  file: await file(),
  chained: await chained(),
  cancelled: await cancelled(),
  drip: await drip(),
  failed: await failed(),
  faults: await faults(),
  chat: (await client.chat.completions.create({ model, messages })).choices[0].message.content,
  chat_tools: await chatTools(),
};
console.log(JSON.stringify(results));
