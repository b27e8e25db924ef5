"""A real Chromium for the tests marked `browser`: Debian's program, driven by the playwright package.

`page_watch` gives a page with a watch on it: `watch.check()` fails on CSP violations, requests to other hosts, script
errors and console errors. Without Chromium these tests skip, and say so.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
LOCAL = {"127.0.0.1", "localhost"}
NAMES = ("chromium", "chromium-browser", "google-chrome")
# Before anything of the page: what the browser refuses, and what keeps it busy.
OBSERVER = """
window.__violations = [];
addEventListener("securitypolicyviolation", (event) => {
  window.__violations.push(event.violatedDirective + " " + event.blockedURI);
});
window.__longTasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.__longTasks.push(entry.duration);
}).observe({ type: "longtask", buffered: true });
"""


def chromium_program() -> str | None:
    named = os.environ.get("CROCEVIA_TEST_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the playwright package is missing (make dev)")
    program = chromium_program()
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium; or set CROCEVIA_TEST_CHROMIUM)")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield running
        running.close()


@dataclass
class Watch:
    """What went wrong on a page. `allow`: parts of console messages that a test causes on purpose."""

    page: Any
    external: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    allow: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.page.add_init_script(OBSERVER)
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(f"script: {error}"))
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))

    def _asked(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and urlsplit(url).hostname not in LOCAL:
            self.external.append(url)

    def violations(self) -> list[str]:
        return list(self.page.evaluate("window.__violations"))

    def long_tasks(self) -> list[float]:
        """Milliseconds of each task over 50 ms so far."""
        return list(self.page.evaluate("window.__longTasks"))

    def longest_task(self, work: Callable[[], None]) -> float:
        """CPU milliseconds of the longest task of the page's main thread during `work`, 0 if there was none.

        CPU time, not the clock: other programs on the machine make a page wait, and that is not its fault.
        """
        browser = self.page.context.browser
        browser.start_tracing(page=self.page, categories=["toplevel", "__metadata"])
        try:
            work()
            self.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
        finally:  # a browser that goes on tracing would fail every later test
            trace = browser.stop_tracing()
        events = json.loads(trace)["traceEvents"]
        threads = [event for event in events if event["name"] == "thread_name"]
        main = {(one["pid"], one["tid"]) for one in threads if one["args"]["name"] == "CrRendererMain"}
        tasks = [
            event["tdur"] / 1000
            for event in events
            if event["name"].endswith("RunTask") and "tdur" in event and (event["pid"], event["tid"]) in main
        ]
        assert tasks, "the trace holds no task: this Chromium names them differently"
        return float(max(tasks))

    def check(self) -> None:
        assert self.violations() == []
        assert self.external == []
        assert [error for error in self.errors if not any(part in error for part in self.allow)] == []


@pytest.fixture
def new_page(browser: Any) -> Iterator[Callable[..., Watch]]:
    """Make watched pages: new_page(width=1280, theme="light", language="it-IT", reduced_motion=False)."""
    contexts = []

    def make(
        *,
        width: int = 1280,
        height: int = 800,
        theme: str = "light",
        language: str = "en-GB",
        reduced_motion: bool = False,
    ) -> Watch:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            locale=language,
            reduced_motion="reduce" if reduced_motion else "no-preference",
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        watch = Watch(context.new_page())
        watch.start()
        return watch

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page_watch(new_page: Callable[..., Watch]) -> Watch:
    return new_page()


@pytest.fixture(scope="session")
def axe() -> Callable[[Any], list[str]]:
    """Accessibility violations of a page, one line each; empty is right."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is missing (make dev)")
    source = (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

    def violations(page: Any) -> list[str]:
        # Through the debugger, not as a script element: the page's own policy stays as strict as it is.
        page.evaluate(source)
        # (preload would copy style sheets into inline ones).
        found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
        return [
            f"{rule['id']} ({rule['impact']}): {node['html'][:160]}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    return violations
