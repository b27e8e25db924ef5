"""How much may be kept."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """workspace_entries, workspace_bytes: files and folders of one workspace, and their bytes.
    attachment_bytes: of one file that a message carries. chat_attachments: of one chat.
    user_attachment_bytes: of all attachments of one user.
    """

    workspace_entries: int = 10_000
    workspace_bytes: int = 1024 * MIB
    attachment_bytes: int = 32 * MIB
    chat_attachments: int = 500
    user_attachment_bytes: int = 2048 * MIB


def spoken(size: int) -> str:
    """Bytes as people read them: whole MB, else KB, else bytes."""
    if size >= MIB:
        return f"{size // MIB} MB"
    return f"{size // KIB} KB" if size >= KIB else f"{size} bytes"
