"""The helpers that are more than one request, as flows: written once, driven by both clients."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from .cancel import CancelToken
from .clock import monotonic
from .core import Core, backoff, call
from .effects import Blocking, CloseStream, Flow, Head, Phases, ReadChunk, Request
from .errors import EnvaiError, InvalidResponseError, UnsafePathError
from .models import (
    Chat,
    ChatAttachment,
    ChatCollection,
    ChatForked,
    CompletionCollection,
    ImageGenerationAcceptedRecord,
    ImageGenerationStatusRecord,
)
from .options import origin_of
from .waits import pause

SETTLED = {"succeeded", "failed", "cancelled", "canceled", "completed"}
UNDER_WAY = {"queued", "running"}
POLL_CEILING = 10.0


class ForkResult(msgspec.Struct, frozen=True, kw_only=True):
    """`chat` is the destination that was created; it is yours to keep."""

    chat: Chat
    source_chat_id: str

    def __repr__(self) -> str:
        return f"<ForkResult {self.source_chat_id} -> {self.chat.id}>"


class ForkFailedError(EnvaiError):
    """The destination `chat` exists but the fork into it failed; it was not deleted."""

    def __init__(self, chat: Chat, cause: EnvaiError) -> None:
        super().__init__(
            cause.message,
            http_status=cause.http_status,
            type=cause.type,
            code=cause.code,
            details=cause.details,
            request_id=cause.request_id,
        )
        self.chat = chat
        self.cause = cause


def left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.001, deadline - monotonic())


def fork_chat(core: Core, workspace_id: str, chat_id: str, team_id: str, timeout: float | None) -> Flow[ForkResult]:
    """Create a destination and fork into it. Raises ForkFailedError with the destination if only the fork failed."""
    deadline = None if timeout is None else monotonic() + timeout
    given = {"workspace_id": workspace_id, "team_id": team_id}
    chat: Chat = yield from call(core, "createChat", given, Chat, timeout)
    given = {"chat_id": chat_id, "destination_chat_id": chat.id}
    try:
        forked: ChatForked = yield from call(core, "forkChat", given, ChatForked, left(deadline))
    except EnvaiError as problem:
        raise ForkFailedError(chat, problem) from None
    return ForkResult(chat=chat, source_chat_id=forked.source_chat_id)


def generate_and_wait(
    core: Core, given: dict[str, Any], interval: float, timeout: float | None
) -> Flow[ImageGenerationStatusRecord]:
    """Start a generation and poll its record until it is settled, in whatever way."""
    deadline = None if timeout is None else monotonic() + timeout
    accepted = yield from call(core, "createImageGeneration", given, ImageGenerationAcceptedRecord, timeout)
    attempt = 0
    while True:
        attempt += 1
        yield from pause(backoff(interval, POLL_CEILING, attempt), deadline)
        where = {"record": accepted.id}
        status: ImageGenerationStatusRecord = yield from call(
            core, "getImageGeneration", where, ImageGenerationStatusRecord, left(deadline)
        )
        if status.status in SETTLED:
            return status


def wait_for_attachment(
    core: Core, where: dict[str, Any], interval: float, timeout: float | None
) -> Flow[ChatAttachment]:
    """Poll an attachment until nothing is being converted, nor will be by itself."""
    deadline = None if timeout is None else monotonic() + timeout
    attempt = 0
    while True:
        attempt += 1
        found: ChatAttachment = yield from call(core, "getChatAttachment", where, ChatAttachment, left(deadline))
        state = found.conversion
        if state.status not in UNDER_WAY and not state.recoverable:
            return found
        yield from pause(backoff(interval, POLL_CEILING, attempt), deadline)


class PageAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Which page, and how to ask for it."""

    given: dict[str, Any]
    page: int | None = None
    """None: the first, which the server need not be told."""
    timeout: float | None
    max_retries: int | None
    cancel: CancelToken | None


def read_page(core: Core, asked: PageAsked) -> Flow[CompletionCollection]:
    given = asked.given if asked.page is None else {**asked.given, "page": asked.page}
    result: CompletionCollection = yield from call(
        core, "listCompletions", given, CompletionCollection, asked.timeout, asked.max_retries
    )
    return result


