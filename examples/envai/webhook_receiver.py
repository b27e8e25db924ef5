"""Receive wiki webhooks: verify the raw bytes, then take each event once together with the job it causes.

    ENVAI_BASE_URL=… ENVAI_WORKSPACE_ID=wsp_… python webhook_receiver.py --port 8090

Answers 204 to everything genuine, first time or not, and 401 to the rest. If the job fails the receipt is not kept,
the answer is 500 and the next delivery tries again; the same holds for 503, while the keys cannot be had. Put it behind
HTTPS: Envai only calls https URLs.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

from envai_client import EnvaiClient, EnvaiError, ProtocolError, WebhookEvent, receive_webhook

LIMIT = 1024 * 1024


def add_job(db: sqlite3.Connection, event: WebhookEvent) -> None:
    """The application's part, in the same transaction as the receipt."""
    db.execute("CREATE TABLE IF NOT EXISTS jobs (event_id TEXT PRIMARY KEY, event_type TEXT NOT NULL)")
    db.execute("INSERT INTO jobs VALUES (?, ?)", (event.event_id, event.event_type))


class Receiver(BaseHTTPRequestHandler):
    client: EnvaiClient
    workspace_id: str
    database: str

    def do_POST(self) -> None:
        self.send_response(self.receive())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def receive(self) -> int:
        size = int(self.headers.get("Content-Length") or 0)
        if not 0 < size <= LIMIT:
            return 413
        body = self.rfile.read(size)
        try:
            event = self.client.wiki.verify_webhook(body, self.headers.items(), self.workspace_id)
        except ProtocolError:
            return 401
        except EnvaiError:
            return 503  # the keys cannot be had now: the next delivery tries again
        try:
            with closing(sqlite3.connect(self.database)) as db:
                print(event.event_id, receive_webhook(db, event, add_job), flush=True)
        except sqlite3.Error:
            return 500
        return 204

    def log_message(self, *_: object) -> None:
        """Quiet: the path may name things and the headers are nobody's business."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--database", default="webhooks.sqlite3")
    options = parser.parse_args()
    Receiver.client = EnvaiClient(base_url=os.environ["ENVAI_BASE_URL"])
    Receiver.workspace_id = os.environ["ENVAI_WORKSPACE_ID"]
    Receiver.database = options.database
    server = HTTPServer(("127.0.0.1", options.port), Receiver)
    print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
