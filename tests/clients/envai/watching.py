"""Runs inside the official client's own environment: what a client offers, what of it was called, and small helpers.

A program beside this file drives a live server and hands `report` its work.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import envai

OPERATION = re.compile(r"(\w+): (?:GET|POST|PUT|DELETE) (\S+?)\.")


async def now(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def everything(iterator: Any) -> list[Any]:
    return [item async for item in iterator] if hasattr(iterator, "__aiter__") else list(iterator)


async def whole(value: Any) -> bytes:
    value = await now(value)
    return value if isinstance(value, bytes) else b"".join(await everything(value))


def fields(value: Any) -> Any:
    return value if isinstance(value, dict | list | bytes) else value.model_dump(mode="json", by_alias=True)


async def refused(kind: type[Exception], make: Callable[[], Any]) -> Any:
    try:
        await now(make())
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected")


async def close(client: Any) -> None:
    await now(client.aclose() if hasattr(client, "aclose") else client.close())


def offered(client: Any) -> dict[str, str]:
    """Every public method that talks to the server: its name, and the path of its operation («» for a helper)."""
    found = {}
    for name, service in vars(client).items():
        if hasattr(service, "_client"):
            found |= {f"{name}.{method}": path_of(getattr(service, method)) for method in public(service)}
    return found | {name: path for name in public(client) if (path := path_of(getattr(client, name)))}


def public(owner: Any) -> list[str]:
    return [
        name for name in dir(owner) if not name.startswith("_") and inspect.isroutine(getattr(type(owner), name, 0))
    ]


def path_of(method: Any) -> str:
    known = OPERATION.match(inspect.getdoc(method) or "")
    return known[2] if known else ""


def watched(client: Any, called: set[str]) -> Any:
    """The client, noting every public method of its services, and every operation by its flat name, as it is called."""

    def noting(name: str, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            called.add(name)
            return method(*args, **options)

        return call

    for name, service in list(vars(client).items()):
        if hasattr(service, "_client"):
            for method in public(service):
                setattr(service, method, noting(f"{name}.{method}", getattr(service, method)))
    flat = {
        known[1]: name
        for name in public(client)
        if (known := OPERATION.match(inspect.getdoc(getattr(client, name)) or ""))
    }
    prepare = client._prepare

    def record(operation: str, *args: Any, **options: Any) -> Any:
        called.add(flat.get(operation, operation))
        return prepare(operation, *args, **options)

    client._prepare, client.called = record, called
    return client


def report(key: str, base: str, drive: Callable[[Any, str], Awaitable[None]]) -> None:
    """Drive the sync and the async client; print what each offers and what of it was called, as JSON."""

    async def run() -> dict[str, Any]:
        told = {}
        for tag, kind in (("sync", envai.EnvaiClient), ("async", envai.AsyncEnvaiClient)):
            called: set[str] = set()
            client = kind(key, base_url=base)
            offers = offered(client)
            await drive(watched(client, called), tag)
            await close(client)
            told[tag] = {"offered": offers, "called": sorted(called)}
        return told

    json.dump(asyncio.run(run()), sys.stdout)
