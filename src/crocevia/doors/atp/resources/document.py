"""The door's own description, for programs and for people."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import cache
from typing import Any

from crocevia.asgi.document import PAGE_HEADERS
from crocevia.doors.atp.operation import Answer, Operation, Request, Stream


def describing(table: Sequence[Operation]) -> tuple[Operation, ...]:
    """The operations that describe a table, themselves included."""

    @cache
    def content() -> dict[str, Any]:
        from crocevia.doors.atp.document import document  # read seldom, made once

        return document((*table, *rows))

    async def openapi(request: Request) -> Answer:
        return Answer(200, content())

    async def page(request: Request) -> Stream:
        from crocevia.doors.atp.document import page

        return Stream(_once(page(content())), PAGE_HEADERS)

    rows = (
        Operation(
            "getDocument",
            "GET",
            "/openapi.json",
            openapi,
            "This description, as OpenAPI 3.1.",
            result=dict[str, Any],
            bare=True,
            public=True,
        ),
        Operation(
            "readDocument",
            "GET",
            "/docs",
            page,
            "This description, as a page to read.",
            produces="text/html",
            public=True,
        ),
    )
    return rows


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
