"""What `doctor` looks at. Each look yields findings; none raises, none changes anything."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from crocevia.cli.findings import Finding, bad, failed, ok, warn
from crocevia.cli.i18n import line
from crocevia.cli.wire import Opened, Read
from crocevia.core.catalogue import EngineSpec
from crocevia.core.declared import Refused
from crocevia.core.errors import GatewayError, Reason, say
from crocevia.runtime.catalogue import Catalogue, load
from crocevia.storage.agents import misread
from crocevia.storage.database import damage, snapshot
from crocevia.storage.home import Home, holder
from crocevia.storage.metadata import SCHEMA
from crocevia.storage.migrate import current
from crocevia.storage.records import implausible_calls

PROBE_SECONDS: Final = 15.0
_LITTLE: Final = 1 << 30
_NAMED: Final = 5  # records that are named one by one
_TOO_LITTLE: Final = 100 << 20


def settings(home: Home) -> Iterator[Finding]:
    """The server's own settings."""
    from crocevia import config

    try:
        found = config.load(home)
    except Refused as refused:
        for problem in refused.problems:
            yield Finding(
                level="bad", area="settings", message=line("doctor_setting", place=problem.place), hint=problem.message
            )
        return
    yield ok("settings", "doctor_settings", host=found.server.host, port=found.server.port)


def store(home: Home) -> Iterator[Finding]:
    """The folder, the database, the disk, and who serves it."""
    if not home.database.exists():
        yield failed("store", say(Reason.HOME_NOT_INITIALISED))
        return
    yield from _private(home)
    try:
        version = current(home.database)
    except GatewayError as error:
        yield failed("store", error.message)
        return
    if version != SCHEMA:
        yield warn("store", "doctor_schema", found=version or "?", known=SCHEMA)
    yield from _database(home)
    yield from _records(home)
    yield from _agents(home)
    yield from _disk(home)
    serving = holder(home)
    yield ok("store", "doctor_served", pid=serving) if serving is not None else ok("store", "doctor_not_served")


def _private(home: Home) -> Iterator[Finding]:
    if sys.platform == "win32":
        return
    open_ = [path.name for path in home.keys.glob("*") if path.stat().st_mode & 0o077]
    if open_:
        yield bad("keys", "doctor_keys_open", files=", ".join(open_), folder=str(home.keys))
    else:
        yield ok("keys", "doctor_keys")


def _database(home: Home) -> Iterator[Finding]:
    found = damage(home.database)
    if found is not None:
        yield bad("store", "doctor_store_broken", reason=found)
    else:
        yield ok("store", "doctor_store", version=SCHEMA)


def _records(home: Home) -> Iterator[Finding]:
    """Records that say what cannot be: sums leave those figures out, and somebody should know."""
    try:
        with snapshot(home.database) as tx:
            found = implausible_calls(tx)
    except GatewayError:
        return  # an earlier schema, or a store whose own finding says it
    for call_id, columns in found[:_NAMED]:
        yield warn("records", "doctor_record", record=call_id, columns=", ".join(columns))
    if len(found) > _NAMED:
        yield warn("records", "doctor_records", count=len(found) - _NAMED)


def _agents(home: Home) -> Iterator[Finding]:
    """Agents that hold rules or bounds which mean nothing: they were ignored by earlier versions."""
    try:
        with snapshot(home.database) as tx:
            found = misread(tx)
    except GatewayError:
        return  # an earlier schema, or a store whose own finding says it
    for agent in found:
        level, key = (bad, "doctor_agent_unreadable") if agent.unreadable else (warn, "doctor_agent")
        yield level("agents", key, agent=agent.name, fields=", ".join(agent.misread))


def _disk(home: Home) -> Iterator[Finding]:
    free = shutil.disk_usage(home.path).free
    if free < _LITTLE:
        yield (bad if free < _TOO_LITTLE else warn)("disk", "doctor_disk", megabytes=free >> 20)


def engines(home: Home) -> Iterator[Finding]:
    """Whether each declared engine can be reached with its settings; no tokens are spent."""
    try:
        with snapshot(home.database) as tx:
            catalogue = load(tx, home)
    except GatewayError:
        return  # the store's own finding says it
    if not catalogue.engines:
        yield warn("engines", "doctor_no_engines")
        return
    yield from asyncio.run(_probe_all(catalogue, home))


