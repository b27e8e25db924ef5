"""What pages of declared values share: a list, a form for a new one, a form for each, and removal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from crocevia.core.declared import Problem, Refused
from crocevia.core.errors import Code, GatewayError, Sentence
from crocevia.panel import forms, samples
from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import declare, etag_of, find, remove
from crocevia.runtime.control.apply import Applied


class Editor(msgspec.Struct, frozen=True, kw_only=True):
    """The page of one declared value."""

    kind: str
    """Its table."""
    path: str
    name: str | None
    """None: a new one."""
    form: forms.Form
    more: Any = None
    """What its kind shows beside the form."""
    samples: list[samples.Sample] = []
    """It as code."""
    refused: Sentence | None = None
    """Why it was not removed."""


Options = Callable[[PageRequest], Awaitable[Mapping[str, Sequence[str]]]]
More = Callable[[PageRequest, str], Awaitable[Any]]
Created = Callable[[PageRequest, str, Applied], Awaitable[PageResponse]]
Usage = Callable[[PageRequest, str], list[samples.Sample]]


async def _no_options(request: PageRequest) -> Mapping[str, Sequence[str]]:
    return {}


async def _nothing_more(request: PageRequest, name: str) -> Any:
    return None


def _no_code(request: PageRequest, name: str) -> list[samples.Sample]:
    return []


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of declared value with its pages."""

    table: str
    """As in a declaration."""
    nav: str
    """The entry of the navigation."""
    fields: tuple[forms.Field, ...]
    key: str = "name"
    """The field that names it."""
    options: Options = _no_options
    """Choices of fields that depend on the catalogue."""
    more: More = _nothing_more
    created: Created | None = None
    """What follows a creation, if not the editor."""
    code: Usage = _no_code
    """How one of them is used, beside its declaration."""
    start: dict[str, Any] = {}
    """What the form for a new one begins with."""

    @property
    def path(self) -> str:
        return f"/panel/{self.table}"

    def address(self, name: str) -> str:
        """Where one of them is edited."""
        return f"{self.path}/edit?name={quote(name, safe='')}"

    def pages(self, show: Callable[[PageRequest], Awaitable[PageResponse]]) -> tuple[Page, ...]:
        """All pages; `show` is the list."""
        return (
            Page(path=self.path, get=show),
            Page(path=f"{self.path}/new", get=self.show_new, post=self.create),
            Page(path=f"{self.path}/edit", get=self.show, post=self.change),
            Page(path=f"{self.path}/remove", post=self.remove),
        )

    async def show_new(self, request: PageRequest) -> PageResponse:
        form = forms.fill(self.fields, self.start, options=await self.options(request), language=request.language)
        return self._view(request, None, form, None)

    async def show(self, request: PageRequest) -> PageResponse:
        return await self.editor(request, request.query.get("name", ""))

    async def editor(
        self,
        request: PageRequest,
        name: str,
        more: Any = None,
        form: forms.Form | None = None,
        *,
        refused: Sentence | None = None,
    ) -> PageView:
        """The page of one of them. refused: why it was not removed. Raises GatewayError(NOT_FOUND)."""
        spec = await find(request, self.table, name)
        if form is None:
            form = forms.fill(
                self.fields,
                _complete(spec),
                options=await self.options(request),
                etag=etag_of(spec),
                fixed=self.key,
                language=request.language,
            )
        more = more if more is not None else await self.more(request, name)
        status = HTTPStatus.OK if refused is None else HTTPStatus.CONFLICT
        return self._view(request, name, form, more, status, spec=spec, refused=refused)

    async def create(self, request: PageRequest) -> PageResponse:
        entry = forms.entry(self.fields, request.form, {})
        name = entry.setdefault(self.key, "")
        try:
            applied = await declare(request, self.table, name, entry, None)
        except Refused as refused:
            form = await self.refilled(request, entry, refused.problems, None)
            return self._view(request, None, form, None, HTTPStatus.UNPROCESSABLE_ENTITY)
        if self.created is not None:
            return await self.created(request, name, applied)
        return Redirect(f"{self.address(name)}&done=created")

    async def change(self, request: PageRequest) -> PageResponse:
        name = request.query.get("name", "")
        spec = await find(request, self.table, name)
        entry = forms.entry(self.fields, request.form, msgspec.to_builtins(spec)) | {self.key: name}
        etag = request.form.get("etag", "")
        try:
            await declare(request, self.table, name, entry, etag)
        except Refused as refused:
            form = await self.refilled(request, entry, refused.problems, etag)
            more = await self.more(request, name)
            return self._view(request, name, form, more, HTTPStatus.UNPROCESSABLE_ENTITY, spec=spec)
        return Redirect(f"{self.address(name)}&done=saved")

    async def remove(self, request: PageRequest) -> PageResponse:
        name = request.query.get("name", "")
        try:
            await remove(request, self.table, name)
        except GatewayError as error:
            if error.code is not Code.CONFLICT:
                raise
            return await self.editor(request, name, refused=error.message)
        return Redirect(f"{self.path}?done=removed")

    async def refilled(
        self, request: PageRequest, entry: Mapping[str, Any], problems: Sequence[Problem], etag: str | None
    ) -> forms.Form:
        """The form with what the person typed."""
        return forms.fill(
            self.fields,
            entry,
            options=await self.options(request),
            etag=etag,
            fixed=self.key if etag is not None else None,
            problems=problems,
            language=request.language,
        )

    def _view(
        self,
        request: PageRequest,
        name: str | None,
        form: forms.Form,
        more: Any,
        status: HTTPStatus = HTTPStatus.OK,
        *,
        spec: Any = None,
        refused: Sentence | None = None,
    ) -> PageView:
        known = [] if name is None else [*self.code(request, name), samples.declaration(self.table, spec)]
        breadcrumbs = (Breadcrumb(request.t(f"{self.table}.title"), self.path),)
        return PageView(
            template=f"{self.table}_edit",
            context=Editor(
                kind=self.table, path=self.path, name=name, form=form, more=more, samples=known, refused=refused
            ),
            title=request.t(f"{self.table}.new") if name is None else name,
            nav=self.nav,
            breadcrumbs=breadcrumbs,
            status=status,
        )


def _complete(spec: Any) -> dict[str, Any]:
    """Every field, those that have their default too."""
    return {
        name: msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
        for name, value in msgspec.structs.asdict(spec).items()
    }
