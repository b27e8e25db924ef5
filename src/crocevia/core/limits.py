"""How much may be kept."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """Quotas: how much may be kept."""

    workspace_entries: int = 10_000
    """Files and folders of one workspace."""
    workspace_bytes: int = 1024 * MIB
    """Of all files of one workspace."""
    attachment_bytes: int = 32 * MIB
    """Of one file that a message carries."""
    chat_attachments: int = 500
    """Attachments of one chat."""
    user_attachment_bytes: int = 2048 * MIB
    """Of all attachments of one user."""


def spoken(size: int) -> str:
    """Bytes as people read them: whole MB, else KB, else bytes."""
    if size >= MIB:
        return f"{size // MIB} MB"
    return f"{size // KIB} KB" if size >= KIB else f"{size} bytes"
