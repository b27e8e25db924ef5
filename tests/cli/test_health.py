from __future__ import annotations

import pytest

from crocevia.cli.findings import Finding
from crocevia.cli.health import streaming
from crocevia.cli.i18n import Line, lines
from crocevia.cli.wire import Opened, Read
from crocevia.core.texts import sentences

SSE = {"content-type": "text/event-stream; charset=utf-8"}


def reads(*pieces: tuple[float, list[str]], data: bytes = b"") -> list[Read]:
    return [Read(at, data, [(name, {}) for name in names]) for at, names in pieces]


STEADY = reads(*((0.1 * number, ["delta"]) for number in range(1, 12)), (1.2, ["done"]))
CASES = {
    "a steady stream": (Opened(200, SSE, 0.1), STEADY, set()),
    "a quick engine in one read": (Opened(200, SSE, 0.01), reads((0.02, ["delta"] * 5 + ["done"])), set()),
    "a slow engine with one piece": (Opened(200, SSE, 0.1), reads((3.0, ["delta", "done"])), set()),
    "held back to the end": (Opened(200, SSE, 3.0), reads((3.0, ["delta"] * 9 + ["done"])), {"doctor_stream_buffered"}),
    "held back in two reads": (
        Opened(200, SSE, 3.0),
        reads((3.0, ["delta"] * 9), (3.01, ["done"])),
        {"doctor_stream_buffered"},
    ),
    "compressed on the way": (
        Opened(200, SSE | {"content-encoding": "gzip"}, 0.1),
        STEADY,
        {"doctor_stream_proxied"},
    ),
    "measured on the way": (Opened(200, SSE | {"content-length": "9"}, 0.1), STEADY, {"doctor_stream_proxied"}),
    "cut": (Opened(200, SSE, 0.1), STEADY[:-1], {"doctor_stream_cut"}),
    "empty": (Opened(200, SSE, 0.1), [], {"doctor_stream_cut"}),
    "an error": (Opened(200, SSE, 0.1), reads((0.1, ["delta", "error"])), {"doctor_stream_error"}),
    "silence without a ping": (
        Opened(200, SSE, 0.1),
        reads((0.1, ["delta"]), (40.0, ["delta"]), (40.5, ["done"])),
        {"doctor_stream_silent"},
    ),
    "a login page": (Opened(200, {"content-type": "text/html"}, 0.1), [], {"doctor_stream_kind"}),
    "a wrong key": (Opened(401, {"content-type": "application/json"}, 0.1), [], {"doctor_stream_status"}),
}


def key_of(finding: Finding) -> str:
    assert isinstance(finding.message, Line)
    return finding.message.key


@pytest.mark.parametrize("case", CASES)
def test_what_a_caller_saw_is_judged(case: str) -> None:
    head, pieces, expected = CASES[case]
    wrong = [finding for finding in streaming(head, pieces) if finding.level != "ok"]
    assert {key_of(finding) for finding in wrong} == expected
    assert all(finding.hint is not None for finding in wrong), "what is wrong comes with what to do"


def test_pings_are_counted() -> None:
    pieces = [*reads((15.0, []), (30.0, []), data=b": ping\n\n"), *reads((31.0, ["delta"]), (31.2, ["done"]))]
    (pace,) = [finding for finding in streaming(Opened(200, SSE, 0.1), pieces) if finding.level == "ok"]
    assert pace.message.details["pings"] == 2


@pytest.mark.parametrize("language", ["en", "it"])
def test_every_hint_belongs_to_a_sentence(language: str) -> None:
    own = lines("it" if language == "it" else "en")
    known = own.keys() | sentences("en").keys()
    orphans = [key for key in own if key.startswith("hint_") and key.removeprefix("hint_") not in known]
    assert set(orphans) <= {"hint_doctor_weights"}
