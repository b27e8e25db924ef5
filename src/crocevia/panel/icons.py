"""Icons as SVG path data on a 24 px grid, drawn with strokes of the text's colour."""

from __future__ import annotations

from typing import Final

ICONS: Final[dict[str, str]] = {
    "mark": "M3 12h18M12 21V3M7 7l10 10M17 17v-4M17 17h-4",
    "overview": "M4 20V10M10 20V4M16 20v-7M21 20H3",
    "calls": "M4 6h16M4 12h10M4 18h13",
    "chat": "M4 5h16v11H10l-5 4v-4H4z",
    "waiting": "M6 3h12M6 21h12M7 3c0 6 10 6 10 12v6M17 3c0 6-10 6-10 12v6",
    "tool": "M14 6a4 4 0 0 1 5 5L9 21l-4-4L15 7M6 4l4 4",
    "file": "M6 3h8l4 4v14H6zM14 3v4h4",
    "folder": "M3 6h7l2 2h9v11H3z",
    "project": "M4 7h6l2 2h8v10H4z",
    "model": "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5",
    "agent": "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c1-4 4-6 8-6s7 2 8 6",
    "engine": "M5 8h14v10H5zM8 8V5M16 8V5M2 12h3M19 12h3M9 13h6",
    "key": "M14 10a5 5 0 1 0-4 4l2 2h2v2h2v2h4v-4z",
    "settings": "M4 7h9M19 7h1M4 17h1M11 17h9M16 4v6M8 14v6",
    "play": "M7 5l12 7-12 7z",
    "code": "M9 7l-5 5 5 5M15 7l5 5-5 5",
    "ok": "M5 13l4 4L19 7",
    "bad": "M6 6l12 12M18 6L6 18",
    "warn": "M12 4l9 16H3zM12 10v4M12 17v.5",
    "info": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v6M12 7v.5",
    "running": "M12 3a9 9 0 1 1-9 9",
    "copy": "M9 9h11v11H9zM5 15H4V4h11v1",
    "menu": "M4 7h16M4 12h16M4 17h16",
    "out": "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
    "light": "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2",
    "dark": "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
    "auto": "M3 5h18v12H3zM9 21h6M12 17v4",
    "plus": "M12 5v14M5 12h14",
}

FAVICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='%230b63ce' "
    "stroke-width='2.4'%3E%3Cpath d='M3 12h18M12 21V3M7 7l10 10'/%3E%3C/svg%3E"
)
"""The browser's icon of a page, as a URL."""
