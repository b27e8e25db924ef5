"""The page of settings says what the settings are."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.blocks import ROOT

SCRIPT = ROOT / "scripts" / "make_settings_page.py"


def test_the_page_of_settings_is_what_its_script_writes_and_every_setting_is_explained() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
