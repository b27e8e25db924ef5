"""Operations of the contract that this server does not have: they answer as what is not there."""

from __future__ import annotations

from typing import Final

from crocevia.asgi.http import Operation, Response
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp.caller import Request, VersionRule

_WORKSPACE: Final = "/workspaces/{workspace_id}"


async def absent(request: Request) -> Response:
    raise GatewayError(Reason.NOT_FOUND)


OPERATIONS = (
    Operation(
        "getWikiWebhookJwks",
        "GET",
        "/.well-known/wiki-webhook-jwks.json",
        absent,
        "Not on this server.",
        public=True,
        absent=True,
    ),
    *(
        Operation(name, method, path, absent, "Not on this server.", rule=VersionRule.CONTRACT_3, absent=True)
        for name, method, path in (
            ("uploadWikiSource", "POST", f"{_WORKSPACE}/files/sources"),
            ("getWikiSource", "GET", f"{_WORKSPACE}/files/sources/{{file_id}}"),
            ("downloadWikiSource", "GET", f"{_WORKSPACE}/files/sources/{{file_id}}/download"),
            ("withdrawWikiSource", "POST", f"{_WORKSPACE}/wiki/outbox/files"),
            ("createWikiInboxRun", "POST", f"{_WORKSPACE}/wiki/inbox/runs"),
            ("createWikiOutboxRun", "POST", f"{_WORKSPACE}/wiki/outbox/runs"),
            ("createWikiSyncRun", "POST", f"{_WORKSPACE}/wiki/syncs"),
            ("getWikiOperation", "GET", f"{_WORKSPACE}/wiki/operations/{{operation_id}}"),
            ("listWikiCategories", "GET", f"{_WORKSPACE}/wiki/categories"),
            ("getWikiCategoryIndex", "GET", f"{_WORKSPACE}/wiki/categories/{{category_id}}/index"),
        )
    ),
)
