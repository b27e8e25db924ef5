"""The two clients behind one face, for tests that run with both."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.runner.cases import CONFORMANCE, KEY, load

import envai_client as sdk
from envai_client.options import ReconnectPolicy, RetryPolicy, Timeouts

POLICIES = {"timeouts": Timeouts, "retry": RetryPolicy, "reconnect": ReconnectPolicy}
EDITIONS = ("sync", "async")

__all__ = ["CONFORMANCE", "EDITIONS", "KEY", "POLICIES", "Edition", "load"]


class Edition:
    """The one difference between the two clients, hidden: how their calls are waited for."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.is_async = kind == "async"
        self.client: Any = sdk.AsyncEnvaiClient(**options) if self.is_async else sdk.EnvaiClient(**options)

    async def wait(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.is_async:
            return await asyncio.to_thread(function, *args, **kwargs)
        value = function(*args, **kwargs)
        return await value if asyncio.iscoroutine(value) else value

    async def next(self, iterator: Any) -> Any:
        """The next item, or None at the end."""
        if self.is_async:
            return await anext(iterator, None)
        return await asyncio.to_thread(next, iterator, None)

    def iterate(self, stream: Any) -> Any:
        return stream.__aiter__() if self.is_async else iter(stream)

    async def close_generator(self, iterator: Any) -> None:
        if hasattr(iterator, "aclose"):
            await iterator.aclose()
        elif hasattr(iterator, "close"):
            await self.wait(iterator.close)

    async def close(self) -> None:
        await self.wait(self.client.aclose if self.is_async else self.client.close)
