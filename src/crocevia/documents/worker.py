"""A child process that reads one hostile file and dies: `python -I -m crocevia.documents.worker`.

It takes a line of JSON (`Job`) and the file's bytes on standard input, and answers with one MessagePack `Outcome` on
standard output. It gives up its own rights first: memory, CPU time, writing files, opening more than a few.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from crocevia.core.errors import Reason
from crocevia.documents.jobs import Job, Outcome, Refusal

Work = Callable[[bytes, dict[str, int]], Any]


def main() -> int:
    """Do one job. The exit status is 0 whenever an `Outcome` was written."""
    answer = os.dup(1)
    os.dup2(2, 1)  # a library that prints must not write into the answer
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    work = _load(job.operation)
    _give_up_rights(job)
    data = sys.stdin.buffer.read()
    try:
        outcome = Outcome(result=msgspec.Raw(msgspec.msgpack.encode(work(data, job.options))))
    except Refusal as refusal:
        outcome = Outcome(refusal=refusal.reason, numbers=refusal.numbers)
    except MemoryError:
        outcome = Outcome(refusal=Reason.FILE_HEAVY)
    with os.fdopen(answer, "wb") as out:
        out.write(msgspec.msgpack.encode(outcome))
    return 0


def _load(operation: str) -> Work:
    # Libraries come in before the rights go: importing opens files and maps memory.
    if operation == "image_convert":
        from crocevia.documents.worker_image import convert

        return convert
    if operation.startswith("typeset_"):
        from crocevia.documents.worker_typeset import typeset_markdown, typeset_text

        return typeset_markdown if operation == "typeset_markdown" else typeset_text
    from crocevia.documents.worker_pdf import check, read

    return check if operation == "pdf_check" else read


def _give_up_rights(job: Job) -> None:
    if sys.platform == "win32":  # the parent's clock is the only limit there
        return
    import resource

    # The timer counts from now, so that a slow start costs a file nothing; the limit is for whoever stops the timer.
    signal.setitimer(signal.ITIMER_PROF, job.seconds)
    most = math.ceil(time.process_time() + job.seconds + job.pages_seconds) + 1
    limits = {
        resource.RLIMIT_CPU: most,
        resource.RLIMIT_AS: job.memory,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 16,
    }
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    # No interpreter shutdown: destructors of a hostile document have nothing to add.
    status = main()
    sys.stderr.flush()
    os._exit(status)
