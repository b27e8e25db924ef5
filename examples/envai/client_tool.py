"""Let an agent run a tool of this program, at most once, even if the program dies in the middle.

    ENVAI_BASE_URL=… ENVAI_API_KEY=… ENVAI_CHAT_ID=cht_… python client_tool.py --crash
    ENVAI_BASE_URL=… ENVAI_API_KEY=… ENVAI_CHAT_ID=cht_… python client_tool.py

The first run "sends" an e-mail (a line in outbox.txt) and is killed before it can say so. The second run finds the
unsettled call in the ledger, picks the turn up again and does not send anything: it looks into the outbox, which is the
only place that knows, and answers the agent with what it finds there.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from envai_client import ClientToolRegistry, EnvaiClient, Event, Record, SqliteLedger, ToolContext, ToolOutput

PARAMETERS = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "subject": {"type": "string"}},
    "required": ["to", "subject"],
}


class Outbox:
    """A file with one line per e-mail, written durably and keyed by the call that asked for it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def send(self, call_id: str, to: str, subject: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{call_id}\t{to}\t{subject}\n")
            file.flush()
            os.fsync(file.fileno())

    def was_sent(self, call_id: str) -> bool:
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        return any(line.startswith(call_id + "\t") for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--crash", action="store_true", help="die right after the side effect")
    parser.add_argument("--folder", type=Path, default=Path())
    options = parser.parse_args()
    outbox = Outbox(options.folder / "outbox.txt")

    def send_email(to: str, subject: str, context: ToolContext) -> dict[str, bool]:
        outbox.send(context.call_id, to, subject)
        if options.crash:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"sent": True}

    def reconcile(record: Record) -> ToolOutput:
        """An earlier life of this program began the call and nobody knows how far it got. We do."""
        return ToolOutput(
            output={"sent": outbox.was_sent(record.call_id)}, is_error=not outbox.was_sent(record.call_id)
        )

    registry = ClientToolRegistry()
    registry.register_tool("send_email", send_email, PARAMETERS, timeout=60)
    ledger = SqliteLedger(options.folder / "tools.sqlite3")
    chat_id = os.environ["ENVAI_CHAT_ID"]
    with EnvaiClient(
        api_key=os.environ["ENVAI_API_KEY"], base_url=os.environ["ENVAI_BASE_URL"], ledger=ledger
    ) as client:
        if ledger.unsettled(chat_id):
            stream = client.chats.events(chat_id, timeout=120)  # from the beginning: the request comes by again
        else:
            stream = client.chats.send_and_stream(chat_id, "Write to a@example.com about the offer.", timeout=120)
        with stream:
            for event in client.chats.run_client_tools(stream, registry, on_ambiguous=reconcile):
                show(event)
                if event.is_terminal and not ledger.unsettled(chat_id):
                    break
    print(outbox.path.read_text(encoding="utf-8"), end="")
    ledger.close()


def show(event: Event) -> None:
    if event.type in ("agent.tool.request", "agent.tool.result") or event.is_terminal:
        print(event.seq, event.type, flush=True)


if __name__ == "__main__":
    main()
