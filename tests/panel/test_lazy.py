"""Serving costs nothing of the panel until somebody opens it."""

from __future__ import annotations

import subprocess
import sys


def test_the_server_loads_neither_templates_nor_password_hashing_before_the_first_page() -> None:
    program = (
        "import sys, crocevia.app, crocevia.app.panel\n"
        "print([name for name in ('jinja2', 'argon2', 'starlette', 'crocevia.panel.app') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
