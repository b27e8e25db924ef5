"""Set up a workspace with one agent, a team and a client tool, then open a chat.

    ENVAI_BASE_URL=http://127.0.0.1:8080 ENVAI_API_KEY=envai_sk_… python workspace_and_chat.py

Prints the id of the chat, which the other examples take as ENVAI_CHAT_ID. Running it again reuses the tool.
"""

from __future__ import annotations

import os

from envai_client import ConflictError, EnvaiClient, ValidationError

PARAMETERS = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "subject": {"type": "string"}},
    "required": ["to", "subject"],
}


def main() -> None:
    with EnvaiClient(api_key=os.environ["ENVAI_API_KEY"], base_url=os.environ["ENVAI_BASE_URL"]) as client:
        workspace = client.workspaces.create("Sales")
        ensure_tool(client)
        agent = client.agents.create(
            f"Assistant {workspace.id[-6:]}",
            "You are a helpful assistant. Use send_email when asked to write to somebody.",
            "primary",
            # Objects, not strings: an agent may carry more than the name of a tool.
            external_tools_enabled=[{"name": "send_email"}],
        )
        team = client.teams.create(f"Team {workspace.id[-6:]}", agent.id)
        chat = client.chats.create(workspace.id, team_id=team.id)
        print(chat.id)


def ensure_tool(client: EnvaiClient) -> None:
    if any(tool.name == "send_email" for tool in client.tools.list()):
        return
    try:
        client.tools.create("send_email", PARAMETERS, description="Send an e-mail.", timeout_seconds=60)
    except (ConflictError, ValidationError):
        client.tools.get("send_email")  # somebody else registered it meanwhile


if __name__ == "__main__":
    main()
