"""Each door's OpenAPI document is valid, served, and readable as a page that asks nothing of anybody."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.live import LiveServer, live_server

# The embedded engine's place is taken by the scripted one, and one model paints.
DECLARATION = """
[[engines]]
name = "embedded"
kind = "scripted"

[[models]]
name = "brush"
engine = "embedded"
upstream = "image"
"""
SETTINGS = (
    "[gateway.http.endpoints.responses]\nenabled = true\n[gateway.http.endpoints.chatCompletions]\nenabled = true\n"
)
DOCUMENTS = {"/api/v1": 40, "/v1": 8, "/pepper": 5}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    home: Path = tmp_path_factory.mktemp("openapi") / "home"
    with live_server(home, declaration=DECLARATION, settings=SETTINGS) as running:
        yield running


def fetch(url: str) -> tuple[bytes, Any]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read(), answer.headers


@pytest.mark.parametrize("door", DOCUMENTS)
def test_a_document_is_valid_and_whole(server: LiveServer, door: str) -> None:
    import json

    body, headers = fetch(f"{server.url}{door}/openapi.json")
    assert headers["content-type"] == "application/json"
    content = json.loads(body)
    OpenAPIV31SpecValidator(content).validate()
    assert content["openapi"] == "3.1.0"
    operations = [operation for item in content["paths"].values() for operation in item.values()]
    assert len(operations) >= DOCUMENTS[door]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["description"] for operation in operations)


@pytest.mark.parametrize("door", DOCUMENTS)
def test_a_page_asks_nothing_of_anybody(server: LiveServer, door: str) -> None:
    body, headers = fetch(f"{server.url}{door}/docs")
    text = body.decode()
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script" not in policy
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert f"{door}/openapi.json" in text
    assert not re.search(r"<(script|link|img|iframe|object|form)\b|url\(|@import|\bon\w+=", text)
    assert all(not target.startswith(("http", "//")) for target in re.findall(r'(?:href|src)="([^"]*)"', text))
