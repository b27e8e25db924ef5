"""What every function of the control plane is handed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.limits import Quotas
from crocevia.documents.workers import Workers
from crocevia.policy.rate_limits import RateLimiter
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.control.api_keys import ApiKeys
from crocevia.runtime.files.workspace import WorkspaceFiles
from crocevia.runtime.signing_keys import Signer
from crocevia.storage.database import Database
from crocevia.storage.home import Home

if TYPE_CHECKING:
    from crocevia.runtime.image_generation.jobs import ImageJobs

MOST: int = 1000
"""Objects of one kind that one user may have: lists of them need no pages."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """One per server."""

    database: Database
    home: Home
    catalogue: CatalogueHolder
    keys: ApiKeys
    signer: Signer
    throttle: RateLimiter
    files: WorkspaceFiles
    """Of all workspaces."""
    limits: Quotas = Quotas()
    images: ImageJobs | None = None
    """Runs image jobs; None: this process runs none."""
    workers: Workers = msgspec.field(default_factory=Workers)
    clock: Callable[[], float] = time.time
    """Unix seconds."""


def open_control(
    database: Database,
    home: Home,
    catalogue: CatalogueHolder,
    *,
    images: ImageJobs | None = None,
    limits: Quotas = Quotas(),  # noqa: B008  # frozen
    workers: Workers | None = None,
) -> Control:
    """The control plane of a home. A change that another process makes is looked at with the next catalogue."""
    signer = Signer(home)
    keys = ApiKeys(database, home, signer)
    catalogue.subscribe(lambda before, after: keys.look_again())
    return Control(
        database=database,
        home=home,
        catalogue=catalogue,
        keys=keys,
        signer=signer,
        throttle=RateLimiter(),
        files=WorkspaceFiles(home.files, limits),
        limits=limits,
        images=images,
        workers=workers or Workers(),
    )


def missing(kind: str) -> GatewayError:
    """There is no such object, or it is somebody else's: nobody can tell which."""
    return GatewayError(Reason.OBJECT_MISSING, kind=kind)


def check_room(count: int) -> None:
    """Raises GatewayError(INVALID_REQUEST) when a user has MOST of a kind."""
    if count >= MOST:
        raise GatewayError(Reason.LIMIT_REACHED, param="name", limit=MOST)
