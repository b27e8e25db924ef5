"""Services with helpers beyond the contract's operations."""

# Generated from the async edition by scripts/generate.py: do not edit.

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..cancel import CancelToken
from ..core import deadline_of, open_request
from ..errors import EnvaiError
from ..events import Event
from ..follow import Follower, OnExpired, read_history
from ..helpers import (
    ForkResult,
    PageAsked,
    chats_before,
    fork_chat,
    generate_and_wait,
    is_last_page,
    read_chats,
    read_page,
    signed_request,
    wait_for_attachment,
)
from ..keys import KeyRing
from ..ledger import Ledger, Record
from ..models import (
    Chat,
    ChatAttachment,
    ChatCollection,
    Completion,
    CompletionCollection,
    CompletionCollectionLinks,
    CompletionCollectionMeta,
    ImageGenerationStatusRecord,
)
from ..params import CompletionFilters, ImageGenerationParams
from ..sync_driver import SyncDriver
from ..tool_calls import ToolCalls
from ..tools import ClientToolRegistry, ToolOutcome, ToolOutput, serialise
from ..turns import TurnFlow, TurnResult
from ..webhooks import Headers, WebhookEvent, verify_webhook
from . import sync_content, sync_execution
from .sync_base import ByteStream
from .sync_streams import EventStream, OnViolation, Source, ToolRun, TurnStream


