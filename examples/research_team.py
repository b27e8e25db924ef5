"""A team at work: a lead, a researcher it waits for, a critic in the background, and one tool that runs right here.

CROCEVIA_URL=… CROCEVIA_API_KEY=… CROCEVIA_WORKSPACE=wsp_… python research_team.py "Should we drink tea or coffee?"

`crocevia init` prints key and workspace. Everything is created on the first run and used again on the next.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from envai_client import ClientToolRegistry, EnvaiClient, ToolContext

LEAD = """You lead a small research team. For every question, do these steps in this order:
1. delegate_task: agent "critic", mode "background". The task is the question.
2. delegate_task: agent "researcher", mode "foreground". The task is the question.
3. save_brief: the title, and what the researcher found as the text.
4. reply with what the researcher found."""
STEPS = ["delegate_task", "delegate_task", "save_brief"]  # one by one, so that a small model keeps to them too
RESEARCHER = "Answer with three short facts, one per line."
CRITIC = "Do not answer the question: say in one sentence what it leaves out."
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "text": {"type": "string"}},
    "required": ["title", "text"],
}


def prepare(client: EnvaiClient, model: str | None) -> str:
    """The team's id; its agents, and the tool, as they should be."""
    if "save_brief" not in {tool.name for tool in client.tools.list()}:
        client.tools.create("save_brief", SCHEMA, description="Keep a finished brief.", timeout_seconds=60)
    chosen = {"model": model} if model else {}
    save, plan = [{"name": "save_brief"}], {"tool_choice": STEPS}
    lead = agent(client, "lead", LEAD, "primary", external_tools_enabled=save, config=plan, **chosen)
    researcher = agent(client, "researcher", RESEARCHER, "subagent", **chosen)
    critic = agent(client, "critic", CRITIC, "subagent", **chosen)
    members = [
        {"agent_definition_id": researcher, "role": "finds facts"},
        {"agent_definition_id": critic, "role": "finds what a question leaves out"},
    ]
    for team in client.teams.list():
        if team.name == "research":
            return client.teams.update(team.id, orchestrator_id=lead, members=members).id
    return client.teams.create("research", lead, members=members).id


def agent(client: EnvaiClient, name: str, prompt: str, mode: str, **fields: Any) -> str:
    for found in client.agents.list():
        if found.name == name:
            return client.agents.update(found.id, system_prompt=prompt, mode=mode, **fields).id
    return client.agents.create(name, prompt, mode, **fields).id


def tools(folder: Path) -> ClientToolRegistry:
    """What the team can do on this machine: one thing."""
    registry = ClientToolRegistry()

    def save_brief(title: str, text: str, context: ToolContext) -> dict[str, str]:
        file = folder / f"{context.call_id}.md"  # the call's own name: saving it twice would be saving it once
        file.write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
        return {"saved": file.name}

    registry.register_tool("save_brief", save_brief, SCHEMA, timeout=60)
    return registry


def show(event: Any) -> None:
    """One line per thing that happens; what the agents say, as they say it."""
    name = event.agent.name if event.agent else ""
    if event.type == "agent.text.done":
        print(f"  {name}: {event.data.text}")
    elif event.type == "agent.delegated":
        print(f"> {name} delegates to {event.data.child_name} ({event.data.mode}): {event.data.task}")
    elif event.type in ("agent.tool.start", "agent.tool.request"):
        print(f"> {name} uses {event.data.tool_name}")
    elif event.type == "chat.title.updated":
        print(f"> the chat is called {event.data.title}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Let a research team answer a question.")
    parser.add_argument("question", nargs="?", default="Should we drink tea or coffee?")
    parser.add_argument("--model", help="a model of the catalogue (default: the server's)")
    parser.add_argument("--folder", type=Path, default=Path(), help="where briefs are saved (default: here)")
    given = parser.parse_args()
    url = os.environ.get("CROCEVIA_URL", "http://127.0.0.1:8111")
    with EnvaiClient(api_key=os.environ["CROCEVIA_API_KEY"], base_url=url) as client:
        team = prepare(client, given.model)
        chat = client.chats.create(os.environ["CROCEVIA_WORKSPACE"], team)
        with client.chats.send_and_stream(chat.id, given.question, timeout=1800) as turn:
            for event in client.chats.run_client_tools(turn, tools(given.folder)):
                show(event)
        result = turn.result()
    cost = "unknown" if result.cost is None else f"{result.cost:f} USD"
    print(f"[{result.terminal_event.type}, {result.usage.output_tokens} tokens, cost {cost}]")
    return 0 if result.completed else 1


if __name__ == "__main__":
    sys.exit(main())
