from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crocevia.core.errors import Code, GatewayError
from crocevia.storage.home import (
    Home,
    engine_keys,
    holder,
    key_secret,
    serving,
    write_engine_keys,
    write_secret,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


def test_a_home_is_closed_to_others(home: Home) -> None:
    assert home.path.stat().st_mode & 0o077 == 0
    assert home.keys.stat().st_mode & 0o077 == 0


def test_a_secret_is_replaced_whole_and_closed_whatever_the_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        write_secret(home.keys / "a", b"one")
        write_secret(home.keys / "a", b"two")
    finally:
        os.umask(before)
    assert (home.keys / "a").read_bytes() == b"two"
    assert (home.keys / "a").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.keys.iterdir()] == ["a"]


def test_the_digest_secret_is_made_once_and_never_replaced_by_reading(home: Home) -> None:
    with pytest.raises(GatewayError) as caught:
        key_secret(home)
    assert caught.value.message.details == {"file": "digest.secret"}
    first = key_secret(home, create=True)
    assert len(first) == 32
    assert key_secret(home) == key_secret(home, create=True) == first


def test_engine_keys_come_back_and_a_damaged_file_is_said(home: Home) -> None:
    assert engine_keys(home) == {}
    write_engine_keys(home, {"a": "clé"})
    assert engine_keys(home) == {"a": "clé"}
    (home.keys / "engines.json").write_text('{"a": ')
    with pytest.raises(GatewayError) as caught:
        engine_keys(home)
    assert caught.value.code is Code.UNAVAILABLE


def test_one_process_serves_a_home_until_it_is_killed(home: Home) -> None:
    program = (
        "import sys, time; from pathlib import Path; from crocevia.storage.home import Home, serving\n"
        "with serving(Home(Path(sys.argv[1]))):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    assert holder(home) is None
    with subprocess.Popen([sys.executable, "-c", program, str(home.path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert holder(home) == child.pid
        with pytest.raises(GatewayError) as caught, serving(home):
            pass
        assert (caught.value.code, caught.value.message.reason) == (Code.CONFLICT, "home_in_use")
        assert caught.value.message.details == {"pid": str(child.pid)}
        child.kill()
        child.wait(10)
    assert holder(home) is None
    with serving(home):
        assert holder(home) == os.getpid()
    assert holder(home) is None
