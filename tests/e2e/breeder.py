"""Whole servers without the second that starting Python costs: forks of one process that has imported them.

Each is a process of its own, with its own files, sockets and threads, started by the command line's own `main`.
"""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tests.live import clean_env


class Breeder:
    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen([sys.executable, "-m", __name__], stdin=theirs, env=clean_env())
        self._control.settimeout(60)
        self._ask("ready")

    def start(self, arguments: list[str], log: Path) -> int:
        """The process id of `crocevia ARGUMENTS`, which writes to `log`."""
        return self._ask("start", arguments, str(log))

    def wait(self, pid: int) -> int:
        """How it ended, as `os.waitpid` puts it."""
        return self._ask("wait", pid)

    def close(self) -> None:
        self._control.close()
        self._process.wait(10)

    def _ask(self, *question: object) -> int:
        self._control.send(json.dumps(question).encode())
        return int(self._control.recv(100))


def _import_everything() -> None:
    import crocevia

    for module in pkgutil.walk_packages(crocevia.__path__, "crocevia."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # what is not installed is not used
                import_module(module.name)
    for name in ("uvicorn.lifespan.on", "uvicorn.loops.asyncio", "encodings.idna", "sqlalchemy.dialects.sqlite"):
        import_module(name)


def _serve(arguments: list[str], log: str) -> NoReturn:
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.closerange(3, 256)
        from crocevia.cli import main

        main(arguments)
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _breed() -> None:
    control = socket.socket(fileno=os.dup(0))
    _import_everything()
    while question := control.recv(65_536):
        what, *given = json.loads(question)
        if what == "start":
            pid = os.fork()
            if pid == 0:
                control.close()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                _serve(*given)
            answer = pid
        else:
            answer = os.waitpid(given[0], 0)[1] if what == "wait" else 0
        control.send(str(answer).encode())


if __name__ == "__main__":
    _breed()
