"""Eight mistakes that a type checker must find: each on the line that says so. Made from the async edition."""

from envai_client import ClientToolRegistry, EnvaiClient, RetryPolicy, ToolContext


def program(chat_id: str, workspace_id: str) -> None:
    EnvaiClient(api_key="k", base_url="http://x", retry="never")  # mistake: a policy is no word
    client = EnvaiClient(base_url="http://x", retry=RetryPolicy(max_retries=1))
    with client.chats.send_and_stream(chat_id, "Hello") as turn:
        for event in turn:
            if event.type == "agent.text.delta":
                print(event.data.text)  # mistake: a delta has `delta`
            if event.type == "turn.completed":
                print(event.data.usage.tokens)  # mistake: there is no such count
    client.agents.create(
        "clerk",
        "Be useful.",
        "leader",  # mistake: no such mode
        tools_enabled=[{"nmae": "read"}],  # mistake: a misspelt key
    )
    for completion in client.completions.iterate_completions(workspace_id, chat_id, stauts="failed"):  # mistake
        del completion
    result = client.chats.send_and_wait(chat_id, "Hello")
    print(result.cost + 1)  # mistake: the cost may be unknown


def register(registry: ClientToolRegistry, context: ToolContext) -> None:
    registry.register_tool("send", lambda to: to, "an object")  # mistake: a schema is no text
    print(context.seconds_left)
