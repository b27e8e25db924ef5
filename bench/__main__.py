"""`python -m bench`: CPU per request and per token of `crocevia serve`, beside nginx proxying the same mock."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import uvloop

from .against import compare
from .figures import Result
from .load import Measured, load
from .processes import OWN_CPUS, SERVER_CPU, busy_seconds, cpu_seconds, pss_mib, tree
from .report import page
from .servers import Target, crocevia, nginx, peer, upstream

FLOOR = "nginx (proxy only)"
WHOLE = (1, 16, 64)
STREAMED = (1, 64, 256)


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second per figure: to see that it works, not to quote")
    parser.add_argument("--seconds", type=float, default=5, help="per figure (streams: twice)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens per stream")
    parser.add_argument("--spacing-ms", type=float, default=10, help="between tokens")
    parser.add_argument("--engine", choices=["openai-chat", "anthropic"], default="openai-chat")
    parser.add_argument("--upstream-port", type=int, default=0, help="fix the mock's port, for peers that need it")
    parser.add_argument("--only-peers", action="store_true", help="leave Crocevia out")
    parser.add_argument("--hold", action="store_true", help="run the mock and wait for Enter before measuring")
    parser.add_argument("--peer", action="append", nargs=3, default=[], metavar=("NAME@VERSION", "URL", "PID"))
    parser.add_argument("--peer-header", action="append", default=[], metavar="'Name: value'")
    parser.add_argument("--peer-model", default="mock", help="the model that peers are asked for")
    parser.add_argument("--against", metavar="REV", help="this tree beside another commit, by turns")
    parser.add_argument("--rounds", type=int, default=9, help="of --against")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> str:
    """Run, print the page, write it to `--folder`; returns it."""
    chosen = options(arguments)
    if sys.platform != "linux":
        raise SystemExit("the benchmark reads /proc and pins CPUs: it runs on Linux")
    seconds = 1.0 if chosen.quick else chosen.seconds
    if chosen.against:
        return _against(chosen, seconds)
    with tempfile.TemporaryDirectory(prefix="crocevia-bench-") as temporary, ExitStack() as stack:
        folder = Path(temporary)
        mock = stack.enter_context(upstream(folder, chosen.upstream_port, chosen.tokens, chosen.spacing_ms))
        port = mock.ask(False).port
        if chosen.hold:
            input(f"The mock listens on 127.0.0.1:{port}. Start the peers, then press Enter. ")
        os.sched_setaffinity(0, OWN_CPUS)
        results = [measure(mock, mock, seconds, alone=True)]
        with nginx(folder, port) as proxy:
            if proxy is None:
                print("nginx is not installed: no ratios this time")
            else:
                results.append(measure(proxy, mock, seconds))
        for name, url, pid in chosen.peer:
            target = peer(name, url, int(pid), chosen.peer_header, chosen.peer_model)
            results.append(measure(target, mock, seconds))
        if not chosen.only_peers:
            with crocevia(folder, port, chosen.engine) as doors:
                results += [measure(target, mock, seconds) for target in doors]
    return _kept(page(results, floor=FLOOR, settings=_settings(chosen, seconds)), chosen.folder)


def _against(chosen: argparse.Namespace, seconds: float) -> str:
    os.sched_setaffinity(0, OWN_CPUS)
    with tempfile.TemporaryDirectory(prefix="crocevia-bench-") as folder:
        text = compare(
            chosen.against,
            Path(folder),
            rounds=1 if chosen.quick else chosen.rounds,
            seconds=seconds,
            tokens=chosen.tokens,
            spacing_ms=chosen.spacing_ms,
        )
    return _kept(text, chosen.folder)


def _kept(text: str, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{datetime.now().astimezone():%Y-%m-%d-%H%M}.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return text


def _settings(chosen: argparse.Namespace, seconds: float) -> str:
    pinned = "shared" if OWN_CPUS == SERVER_CPU else "one CPU for the server, the others for mock and generator"
    ours = (
        "Crocevia checks keys and keeps records; `/agent` has an hourly limit, a budget and a concurrency limit, too, "
        "and every answer of `/v1/responses` is stored; "
    )
    return (
        f"{seconds:g} s per figure, {2 * seconds:g} s for streams of {chosen.tokens} tokens, {chosen.spacing_ms:g} ms "
        f"apart; {pinned}. {'' if chosen.only_peers else ours}nginx only copies bytes, without an access log."
    )


def measure(target: Target, mock: Target, seconds: float, *, alone: bool = False) -> Result:
    """All figures of one server; `alone`: only one call at a time."""
    result = Result(target, idle_mib=None if target.cold_start is None and target.door else pss_mib(target.pid))
    for streamed, counts in ((False, WHOLE), (True, STREAMED)):
        for count in counts[:1] if alone else counts:
            print(f"{target.name}: {'streamed' if streamed else 'not streamed'}, {count} at a time …", flush=True)
            (result.streamed if streamed else result.whole)[count] = _one(result, mock, streamed, count, seconds)
    return result


def _one(result: Result, mock: Target, streamed: bool, count: int, seconds: float) -> Measured:
    seconds = 2 * seconds if streamed else seconds
    target = result.target
    began, busy, known, own = time.perf_counter(), busy_seconds(), _known(target), time.process_time() + mock.cpu()
    measured = uvloop.run(
        load(target.ask(streamed), count, seconds=seconds, warm_up=min(1.0, seconds / 2), clock=target.cpu)
    )
    took = time.perf_counter() - began
    result.others.append(max(0.0, (busy_seconds() - busy - (_known(target) - known)) / took))
    if time.process_time() + mock.cpu() - own > 0.85 * took * len(OWN_CPUS):
        result.bound.add((streamed, count))
    return measured


def _known(target: Target) -> float:
    """CPU seconds of this program, of all it started and of the server, which a peer's user started."""
    here = os.getpid()
    return cpu_seconds(here) + (0 if target.pid in tree(here) else target.cpu())


if __name__ == "__main__":
    main()
