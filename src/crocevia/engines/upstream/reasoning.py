"""How much a model that reasons is asked to: what its caller wants, within what its operator declared."""

from __future__ import annotations

from typing import Final

from crocevia.core.calls import Effort, ModelRequest, ReasoningMode

_DEFAULT: Final[Effort] = "medium"
_THREE: Final[dict[Effort, str]] = {"none": "low", "minimal": "low", "xhigh": "high"}


def mode(request: ModelRequest) -> ReasoningMode:
    """Off where its caller wants none and it need not; a model that is not declared to reason is never asked to."""
    return "off" if request.reasoning == "on" and request.options.reasoning.effort == "none" else request.reasoning


def effort(request: ModelRequest) -> Effort:
    """As the caller said, else a medium one."""
    return request.options.reasoning.effort or _DEFAULT


def of_three(request: ModelRequest) -> str:
    """The nearest of `low`, `medium` and `high`, which every server knows."""
    wanted = effort(request)
    return _THREE.get(wanted, wanted)