def is_last_page(collection: CompletionCollection, page: int) -> bool:
    """Whether the server says that nothing follows `page`."""
    last = collection.meta.last_page
    more = collection.links.next or (isinstance(last, int) and page < last)
    return not collection.data or not more


def read_chats(core: Core, asked: PageAsked) -> Flow[ChatCollection]:
    result: ChatCollection = yield from call(
        core, "listChats", asked.given, ChatCollection, asked.timeout, asked.max_retries
    )
    return result


def chats_before(collection: ChatCollection, asked: PageAsked) -> str | None:
    """The id before which the next page begins, None on the last. Raises InvalidResponseError if it leads nowhere."""
    following = collection.links.next if collection.links else None
    if not following or not collection.data:
        return None
    before = dict(parse_qsl(urlsplit(following).query)).get("before")
    if not before or before == asked.given.get("before"):
        raise InvalidResponseError("listChats: the next page is none", raw=following)
    return before


def signed_request(core: Core, url: str, timeout: float | None) -> Request:
    """The request for a signed artifact URL, exactly as given: no credentials, only on the API's own origin."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    if origin_of(url) != origin_of(core.options.base_url) or not parts.path.endswith("/artifacts/download"):
        raise UnsafePathError("not a signed artifact URL of this server")
    if parts.username or parts.fragment or "signature" not in query:
        raise UnsafePathError("not a signed artifact URL of this server")
    options = core.options
    read = timeout if timeout is not None else options.timeouts.request
    return Request(
        operation="downloadArtifact",
        method="GET",
        url=url,
        label="/artifacts/download",
        headers={"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": options.user_agent},
        phases=Phases(connect=options.timeouts.connect, read=read),
    )


def read_all(head: Head, deadline: float | None) -> Flow[bytes]:
    """The whole body, then closed."""
    chunks: list[bytes] = []
    try:
        while (chunk := (yield ReadChunk(head.handle, deadline))) is not None:
            chunks.append(chunk)
    finally:
        yield CloseStream(head.handle)
    return b"".join(chunks)


def save(head: Head, destination: str | Path, *, atomic: bool, overwrite: bool, deadline: float | None) -> Flow[Path]:
    """Write the body to a file, a chunk at a time, and close it. Nothing is left behind on failure."""
    try:
        writer: FileWriter = yield Blocking(partial(FileWriter, destination, atomic=atomic, overwrite=overwrite))
        try:
            while (chunk := (yield ReadChunk(head.handle, deadline))) is not None:
                yield Blocking(writer.write, (chunk,))
            path: Path = yield Blocking(writer.commit)
        except BaseException:
            writer.abort()
            raise
    finally:
        yield CloseStream(head.handle)
    return path


class FileWriter:
    """Writes a download where the caller said. Atomic: the name appears only when every byte is on disk."""

    def __init__(self, destination: str | Path, *, atomic: bool = True, overwrite: bool = False) -> None:
        self.path = Path(destination)
        if not self.path.name or self.path.is_dir():
            raise UnsafePathError("the destination must be a file name, not a folder")
        if self.path.exists() and not overwrite:
            raise FileExistsError("the destination exists; pass overwrite=True to replace it")
        self._overwrite = overwrite
        self._part = self.path.with_name(f".{self.path.name}.part") if atomic else self.path
        self._file = self._part.open("wb" if atomic or overwrite else "xb")

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)

    def commit(self) -> Path:
        """Make the bytes durable and the name real."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._part is self.path:
            return self.path
        if self._overwrite:
            self._part.replace(self.path)
        else:
            link_new(self._part, self.path)
            self._part.unlink(missing_ok=True)
        return self.path

    def abort(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        self._part.unlink(missing_ok=True)


def link_new(part: Path, path: Path) -> None:
    """Give `part` the name `path` unless it is taken: a rename could replace what appeared meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError("the destination exists; pass overwrite=True to replace it") from None
        part.replace(path)