async def _probe_all(catalogue: Catalogue, home: Home) -> list[Finding]:
    from crocevia.engines.upstream.http import HttpClient

    http = HttpClient()
    try:
        return list(await asyncio.gather(*(_probe(catalogue, home, spec, http) for spec in catalogue.engines.values())))
    finally:
        await http.close()


async def _probe(catalogue: Catalogue, home: Home, spec: EngineSpec, http: object) -> Finding:
    from crocevia.engines.context import EngineContext
    from crocevia.engines.registry import build

    area, key = "engine", catalogue.engine_key(spec.name)
    if spec.api_key_env is not None and not key:
        return bad(area, "doctor_key_missing", engine=spec.name, variable=spec.api_key_env)
    if spec.traits.loads_weights:
        return _weights(catalogue, home, spec)
    try:
        engine = build(spec, EngineContext(http=http, models_dir=home.models, api_key=key))  # type: ignore[arg-type]  # an HttpClient, imported late
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await engine.probe()
        finally:
            await engine.close()
    except GatewayError as error:
        return _engine_failed(spec, error)
    except TimeoutError:
        return bad(area, "doctor_engine_silent", engine=spec.name, seconds=int(PROBE_SECONDS))
    return ok(area, "doctor_engine", engine=spec.name, kind=spec.kind)


def _engine_failed(spec: EngineSpec, error: GatewayError) -> Finding:
    hint = line("hint_doctor_engine_failed", engine=spec.name)
    message = line("doctor_engine_failed", engine=spec.name, code=error.code.value)
    return Finding(level="bad", area="engine", message=message, hint=hint)


def _weights(catalogue: Catalogue, home: Home, spec: EngineSpec) -> Finding:
    """The embedded model is not started for this: a server may be using the memory for it now."""
    from crocevia.engines.llama.weights import locate

    try:
        for model in catalogue.models.values():
            if model.engine == spec.name:
                locate(model.upstream, home.models)
    except GatewayError as error:
        return Finding(level="warn", area="engine", message=error.message, hint=line("hint_doctor_weights"))
    return ok("engine", "doctor_engine", engine=spec.name, kind=spec.kind)


def streaming(head: Opened, reads: list[Read]) -> Iterator[Finding]:
    """What a caller saw of one streamed answer."""
    kind = head.headers.get("content-type", "")
    if head.status != 200:
        yield bad("stream", "doctor_stream_status", status=head.status)
        return
    if not kind.startswith("text/event-stream"):
        yield bad("stream", "doctor_stream_kind", kind=kind or "?")
        return
    for name in ("content-encoding", "content-length"):
        if name in head.headers and head.headers[name] != "identity":
            yield bad("stream", "doctor_stream_proxied", header=name)
    events = [(read.at, name) for read in reads for name, _ in read.events]
    names = [name for _, name in events]
    yield from _ending(names)
    yield from _pace(reads, [at for at, name in events if name == "delta"])


def _ending(names: list[str]) -> Iterator[Finding]:
    if "error" in names:
        yield bad("stream", "doctor_stream_error")
    elif not names or names[-1] != "done":
        yield bad("stream", "doctor_stream_cut")


def _pace(reads: list[Read], deltas: list[float]) -> Iterator[Finding]:
    if not reads:
        return
    first, last = reads[0].at, reads[-1].at
    gaps = sorted(later.at - earlier.at for earlier, later in pairwise(reads))
    pings = sum(read.data.count(b": ping") for read in reads)
    yield ok(
        "stream",
        "doctor_stream_pace",
        first=round(first * 1000),
        reads=len(reads),
        median=round(gaps[len(gaps) // 2] * 1000) if gaps else 0,
        total=round(last * 1000),
        pings=pings,
    )
    # A provider that takes a second for many pieces does not hand them all over in one instant: somebody held them.
    if len(deltas) > 3 and last > 1.0 and last - first < 0.05 * last:
        yield warn("stream", "doctor_stream_buffered")
    silence = max([first, *gaps])
    if silence > 20.0:
        yield warn("stream", "doctor_stream_silent", seconds=round(silence))
