"""The child process: llama.cpp's own server on a loopback port, for as long as its parent lives.

Protocol: one JSON line of `ChildSettings` on stdin, one JSON line `{"port": N}` on stdout once the model is loaded
(or `{"error": WORD}` and exit status 1). Standard input then stays open; its end means that the parent is gone, however
it went, and the child exits at once. Logs of the native code go to standard error, which the parent discards.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import msgspec


class ChildSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is told."""

    model: str
    api_key: str
    context: int
    """Tokens of prompt and answer together."""
    threads: int
    """For generation; prompts use `batch_threads`."""
    batch_threads: int
    cache_mib: int
    memory: str
    """A folder in which the state of the model can be kept over a restart."""


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever native code prints must not end up between our lines
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=ChildSettings)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        server = _serve(settings)
    except ImportError:
        _report(answers, {"error": "runtime_missing"})
        os._exit(1)
    except RuntimeError:
        _report(answers, {"error": "load_failed"})
        os._exit(1)
    _report(answers, {"port": int(server.listening_address.rsplit(":", 1)[1])})
    threading.Event().wait()


def _serve(settings: ChildSettings) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.model
    params.n_ctx = settings.context
    params.n_parallel = 1
    params.n_threads_http = 4
    params.cpuparams.n_threads = settings.threads
    params.cpuparams.poll = 0  # spinning threads starve each other on a busy machine
    params.cpuparams_batch.n_threads = settings.batch_threads
    params.cpuparams_batch.poll = 0
    params.cache_ram_mib = settings.cache_mib
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings.api_key]
    params.ui = False
    params.slot_save_path = os.path.join(settings.memory, "")  # noqa: PTH118  # the separator at the end is needed
    return xllamacpp.Server(params)


def _report(answers: int, line: dict[str, object]) -> None:
    os.write(answers, msgspec.json.encode(line) + b"\n")


def _exit_with_parent() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
