"""Bring weights here: several sources, resumable, nothing believed before its digest matches."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.engines.llama import sources
from crocevia.engines.llama.weights import Weights, known, path_of

_NOTICE = """{title}
sha256 {sha256}

{notice}
These weights were made by others and are kept here unchanged under the Apache License, Version 2.0: you may use,
change and pass them on together with this notice and a copy of the licence, which is at
https://www.apache.org/licenses/LICENSE-2.0. They come without warranty of any kind.
"""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a pull is. `done` of `total` bytes; `note`: a sentence for the user (a source that failed), or None."""

    done: int
    total: int
    note: str | None = None


Report: TypeAlias = Callable[[Progress], None]


def pull(name: str, models_dir: Path, progress: Report | None = None) -> Path:
    """The verified file of the weights `name` (empty: the default), downloaded if it is not there yet.

    Raises GatewayError: NOT_FOUND for an unknown name; CONFLICT while another pull of the same weights runs;
    UNAVAILABLE when no source had it, with each one's reason. What arrived is kept for the next try.
    """
    weights = known(name)
    return fetch(weights, models_dir, sources.of(weights), progress or (lambda _: None))


def fetch(weights: Weights, models_dir: Path, candidates: Sequence[sources.Source], report: Report) -> Path:
    """`pull` from these sources, in this order."""
    stage = models_dir / f"{weights.sha256}.parts"
    stage.mkdir(parents=True, exist_ok=True)
    target = path_of(weights, models_dir)
    with _alone(stage):
        if not (target.is_file() and sources.digest_of(target) == weights.sha256):
            target.unlink(missing_ok=True)
            _check_space(weights, stage)
            _first_good(weights, stage, candidates, report).replace(target)
        _write_notice(weights, target)
        shutil.rmtree(stage)
    report(Progress(done=weights.size, total=weights.size))
    return target


def _first_good(weights: Weights, stage: Path, candidates: Sequence[sources.Source], report: Report) -> Path:
    reasons: list[str] = []
    for source in candidates:
        try:
            found = source.fetch(stage, lambda done: report(Progress(done=min(done, weights.size), total=weights.size)))
            if sources.digest_of(found) == weights.sha256:
                return found
            found.unlink()
            reason = "the file has a wrong digest and was deleted"
        except sources.SourceFailed as failure:
            reason = str(failure)
        except OSError as error:
            raise GatewayError(Reason.EMBEDDED_PULL_DISK, reason=error.strerror or "I/O error") from None
        reasons.append(f"{source.name}: {reason}")
        report(Progress(done=0, total=weights.size, note=reasons[-1]))
    raise GatewayError(Reason.EMBEDDED_PULL_FAILED, name=weights.name, reasons="; ".join(reasons) or "-")


def _check_space(weights: Weights, stage: Path) -> None:
    held = sum(path.stat().st_size for path in stage.rglob("*") if path.is_file())
    # Parts and the joined file lie side by side for a moment.
    needed = 2 * weights.size - held
    free = shutil.disk_usage(stage).free
    if free < needed:
        raise GatewayError(Reason.EMBEDDED_PULL_SPACE, needed=needed // 2**20 + 1, free=free // 2**20)


def _write_notice(weights: Weights, target: Path) -> None:
    text = _NOTICE.format(title=weights.title, sha256=weights.sha256, notice=weights.notice)
    target.with_suffix(".NOTICE.txt").write_text(text, encoding="utf-8")


@contextmanager
def _alone(stage: Path) -> Iterator[None]:
    """One pull per staging folder; the lock goes with the process, however it ends."""
    if sys.platform == "win32":  # two pulls at once are not kept apart there; the digest still decides
        yield
        return
    import fcntl

    handle = os.open(stage, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise GatewayError(Reason.EMBEDDED_PULL_RUNNING) from None
    try:
        yield
    finally:
        os.close(handle)
