"""The tests that failed in the last run of pytest, a line each, from the cache that `--last-failed` reads."""

from __future__ import annotations

import json
from pathlib import Path

if __name__ == "__main__":
    for cache in (Path(".pytest_cache"), Path("sdk/python/.pytest_cache")):
        kept = cache / "v/cache/lastfailed"
        if kept.is_file():
            for test in json.loads(kept.read_text(encoding="utf-8")):
                print(test)
