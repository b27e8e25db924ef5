from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crocevia.runtime.control.init import Initialised, init
from crocevia.storage.home import Home


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Initialised]:
    """One initialised home, made once: copied by tests, never changed."""
    home = Home(tmp_path_factory.mktemp("made") / "home")
    return home, init(home, "http://127.0.0.1:8111")


@pytest.fixture
def home(tmp_path: Path, made: tuple[Home, Initialised]) -> Home:
    shutil.copytree(made[0].path, tmp_path / "home")
    return Home(tmp_path / "home")
