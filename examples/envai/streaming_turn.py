"""Send a message and print the answer as it is written.

ENVAI_BASE_URL=… ENVAI_API_KEY=… ENVAI_CHAT_ID=cht_… python streaming_turn.py "What can you do?"
"""

from __future__ import annotations

import asyncio
import os
import sys

from envai_client import AsyncEnvaiClient


async def main(message: str) -> int:
    async with AsyncEnvaiClient(api_key=os.environ["ENVAI_API_KEY"], base_url=os.environ["ENVAI_BASE_URL"]) as client:
        turn = client.chats.send_and_stream(os.environ["ENVAI_CHAT_ID"], message, timeout=300)
        async with turn:
            async for event in turn:
                # Members stream too; what is meant for the user is what the orchestrator says.
                if event.type == "agent.text.delta" and event.agent and event.agent.role == "orchestrator":
                    print(event.data.delta, end="", flush=True)
        result = turn.result()
    print()
    cost = "unknown" if result.cost is None else f"{result.cost:f} USD"
    print(f"[{result.terminal_event.type}, {result.usage.output_tokens} tokens, cost {cost}]", file=sys.stderr)
    return 0 if result.completed else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(" ".join(sys.argv[1:]) or "Hello!")))
