"""Why an answer ended, from a provider's word for it. A word that nobody knows is never success."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from crocevia.core.events import Stopped, StopReason
from crocevia.engines.upstream import errors

FAILURES: Final = frozenset(
    {
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "error",
        "failed",
        "failure",
        "insufficient_system_resource",
        "internal_error",
        "malformed_function_call",
        "network_error",
        "server_error",
        "timeout",
    }
)
"""Words, in any dialect, for an answer that did not come about."""

_WORD: Final = re.compile(r"[A-Za-z][\w.-]{0,39}", re.ASCII)


def stopped(word: str | None, known: Mapping[str, StopReason], *, calls: bool, refused: bool = False) -> Stopped:
    """The end that `word` means, whatever its case; no word at all, where the provider said that it was the end: END.

    calls: the answer asks for tools; some servers call that a plain end. refused: it has already said so.
    Raises GatewayError for a word of failure.
    """
    spelled = (word or "").lower()
    if spelled in FAILURES:
        raise errors.from_stream({"code": spelled})
    if refused:
        return Stopped(StopReason.REFUSAL)
    reason = known.get(spelled, StopReason.INCOMPLETE) if spelled else StopReason.END
    if reason is StopReason.INCOMPLETE:
        return Stopped(reason, spelled if _WORD.fullmatch(spelled) else "")
    if reason in (StopReason.END, StopReason.TOOL_USE):
        reason = StopReason.TOOL_USE if calls else StopReason.END
    return Stopped(reason)
