"""The one driver of every HTTP engine: one request, retried while nothing was shown, decoded one read at a time.

A dialect is pure: it spells requests and understands answers. All waiting is here and in `http.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from crocevia.core.calls import Abilities, ModelRequest, Rejected
from crocevia.core.errors import GatewayError
from crocevia.core.events import ModelEvent, ParametersLeftOut, UsageReported
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream import sampling
from crocevia.engines.upstream.http import HttpClient, HttpResponse
from crocevia.engines.upstream.reading import AnswerReader, Decoder
from crocevia.engines.upstream.retry import RetryPolicy, pause, retry_after
from crocevia.engines.upstream.service import probe

_ERROR_BODY = 64 * 1024
_ERROR_SECONDS = 5.0


class Dialect(Protocol):
    """How to speak to one provider. `headers` hold the key; `name` is that of the provider blocks."""

    name: str
    url: str
    probe_url: str
    headers: Mapping[str, str]

    def abilities(self, model: str) -> Abilities: ...

    def takes(self, request: ModelRequest) -> frozenset[str]:
        """The fields of `Sampling` that this call can carry."""
        ...

    def encode(self, request: ModelRequest) -> bytes:
        """The request body. Raises GatewayError(UNSUPPORTED) for what the provider cannot take."""
        ...

    def decoder(self) -> Decoder: ...


class UpstreamEngine:
    """An `Engine` over HTTP. The first batch may hold only `UsageReported`: a provider that thinks in silence."""

    def __init__(self, name: str, dialect: Dialect, http: HttpClient, retry: RetryPolicy | None = None) -> None:
        self.name = name
        self.dialect = dialect.name
        self._dialect = dialect
        self._http = http
        self._retry = retry or RetryPolicy()
        self.rejected: Rejected = {}

    def call(self, request: ModelRequest, *, deadline: float) -> _Call:
        return _Call(self, request, deadline)

    def abilities(self, model: str) -> Abilities:
        return self._dialect.abilities(model)

    async def probe(self) -> None:
        await probe(self._http, self._dialect.probe_url, self._dialect.headers)

    async def close(self) -> None:
        """The connections belong to the client that was passed in."""

    async def ask(self, request: ModelRequest, deadline: float) -> tuple[_Answer, list[ModelEvent]]:
        """The answer with its first batch.

        Drops sampling parameters that the model does not support and lists them in the first batch.
        """
        takes = self._dialect.takes(request)
        while True:
            kept, left_out = sampling.narrowed(request, takes, self.rejected)
            try:
                answer, batch = await self._begin(self._dialect.encode(kept), request, deadline)
            except GatewayError as failure:
                name = sampling.refused(kept, failure, self.rejected)
                if name is None:
                    raise
                takes -= {name}
                continue
            return answer, [ParametersLeftOut(left_out), *batch] if left_out else batch

    async def _begin(self, body: bytes, request: ModelRequest, deadline: float) -> tuple[_Answer, list[ModelEvent]]:
        """Try until there is a first batch. Nothing was shown before it, so trying again repeats nothing."""
        loop = asyncio.get_running_loop()
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(body, request, deadline)
            except GatewayError as failure:
                wait = pause(self._retry, failure, attempt, deadline - loop.time())
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def _attempt(self, body: bytes, request: ModelRequest, deadline: float) -> tuple[_Answer, list[ModelEvent]]:
        dialect = self._dialect
        response = await self._http.open("POST", dialect.url, dialect.headers, body, deadline=deadline)
        reader = AnswerReader(dialect.decoder(), stream=request.options.stream, think_tags=request.think_tags)
        answer = _Answer(response, reader)
        try:
            if response.status != 200:
                raise await _refusal(response)
            return answer, await answer.batch()
        except BaseException:
            answer.close()
            raise


class _Call:
    """The batches of one call: asks when the first one is wanted. No generator, which costs more per batch."""

    __slots__ = ("_answer", "_deadline", "_engine", "_over", "_request")

    def __init__(self, engine: UpstreamEngine, request: ModelRequest, deadline: float) -> None:
        self._engine = engine
        self._request = request
        self._deadline = deadline
        self._answer: _Answer | None = None
        self._over = False

    def __aiter__(self) -> _Call:
        return self

    async def __anext__(self) -> list[ModelEvent]:
        batch: list[ModelEvent] = []
        try:
            if self._answer is not None:
                batch = await self._answer.batch()
            elif not self._over:
                self._answer, batch = await self._engine.ask(self._request, self._deadline)
        finally:
            # Synchronous: a cancelled task closes its provider without another await.
            if not batch:
                self._close()
        if not batch:
            raise StopAsyncIteration
        return batch

    async def aclose(self) -> None:
        self._close()

    def _close(self) -> None:
        answer, self._answer = self._answer, None
        self._over = True
        if answer is not None:
            answer.close()


class _Answer:
    """One response being decoded."""

    __slots__ = ("_decoder", "_failure", "_reader", "_response")

    def __init__(self, response: HttpResponse, reader: AnswerReader) -> None:
        self._response = response
        self._reader = reader
        self._decoder = reader.decoder
        self._failure: GatewayError | None = None

    async def batch(self) -> list[ModelEvent]:
        """The events of the next read that has any; empty after `Stopped`. Raises GatewayError."""
        out: list[ModelEvent] = []
        while not self._decoder.stopped:
            if self._failure is not None:
                raise self._failure
            try:
                await self._read(out)
            except GatewayError as failure:
                # What came before the failure is said first, whether or not they shared a read.
                self._failure = failure
            if out and (self._decoder.started or not _only_usage(out)):
                return out
        return out

    def close(self) -> None:
        if self._decoder.stopped:
            self._response.finish()
        else:
            self._response.close()

    async def _read(self, out: list[ModelEvent]) -> None:
        data = await self._response.chunk()
        if data:
            self._reader.feed(data, out)
        else:
            self._reader.end(out)


def _only_usage(events: list[ModelEvent]) -> bool:
    return all(type(event) is UsageReported for event in events)


async def _refusal(response: HttpResponse) -> GatewayError:
    try:
        async with asyncio.timeout(_ERROR_SECONDS):
            body = await response.read(_ERROR_BODY)
    except (GatewayError, TimeoutError):
        body = b""
    return upstream_errors.from_status(response.status, body, retry_after(response.header("Retry-After")))
