"""A tool loop of two rounds with the client that is named: litellm, langgraph or autogen."""

import asyncio
import json
import os
import sys

BASE, KEY = os.environ["BASE"], os.environ["OPENAI_API_KEY"]


def get_weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


def with_litellm():
    import litellm

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": schema}}]
    messages = [{"role": "user", "content": "weather?"}]
    while True:
        model = "openai/openclaw/repeating"
        answer = litellm.completion(model=model, api_base=BASE, api_key=KEY, messages=messages, tools=tools)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump())
        for call in message.tool_calls:
            said = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})


def with_langgraph(responses):
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    asked = ChatOpenAI(model="openclaw/repeating", base_url=BASE, api_key=KEY, use_responses_api=responses)
    model = asked.bind_tools([get_weather])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([get_weather]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile().invoke({"messages": [("user", "weather?")]})["messages"][-1].text


async def with_autogen():
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    abilities = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False}
    client = OpenAIChatCompletionClient(
        model="openclaw/repeating",
        base_url=BASE,
        api_key=KEY,
        model_info={**abilities, "family": "unknown"},
    )
    agent = AssistantAgent("a", client, tools=[get_weather], max_tool_iterations=5)
    done = await agent.run(task="weather?")
    await client.close()
    return done.messages[-1].content


WAYS = {
    "litellm": lambda: [with_litellm()],
    "langgraph": lambda: [str(with_langgraph(False)), str(with_langgraph(True))],
    "autogen": lambda: [asyncio.run(with_autogen())],
}
json.dump(WAYS[sys.argv[1]](), sys.stdout)
