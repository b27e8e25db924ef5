"""What the whole door works with."""

from __future__ import annotations

import msgspec

from crocevia.doors.responses.targets import Targets
from crocevia.runtime.answers_store import Responses
from crocevia.runtime.control.operators import Operators
from crocevia.runtime.gateway import Gateway, Limits
from crocevia.runtime.sealing import Sealer
from crocevia.runtime.turns.run_service import RunService


class Services(msgspec.Struct, frozen=True):
    """Handed to every endpoint of the door."""

    gateway: Gateway
    runs: RunService
    operators: Operators
    targets: Targets
    responses: Responses
    sealer: Sealer
    file_limits: Limits
    """Of what callers attach."""
