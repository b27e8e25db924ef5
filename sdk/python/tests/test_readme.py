"""The README's programs run, and its settings exist."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

from conformance.runner.fake_server import FakeServer
from scenario import load

import envai_client as sdk

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)
TURN = next(case for case in load("flows/scenarios.json") if case["name"].startswith("chat created"))


def test_the_programs_print_the_answer() -> None:
    async def play(block: str) -> str:
        async with FakeServer(TURN["server"]) as server:
            chat = TURN["steps"][1]["args"][0]
            env = {**os.environ, "ENVAI_API_KEY": "k", "ENVAI_BASE_URL": server.origin, "ENVAI_CHAT_ID": chat}
            command = [sys.executable, "-W", "error", "-c", block]
            run = await asyncio.to_thread(subprocess.run, command, env=env, capture_output=True, text=True, timeout=30)
            return str(run.stdout + run.stderr)

    assert asyncio.run(play(BLOCKS[0])) == "Ciao\nturn.completed 5 0.25 7\n"
    assert asyncio.run(play(BLOCKS[1])) == "Ciao\n7\n"
    compile(BLOCKS[2], "README.md", "exec")


def test_every_setting_is_one() -> None:
    table = TEXT.split("## Settings")[1].split("Every helper")[0]
    names = set(
        re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|")))
    )
    known = set(inspect.signature(sdk.EnvaiClient).parameters) | set(sdk.options.Options.__struct_fields__)
    assert names <= known
    assert len(names) > 8


def test_every_error_named_exists() -> None:
    for name in re.findall(r"`(\w+Error)`", TEXT):
        assert issubclass(getattr(sdk, name), sdk.EnvaiError)
