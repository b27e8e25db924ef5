"""What every answer tells of the project's limits: remaining budget, remaining calls, when there is more again."""

from __future__ import annotations

from crocevia.asgi.types import Header, Headers
from crocevia.runtime.gateway import Gateway, ProjectSpec

_NANO = 1_000_000_000


class Standing:
    """Headers of one exchange; empty until it is known whose it is. Figures are those of the moment of asking."""

    __slots__ = ("_gateway", "project")

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.project: ProjectSpec | None = None

    def headers(self) -> Headers:
        """A limit that the project does not have has no headers."""
        project = self.project
        if project is None or (project.daily_budget_usd is None and project.hourly_limit is None):
            return []
        left = self._gateway.remaining(project)
        found: list[Header] = []
        if left.budget is not None:
            found += [
                (b"x-pepper-budget-limit", _dollars(left.budget)),
                (b"x-pepper-budget-remaining", _dollars(left.budget_left or 0)),
                (b"x-pepper-budget-reset", b"%d" % (left.budget_reset or 0)),
            ]
        if left.hourly is not None:
            found += [
                (b"x-pepper-limit", b"%d" % left.hourly),
                (b"x-pepper-limit-remaining", b"%d" % (left.hourly_left or 0)),
                (b"x-pepper-limit-reset", b"%d" % (left.hourly_reset or 0)),
            ]
        return found


def _dollars(amount: int) -> bytes:
    """Nano-dollars as USD with six decimals, rounded down: never more than there is."""
    micro = amount // 1000
    return b"%d.%06d" % divmod(micro, _NANO // 1000)
