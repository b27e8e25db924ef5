"""What both drivers need of httpx2: its failures, timeouts and responses in our words."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2

from .effects import Head, Request
from .errors import InvalidResponseError, RequestTimeoutError, TransportError

BODY_LIMIT = 64 * 1024 * 1024
# The request provably never left: no connection was there to carry it.
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)


def failure(problem: httpx2.TransportError) -> TransportError:
    """Our error for a failed exchange. It does not chain: the original holds the request and its headers."""
    kind = RequestTimeoutError if isinstance(problem, httpx2.TimeoutException) else TransportError
    return kind(f"no answer: {type(problem).__name__}", sent=not isinstance(problem, UNSENT))


def build_request(request: Request) -> httpx2.Request:
    """The library's request for ours, its timeouts included."""
    phases = request.phases
    timeout = httpx2.Timeout(connect=phases.connect, read=phases.read, write=phases.read, pool=phases.connect)
    return httpx2.Request(
        request.method,
        request.url,
        headers=request.headers,
        content=request.content,
        data=request.form,
        files=request.files,
        extensions={"timeout": timeout.as_dict()},
    )


def read_head(response: httpx2.Response, handle: object = None) -> Head:
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw]
    return Head(status=response.status_code, headers=headers, handle=handle)


def limit_body(chunks: Iterator[bytes]) -> bytes:
    """The whole of a JSON answer, within reason."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        check_size(body)
    return bytes(body)


def check_size(body: bytearray) -> None:
    if len(body) > BODY_LIMIT:
        raise InvalidResponseError(f"the answer is larger than {BODY_LIMIT} bytes")
