// Each line marked MISTAKE is one that a type checker must find; nothing else in this file may be wrong.
import { EnvaiClient, ToolOutput, defineTool, isTerminal } from "envai-client";
import * as z from "zod";

const client = new EnvaiClient({ baseUrl: "http://localhost" });

export async function right(): Promise<void> {
  for await (const event of client.chats.sendAndStream("cht_1", "hi")) {
    if (event.type === "agent.text.delta" && event.agent.role === "orchestrator") console.log(event.data.delta);
    if (event.type === "unknown") console.log(event.wireType, event.data["anything"]);
    if (isTerminal(event)) console.log(event.data.usage.output_tokens, event.data.cost?.toFixed(2));
  }
  const weather = defineTool({
    name: "weather",
    parameters: z.object({ city: z.string() }),
    run: ({ city }, { signal }) => new ToolOutput({ city: city.trim(), stopped: signal.aborted }),
  });
  const result = await client.chats.sendAndWait("cht_1", { message: "hi", attachment_ids: [] }, { tools: [weather] });
  console.log(result.orThrow().text, result.usage.input_tokens);
  for await (const { id } of await client.completions.list("wsp_1", "cht_1", { status: "running" })) console.log(id);
  await using stream = client.chats.events("cht_1", { after: 1, signal: AbortSignal.timeout(1) });
  console.log(stream.lastSeq);
}

export async function wrong(): Promise<void> {
  new EnvaiClient({ base_url: "http://localhost" }); // MISTAKE
  new EnvaiClient({ timeouts: { conect: 1 } }); // MISTAKE
  await client.agents.create({ name: "a", system_prompt: "b" }); // MISTAKE
  await client.agents.create({ name: "a", system_prompt: "b", mode: "secondary" }); // MISTAKE
  await client.chats.steer("cht_1", { txt: "left" }); // MISTAKE
  await client.chats.cancel("cht_1", { timeout: "1s" }); // MISTAKE
  await client.chats.cancel("cht_1", { maxRetries: 2 }); // MISTAKE
  (await client.workspaces.get("wsp_1")).nam; // MISTAKE
  (await client.workspaces.get("wsp_1")).name = "x"; // MISTAKE
  await client.call("getAgnt", {}); // MISTAKE
  await client.call("getAgent", { agent: "agt_1" }); // MISTAKE
  await client.primitives; // MISTAKE
  for await (const event of client.chats.events("cht_1")) {
    event.data.delta; // MISTAKE
    if (event.type === "agent.text.delta") event.data.text; // MISTAKE
    if (event.type === "turn.finished") break; // MISTAKE
    if (event.type === "ping") event.turn_id.length; // MISTAKE
    if (event.type === "turn.completed") event.data.cost.toFixed(2); // MISTAKE
  }
  for (const event of client.chats.events("cht_1")) void event; // MISTAKE
  defineTool({ name: "t", parameters: z.object({ n: z.number() }), run: ({ n }) => n.trim() }); // MISTAKE
  (await client.chats.sendAndWait("cht_1", 7)).text; // MISTAKE
}
