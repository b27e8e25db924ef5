"""The default ledger: one winner, forward only, private."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

import envai_client as sdk
from envai_client.ledger import default_ledger_path


def test_of_many_claims_at_once_one_wins(tmp_path: Path) -> None:
    ledgers = [sdk.SqliteLedger(tmp_path / "l") for _ in range(4)]
    won: list[int] = []

    def claim(number: int) -> None:
        if ledgers[number % 4].claim("c", "t", "tool", "f", str(number)) is None:
            won.append(number)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    record = ledgers[0].get("c", "t")
    assert record is not None
    assert [record.owner] == [str(number) for number in won]
    for ledger in ledgers:
        ledger.close()


def test_the_ledger_moves_forward_only(tmp_path: Path) -> None:
    ledger = sdk.SqliteLedger(tmp_path / "l")
    ledger.resolve("c", "t", "observed")
    known = ledger.claim("c", "t", "tool", "f", "me")
    assert known is not None
    assert known.state == "resolved"
    assert ledger.claim("c", "u", "tool", "f", "me") is None
    ledger.finish("c", "u", "secret output", False)
    ledger.finish("c", "u", "another", True)
    assert (ledger.get("c", "u") or known).output == "secret output"
    assert ledger.forget(-1) == 1
    assert ledger.get("c", "t") is None
    ledger.resolve("c", "u", "delivered")
    assert (ledger.get("c", "u") or known).output is None, "a delivered output is not kept"
    assert "secret" not in repr(known)
    ledger.close()


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_only_its_owner_reads_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = sdk.EnvaiClient(base_url="http://127.0.0.1:9")
    client.ledger.unsettled()
    assert stat.S_IMODE(default_ledger_path().stat().st_mode) == 0o600
    client.ledger.close()  # type: ignore[attr-defined]
