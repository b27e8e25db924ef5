"""Files stay inside their workspace, whatever their paths say and whatever the disk becomes meanwhile."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.runtime.files.paths import split
from crocevia.runtime.files.workspace import MEMORY, WorkspaceFiles

SPACE = "wsp_01j5abcdefghjkmnpqrstvwxyz"
WRONG = (
    "",
    "a",
    "a/b",
    "./a",
    "../a",
    "//",
    "//a",
    "/a//b",
    "/a/",
    "/.",
    "/./a",
    "/a/.",
    "/..",
    "/../a",
    "/a/..",
    "/a/../b",
    "/a/../../b",
    "/....//a",
    "/a..b",
    "/a\\b",
    "\\a",
    "/\\..\\a",
    "C:\\a",
    "/a\0b",
    "/\0",
    "/a\nb",
    "/a\rb",
    "/a\tb",
    "/a\x7f",
    "/a\x85b",
    "/a\u2028b",
    "/a\u2029",
    "/\ud800",
    "file:///etc/passwd",
    "~/a",
    "/" + "a" * 1024,
    "/" + "a" * 256,
    "/" + "é" * 128,
    "/" + "/".join("a" * 65),
    "/a/ .. /../b",
)
LEADING_OUT = ("/out", "/out/secret", "/wiki/out", "/wiki/out/secret", "/loop", "/loop/loop", "/link.md", "/fifo")
OPERATIONS: dict[str, Callable[[WorkspaceFiles, str], object]] = {
    "read": lambda files, path: files.read(SPACE, path),
    "open": lambda files, path: files.open(SPACE, path)[1].close(),
    "stat": lambda files, path: files.stat(SPACE, path),
    "entries": lambda files, path: files.entries(SPACE, path),
    "create": lambda files, path: files.create(SPACE, path, "x"),
    "replace": lambda files, path: files.replace(SPACE, path, "x"),
    "write": lambda files, path: files.write(SPACE, path, "x"),
    "delete": lambda files, path: files.delete(SPACE, path),
    "delete all": lambda files, path: files.delete(SPACE, path, recursive=True),
}


@pytest.fixture
def files(tmp_path: Path) -> WorkspaceFiles:
    return WorkspaceFiles(tmp_path / "files")


def everything(top: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in top.rglob("*")
        if "incoming" not in path.name
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_takes_a_path_that_cannot_be(files: WorkspaceFiles, tmp_path: Path, name: str) -> None:
    files.create(SPACE, "/b", "kept")
    before = everything(tmp_path)
    for path in WRONG:
        with pytest.raises(GatewayError) as caught:
            OPERATIONS[name](files, path)
        assert (caught.value.code, caught.value.param) == (Code.INVALID_REQUEST, "path"), path
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_follows_a_link(files: WorkspaceFiles, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    files.create(SPACE, "/wiki/a", "kept")
    home = tmp_path / "files" / SPACE
    (home / "out").symlink_to(outside)
    (home / "wiki" / "out").symlink_to(outside)
    (home / "loop").symlink_to("loop")
    (home / "link.md").symlink_to(outside / "secret")
    os.mkfifo(home / "fifo")
    before = everything(tmp_path)
    for path in LEADING_OUT:
        with pytest.raises(GatewayError) as caught:
            OPERATIONS[name](files, path)
        assert caught.value.code in (Code.NOT_FOUND, Code.CONFLICT), path
    assert everything(tmp_path) == before
    assert [entry.name for entry in files.entries(SPACE, "/")] == ["skills", "wiki"]
    assert files.search(SPACE, "/", "secret") == []


@pytest.mark.parametrize(
    "space", ["../x", "..", ".", "", "wsp_", "x/y", "/etc", "wsp_01j5abcdefghjkmnpqrstvwxy/", "a\0"]
)
def test_a_workspace_id_is_never_a_way_out(files: WorkspaceFiles, tmp_path: Path, space: str) -> None:
    for path in ("/a", "/wiki/a"):
        with pytest.raises(GatewayError):
            files.create(space, path, "x")
        with pytest.raises(GatewayError):
            files.read(space, path)
    assert everything(tmp_path) == {"files": None} or everything(tmp_path) == {}


def test_a_folder_that_turns_into_a_link_while_we_write_leads_nowhere(files: WorkspaceFiles, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("outside")
    files.create(SPACE, "/d/a", "inside")
    inside = tmp_path / "files" / SPACE
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (inside / "d").rename(inside / "e")
            with suppress(FileExistsError):  # a writer may have made the folder anew
                (inside / "d").symlink_to(outside)
                (inside / "d").unlink()
            while (inside / "e").exists():
                try:
                    (inside / "e").rename(inside / "d")
                except OSError:
                    shutil.rmtree(inside / "d", ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(100):
            with suppress(GatewayError):
                files.write(SPACE, "/d/a", "inside")
            with suppress(GatewayError):
                files.create(SPACE, f"/d/n{number}", "inside")
            with suppress(GatewayError):
                files.delete(SPACE, f"/d/n{number}", recursive=True)
            with suppress(GatewayError):
                assert files.read(SPACE, "/d/a") == "inside"
    finally:
        stop.set()
        thread.join()
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"a": "outside"}


def test_names_that_look_the_same_are_the_same(files: WorkspaceFiles) -> None:
    composed, decomposed = "/caff\u00e8.md", "/caffe\u0300.md"
    files.create(SPACE, decomposed, "uno")
    assert files.read(SPACE, composed) == "uno"
    with pytest.raises(GatewayError) as caught:
        files.create(SPACE, composed, "due")
    assert caught.value.code is Code.CONFLICT
    assert [entry.name for entry in files.entries(SPACE, "/")] == ["caff\u00e8.md", "skills", "wiki"]


def test_a_file_is_created_once_whoever_asks_at_the_same_time(files: WorkspaceFiles, tmp_path: Path) -> None:
    made: list[int] = []
    ready = threading.Barrier(8)

    def create(number: int) -> None:
        ready.wait()
        try:
            files.create(SPACE, "/a/b", str(number))
        except GatewayError as error:
            assert error.code is Code.CONFLICT
        else:
            made.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert files.read(SPACE, "/a/b") == str(made[0])
    assert list((tmp_path / "files" / "incoming").iterdir()) == []


def test_a_folder_goes_whole_and_only_when_asked(files: WorkspaceFiles, tmp_path: Path) -> None:
    for path in ("/a/b/c", "/a/d", "/wiki/p"):
        files.create(SPACE, path, "x")
    with pytest.raises(GatewayError) as caught:
        files.delete(SPACE, "/a")
    assert caught.value.message.reason == "folder_not_empty"
    files.delete(SPACE, "/a", recursive=True)
    for path in ("/", "/wiki", "/skills"):
        with pytest.raises(GatewayError) as caught:
            files.delete(SPACE, path, recursive=True)
        assert caught.value.message.reason == "folder_protected"
    assert [entry.name for entry in files.entries(SPACE, "/")] == ["skills", "wiki"]
    assert list((tmp_path / "files" / "incoming").iterdir()) == []


def test_the_deepest_path_that_is_taken_can_be_deleted(files: WorkspaceFiles) -> None:
    files.create(SPACE, "/" + "/".join("a" * 64), "x")
    files.delete(SPACE, "/a", recursive=True)
    with pytest.raises(GatewayError):
        files.stat(SPACE, "/a")


def test_text_has_limits(files: WorkspaceFiles) -> None:
    files.create(SPACE, "/whole", "x" * 1_048_576)
    files.create(SPACE, "/lines", "x\n" * 1000)
    files.create(SPACE, MEMORY, "é" * 12_000)
    for path, text in (
        ("/a", ""),
        ("/a", "x\n" * 1000 + "x"),
        ("/a", "\ud800"),
        (MEMORY, "x" * 12_001),
        ("/MEMORY.md", "\n" * 1001),
    ):
        with pytest.raises(GatewayError) as caught:
            files.write(SPACE, path, text)
        assert (caught.value.code, caught.value.param) == (Code.INVALID_REQUEST, "content")
    for text in ("x" * 1_048_577, "é" * 524_289):
        with pytest.raises(GatewayError) as caught:
            files.write(SPACE, "/a", text)
        assert caught.value.reason is Reason.FILE_TOO_LARGE


def test_a_list_ends_at_500(files: WorkspaceFiles) -> None:
    for number in range(510):
        files.create(SPACE, f"/d/{number:03}", "x")
    names = [entry.name for entry in files.entries(SPACE, "/d")]
    assert names == [f"{number:03}" for number in range(500)]


@given(st.text(max_size=40).map(lambda text: f"/{text}"))
def test_a_path_that_is_taken_stays_below(path: str) -> None:
    try:
        names = split(path)
    except GatewayError:
        return
    assert all(name not in ("", ".", "..") and "/" not in name and "\0" not in name for name in names)
    assert split("/" + "/".join(names)) == names


def test_what_an_earlier_process_left_is_swept(files: WorkspaceFiles, tmp_path: Path) -> None:
    left = tmp_path / "files" / "incoming" / "left"
    left.parent.mkdir(parents=True)
    left.write_text("x")
    files.sweep()
    assert not left.exists()
