"""The driver in a real Chromium: a page performs the commands, this program carries the lines (conformance/DRIVER.md).

The page is of another origin than the scripted servers, which know nothing of browsers: its web security is off.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

ROOT = Path(__file__).resolve().parents[4]
PAGE = """
<script type="module">
import * as sdk from "/sdk/typescript/dist/esm/index.js";
import { Performer, inventory } from "/sdk/typescript/tests/driver/perform.mjs";
const contract = async (name) => (await fetch(`/conformance/contract/${name}.json`)).json();
const performer = new Performer({
  sdk,
  ledger: async (path) => new sdk.IndexedDbLedger(path),
  runtime: navigator.userAgent.match(/Chrome\\/[\\d.]+/)[0].toLowerCase(),
  notify: (notice) => window.notice(JSON.stringify(notice)),
  print: (error) => [error.message, String(error), error.stack, JSON.stringify(error)].join("\\n"),
});
Object.assign(performer, inventory(await contract("operations"), await contract("extensions")));
window.perform = async (line) => JSON.stringify(await performer.reply(JSON.parse(line)));
</script>
"""


class Files(SimpleHTTPRequestHandler):
    """The repository's files, and the page."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *_: Any) -> None:
        pass


async def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(ROOT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = shutil.which("chromium") or os.environ["CHROMIUM"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-web-security"]
        )
        page = await browser.new_page()
        await page.expose_function("notice", say)
        await page.goto(f"http://127.0.0.1:{server.server_port}/")
        await page.wait_for_function("window.perform !== undefined")
        while line := await asyncio.to_thread(sys.stdin.readline):
            say(await page.evaluate("(line) => window.perform(line)", line))
        await browser.close()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
