// OpenAI's agent framework for JavaScript: a tool loop of two rounds on both surfaces.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";

setTracingDisabled(true);
const weather = tool({
  name: "get_weather",
  description: "The weather.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});
const said = [];
for (const useResponses of [true, false]) {
  const modelProvider = new OpenAIProvider({
    baseURL: process.env.BASE,
    apiKey: process.env.OPENAI_API_KEY,
    useResponses,
  });
  const agent = new Agent({ name: "a", instructions: "be brief", model: "openclaw/repeating", tools: [weather] });
  said.push((await new Runner({ modelProvider }).run(agent, "weather?")).finalOutput);
}
console.log(JSON.stringify(said));
