"""A workspace is never fuller than it may be, and its count is what a walk would find."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError
from crocevia.core.limits import Quotas
from crocevia.runtime.files.quota import measure
from crocevia.runtime.files.workspace import WorkspaceFiles

SPACE = "wsp_01j5abcdefghjkmnpqrstvwxyz"
OTHER = "wsp_01j5abcdefghjkmnpqrstvwxy0"
PATHS = ["/a", "/b", "/d/a", "/d/b", "/d/e/f", "/wiki/x"]
STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "replace", "delete", "drop"]), st.sampled_from(PATHS), st.integers(1, 9))
)


def step(files: WorkspaceFiles, what: str, path: str, size: int) -> None:
    doing: dict[str, Callable[[], object]] = {
        "create": lambda: files.create(SPACE, path, "x" * size),
        "replace": lambda: files.replace(SPACE, path, "x" * size),
        "delete": lambda: files.delete(SPACE, path),
        "drop": lambda: files.delete(SPACE, path.rpartition("/")[0], recursive=True),
    }
    with suppress(GatewayError):
        doing[what]()


@given(STEPS)
@settings(deadline=None)
def test_what_is_counted_is_what_is_there_and_never_too_much(steps: list[tuple[str, str, int]]) -> None:
    with TemporaryDirectory() as folder:
        files = WorkspaceFiles(Path(folder), Quotas(workspace_entries=5, workspace_bytes=20))
        for what, path, size in steps:
            step(files, what, path, size)
            there = measure(Path(folder) / SPACE)
            assert there.entries <= 5 and there.bytes <= 20
            with files._quota.change(SPACE):
                pass
            assert files._quota._held[SPACE] == there


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(GatewayError) as info:
        work()
    assert info.value.code is Code.INVALID_REQUEST
    return info.value.message.reason


def test_folders_count_too_and_each_workspace_for_itself(tmp_path: Path) -> None:
    files = WorkspaceFiles(tmp_path, Quotas(workspace_entries=3))
    files.create(SPACE, "/a/b/c", "x")
    assert refused(lambda: files.create(SPACE, "/d", "x")) == "workspace_entries"
    assert not (tmp_path / SPACE / "d").exists()
    files.create(OTHER, "/d", "x")
    files.delete(SPACE, "/a/b/c")
    files.create(SPACE, "/a/b/d", "x")
    assert refused(lambda: files.create(SPACE, "/e/f", "x")) == "workspace_entries"
    assert not (tmp_path / SPACE / "e").exists()


def test_room_that_somebody_made_on_the_disk_is_found(tmp_path: Path) -> None:
    files = WorkspaceFiles(tmp_path, Quotas(workspace_bytes=10))
    files.create(SPACE, "/a", "x" * 10)
    assert refused(lambda: files.create(SPACE, "/b", "x")) == "workspace_bytes"
    (tmp_path / SPACE / "a").unlink()
    files.create(SPACE, "/b", "x")
    again = WorkspaceFiles(tmp_path, Quotas(workspace_bytes=10))
    assert refused(lambda: again.create(SPACE, "/c", "x" * 10)) == "workspace_bytes"


def test_many_at_once_take_exactly_the_room_there_is(tmp_path: Path) -> None:
    files = WorkspaceFiles(tmp_path, Quotas(workspace_entries=20))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: step(files, "create", f"/{n}", 1), range(60)))
    assert measure(tmp_path / SPACE).entries == 20
    assert list((tmp_path / "incoming").iterdir()) == []
