"""The official client's files, attachments and pictures, sync and async, on a live server."""

from __future__ import annotations

from pathlib import Path

import pytest

from crocevia.storage import chats
from crocevia.storage.database import immediate
from tests.live import live_server

from .environment import drive, python_with

DRIVER = Path(__file__).with_name("drive_media.py")
DECLARATION = """
[[engines]]
name = "embedded"
kind = "scripted"

[[models]]
name = "brush"
engine = "embedded"
upstream = "image"
"""
EVERY = {
    *("indexWorkspaceFiles", "createWorkspaceFile", "updateWorkspaceFile", "deleteWorkspaceFile"),
    *("downloadWorkspaceFile", "convertWorkspaceFileToPdf"),
    *("uploadChatAttachment", "listChatAttachments", "getChatAttachment", "deleteChatAttachment"),
    *("retryChatAttachment", "downloadChatAttachment"),
    *("createImageGeneration", "getImageGeneration", "uploadImage", "listImageModels"),
}


@pytest.mark.clients
@pytest.mark.timeout(400)
def test_the_official_client_drives_files_attachments_and_pictures(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert request.config.cache is not None
    python = python_with("1.0.0a5", request.config.cache.mkdir("envai-teams-sdk-1.0.0a5"))
    with live_server(tmp_path / "home", declaration=DECLARATION) as server:
        secrets = server.secrets
        with immediate(server.home / "crocevia.db") as tx:
            chat = chats.add(tx, secrets["user_id"], secrets["workspace_id"], secrets["team_id"], 1_790_000_000.0)
        called = drive(python, DRIVER, server.url, secrets["api_key"], secrets["workspace_id"], chat.id)
    assert called["sync"] == called["async"]
    assert set(called["sync"]) >= EVERY