class ChatsService(sync_execution.ChatsService):
    def __init__(self, driver: SyncDriver, keys: KeyRing, ledger: Callable[[], Ledger]) -> None:
        super().__init__(driver)
        self._keys = keys
        self._ledger = ledger

    def events(
        self,
        chat_id: str,
        *,
        after: int = 0,
        epoch: str | None = None,
        on_expired: OnExpired = "raise",
        include_pings: bool = False,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> EventStream:
        """`streamChatEvents`: every event after `after`, once and in order, through reconnections, without end.

        Raises ReplayGapError when events are lost for good, and CursorExpiredError when the log no longer continues
        from the cursor, unless `on_expired="restart"` says to read the new log from its beginning.
        """
        follower = Follower(
            self._core,
            chat_id,
            after=after,
            epoch=epoch,
            on_expired=on_expired,
            include_pings=include_pings,
            deadline=deadline_of(timeout),
        )
        return EventStream(self._driver, follower, cancel)

    def events_history(self, chat_id: str, *, after: int = 0, timeout: float | None = None) -> list[Event]:
        """`streamChatEventsLegacy`: the finite version 2 replay after `after`."""
        return self._driver.run(read_history(self._core, chat_id, after, timeout))

    def send_and_stream(
        self,
        chat_id: str,
        message: str,
        *,
        after: int = 0,
        epoch: str | None = None,
        on_expired: OnExpired = "raise",
        idempotency_key: str | UnsetType = UNSET,
        attachment_ids: list[str] | UnsetType = UNSET,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> TurnStream:
        """Attach, send `message` and iterate over the turn's events up to its terminal event.

        The message goes out once, after the subscription is known to be live. `after` skips a replay already seen.
        """
        given = {"message": message, "idempotency_key": idempotency_key, "attachment_ids": attachment_ids}
        turn = TurnFlow(
            self._core,
            chat_id,
            {name: value for name, value in given.items() if value is not UNSET},
            after=after,
            epoch=epoch,
            on_expired=on_expired,
            deadline=deadline_of(timeout),
        )
        return TurnStream(self._driver, turn, cancel)

    def send_and_wait(
        self,
        chat_id: str,
        message: str,
        *,
        tools: ClientToolRegistry | None = None,
        ledger: Ledger | None = None,
        max_concurrency: int = 4,
        on_ambiguous: Callable[[Record], ToolOutput | None] | None = None,
        after: int = 0,
        epoch: str | None = None,
        on_expired: OnExpired = "raise",
        idempotency_key: str | UnsetType = UNSET,
        attachment_ids: list[str] | UnsetType = UNSET,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> TurnResult:
        """Send and wait for the end of the turn; `tools` answers its client tools, as `run_client_tools` does.

        Returns whatever the ending was: see `TurnResult.raise_for_failure`.
        """
        stream = self.send_and_stream(
            chat_id,
            message,
            after=after,
            epoch=epoch,
            on_expired=on_expired,
            idempotency_key=idempotency_key,
            attachment_ids=attachment_ids,
            timeout=timeout,
            cancel=cancel,
        )
        with stream:
            if tools is None:
                for _ in stream:
                    pass
                return stream.result()
            run = self.run_client_tools(
                stream, tools, ledger=ledger, max_concurrency=max_concurrency, on_ambiguous=on_ambiguous
            )
            try:
                for _ in run:
                    pass
            except EnvaiError as problem:
                problem.tool_outcomes = run.outcomes
                raise
            return stream.result(run.outcomes)

    def run_client_tools(
        self,
        stream: Source,
        registry: ClientToolRegistry,
        *,
        ledger: Ledger | None = None,
        max_concurrency: int = 4,
        on_ambiguous: Callable[[Record], ToolOutput | None] | None = None,
        on_violation: OnViolation = "raise",
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> ToolRun:
        """Pass on the events of `stream` while answering its client-tool requests.

        Each request is verified before anything runs, claimed where the server announces `tool_claims`, recorded in
        `ledger` (the client's own by default) and run at most once per (chat_id, call_id). One that comes in a replay
        waits for the replay to end, because its result may follow. A call that another life began is handed to
        `on_ambiguous`; without an answer it is left to the application (`ledger.unsettled`, `settle_tool_call`) and to
        the server's timeout.

        An output is kept and sent again until the server acknowledged it, answered 409, or the turn ended; also one
        that an earlier life left. `outcomes` of what this returns says what became of each call. `timeout` bounds the
        whole iteration.
        """
        is_live = stream.is_live if isinstance(stream, EventStream) else lambda: False
        calls = self._tool_calls(registry, ledger, on_ambiguous, is_live)
        deadline, wake = deadline_of(timeout), CancelToken()
        if isinstance(stream, EventStream):
            before = stream.bound(deadline, wake)
            cancel = cancel or before
        return ToolRun(self._driver, calls, stream, max_concurrency, on_violation, cancel, wake)

    def settle_tool_call(
        self, record: Record, answer: ToolOutput, *, timeout: float | None = None, cancel: CancelToken | None = None
    ) -> ToolOutcome:
        """Record and deliver the application's verdict on an unsettled call -> what became of the delivery."""
        calls = self._tool_calls(ClientToolRegistry(), None, None, lambda: True)
        return self._driver.run(calls.settle(record, serialise(answer), timeout), cancel)

    def deliver_outputs(
        self, chat_id: str | None = None, *, timeout: float | None = None, cancel: CancelToken | None = None
    ) -> list[ToolOutcome]:
        """Send what the client's ledger keeps undelivered, once each, of one chat or of all -> what became of it.

        Following a chat with `run_client_tools` does it too; this is for a program that starts and follows nothing yet.
        """
        calls = self._tool_calls(ClientToolRegistry(), None, None, lambda: True)
        return self._driver.run(calls.hand_over_all(chat_id, timeout), cancel)

    def fork_chat(
        self,
        workspace_id: str,
        chat_id: str,
        team_id: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> ForkResult:
        """Create a chat and fork `chat_id` into it. On a failed fork the new chat is kept: see ForkFailedError."""
        return self._driver.run(fork_chat(self._core, workspace_id, chat_id, team_id, timeout), cancel)

    def list(
        self,
        workspace_id: str,
        *,
        before: str | None = None,
        per_page: int | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        cancel: CancelToken | None = None,
    ) -> ChatPage:
        """`listChats`: GET /workspaces/{workspace_id}/chats

        A page, newest first; iterate over it for its chats and those of the pages that follow. before: the id of the
        last chat of the page before. per_page: 1,000 at most, which is also the default.
        """
        given = {"workspace_id": workspace_id, "before": before, "per_page": per_page}
        told = {name: value for name, value in given.items() if value is not None}
        return self._page(PageAsked(given=told, timeout=timeout, max_retries=max_retries, cancel=cancel))

    def _page(self, asked: PageAsked) -> ChatPage:
        return ChatPage(self, self._driver.run(read_chats(self._core, asked), asked.cancel), asked)

    def _tool_calls(
        self,
        registry: ClientToolRegistry,
        ledger: Ledger | None,
        on_ambiguous: Callable[[Record], ToolOutput | None] | None,
        is_live: Callable[[], bool],
    ) -> ToolCalls:
        book = self._ledger() if ledger is None else ledger
        return ToolCalls(self._core, registry, book, self._keys, on_ambiguous, is_live)


class ChatPage:
    """One page of chats. Iterating goes on through the pages that follow."""

    def __init__(self, service: ChatsService, collection: ChatCollection, asked: PageAsked) -> None:
        self._service = service
        self._collection = collection
        self._asked = asked
        self._before = chats_before(collection, asked)

    @property
    def data(self) -> list[Chat]:
        """The chats of this page alone."""
        return self._collection.data

    @property
    def extra(self) -> dict[str, object]:
        """Fields beside these that the server sent."""
        return self._collection.extra

    @property
    def has_next(self) -> bool:
        return self._before is not None

    def next_page(self) -> ChatPage | None:
        """The page after this one, None after the last."""
        following = replace(self._asked, given={**self._asked.given, "before": self._before})
        return self._service._page(following) if self.has_next else None

    def __iter__(self) -> Iterator[Chat]:
        page: ChatPage | None = self
        while page is not None:
            yield from page.data
            page = page.next_page()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self.data)} chats>"


class CompletionPage:
    """One page of completions. Iterating goes on through the pages that follow."""

    def __init__(self, service: CompletionsService, collection: CompletionCollection, asked: PageAsked) -> None:
        self._service = service
        self._collection = collection
        self._asked = asked

    @property
    def data(self) -> list[Completion]:
        """The completions of this page alone."""
        return self._collection.data

    @property
    def links(self) -> CompletionCollectionLinks:
        return self._collection.links

    @property
    def meta(self) -> CompletionCollectionMeta:
        return self._collection.meta

    @property
    def extra(self) -> dict[str, object]:
        """Fields beside these that the server sent."""
        return self._collection.extra

    @property
    def has_next(self) -> bool:
        return not is_last_page(self._collection, self._asked.page or 1)

    def next_page(self) -> CompletionPage | None:
        """The page after this one, None after the last."""
        following = replace(self._asked, page=(self._asked.page or 1) + 1)
        return self._service._page(following) if self.has_next else None

    def __iter__(self) -> Iterator[Completion]:
        page: CompletionPage | None = self
        while page is not None:
            yield from page.data
            page = page.next_page()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._asked.page or 1} {len(self.data)} completions>"


class CompletionsService(sync_execution.CompletionsService):
    def list(
        self,
        workspace_id: str,
        chat_id: str,
        *,
        page: int | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        cancel: CancelToken | None = None,
        **filters: Unpack[CompletionFilters],
    ) -> CompletionPage:
        """`listCompletions`: GET /workspaces/{workspace_id}/chats/{chat_id}/completions

        A page; iterate over it for its completions and those of the pages that follow.
        """
        given = {"workspace_id": workspace_id, "chat_id": chat_id, **filters}
        asked = PageAsked(given=given, page=page, timeout=timeout, max_retries=max_retries, cancel=cancel)
        return self._page(asked)

    def _page(self, asked: PageAsked) -> CompletionPage:
        return CompletionPage(self, self._driver.run(read_page(self._core, asked), asked.cancel), asked)

    def iterate_completions(
        self,
        workspace_id: str,
        chat_id: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        **filters: Unpack[CompletionFilters],
    ) -> Iterator[Completion]:
        """Every completion, page by page, with the filters of `list`. `timeout` bounds each page."""
        first = self.list(workspace_id, chat_id, page=1, timeout=timeout, cancel=cancel, **filters)
        yield from first


class AttachmentsService(sync_content.AttachmentsService):
    def wait(
        self,
        workspace_id: str,
        chat_id: str,
        attachment_id: str,
        *,
        interval: float = 1.0,
        timeout: float | None = 300.0,
        cancel: CancelToken | None = None,
    ) -> ChatAttachment:
        """Poll until the conversion of an attachment is over, in whatever way. `interval` grows to 10 s."""
        where = {"workspace_id": workspace_id, "chat_id": chat_id, "attachment_id": attachment_id}
        return self._driver.run(wait_for_attachment(self._core, where, interval, timeout), cancel)


class WorkspaceFilesService(sync_content.WorkspaceFilesService):
    def download_to_file(
        self,
        workspace_id: str,
        path: str,
        destination: str | Path,
        *,
        atomic: bool = True,
        overwrite: bool = False,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Path:
        """Download a workspace file to `destination`; the rest as in `ByteStream.save`."""
        with self.download(workspace_id, path, timeout=timeout) as stream:
            return stream.save(destination, atomic=atomic, overwrite=overwrite, timeout=timeout, cancel=cancel)


class ImagesService(sync_content.ImagesService):
    def generate_and_wait(
        self,
        *,
        interval: float = 1.0,
        timeout: float | None = 300.0,
        cancel: CancelToken | None = None,
        **request: Unpack[ImageGenerationParams],
    ) -> ImageGenerationStatusRecord:
        """Generate and poll until the record is settled. `request` as in `generate`; `interval` grows to 10 s."""
        return self._driver.run(generate_and_wait(self._core, {**request}, interval, timeout), cancel)

    def download_signed(self, url: str, *, timeout: float | None = None) -> ByteStream:
        """Open a signed artifact URL as the server gave it, without credentials."""
        request = signed_request(self._core, url, timeout)
        return ByteStream(self._driver, self._driver.run(open_request(self._core, request, deadline_of(timeout))))

    def download_to_file(
        self,
        url: str,
        destination: str | Path,
        *,
        atomic: bool = True,
        overwrite: bool = False,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Path:
        """Download a signed artifact URL to `destination`; the rest as in `ByteStream.save`."""
        with self.download_signed(url, timeout=timeout) as stream:
            return stream.save(destination, atomic=atomic, overwrite=overwrite, timeout=timeout, cancel=cancel)


class WikiService(sync_content.WikiService):
    def __init__(self, driver: SyncDriver, keys: KeyRing) -> None:
        super().__init__(driver)
        self._keys = keys

    def verify_webhook(
        self,
        body: bytes,
        headers: Headers,
        workspace_id: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> WebhookEvent:
        """The event of a webhook delivery, if it is genuine: see `envai_client.webhooks`."""
        return self._driver.run(verify_webhook(self._keys, body, headers, workspace_id, None, timeout), cancel)
