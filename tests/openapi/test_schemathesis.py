"""Every operation of every document, with what its schema allows and what it does not: no fault, nothing unforeseen."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import LiveServer

from .test_documents import server

__all__ = ["server"]

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Streams never end, and revoking or deleting what the run itself stands on says nothing about the rest.
LEFT_OUT = {
    "/api/v1": ("streamChatEvents", "streamChatEventsLegacy", "deleteApiKey"),
    "/v1": (),
    "/pepper": (),
}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("door", LEFT_OUT)
def test_nothing_that_a_document_describes_breaks_it(server: LiveServer, tmp_path: Path, door: str) -> None:
    secrets = server.secrets
    keys = {
        "/api/v1": [f"Authorization: Bearer {secrets['api_key']}"],
        "/v1": [f"Authorization: Bearer {secrets['operator_token']}"],
        "/pepper": [f"X-Pepper-Key: {secrets['project_key']}", f"X-Pepper-Project: {secrets['project']}"],
    }[door]
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}{door}/openapi.json"]
    command += ["--checks", CHECKS, "--max-examples", "6", "--phases", "examples,coverage,fuzzing", "--seed", "7"]
    command += ["--request-timeout", "20", "--no-color", "--generation-database", "none", "--workers", "2"]
    for header in keys:
        command += ["-H", header]
    for name in LEFT_OUT[door]:
        command += ["--exclude-operation-id", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert re.search(r"(\d{2,}) generated, \1 passed", done.stdout), done.stdout[-500:]
