"""What pages of declared things have in common: a list, a form for a new one, a form for each, and its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from crocevia.core.declared import Problem, Refused
from crocevia.core.errors import Code, GatewayError, Sentence
from crocevia.panel import forms, samples, words
from crocevia.panel.web import Answer, Ask, Crumb, Moved, Page, Shown, plain
from crocevia.panel.writing import declare, find, mark, remove
from crocevia.runtime.control.apply import Applied


class Editor(msgspec.Struct, frozen=True, kw_only=True):
    """kind: of the thing. name None: a new one. more: what its kind shows beside the form. samples: it as code."""

    kind: str
    path: str
    name: str | None
    form: forms.Form
    more: Any = None
    samples: list[samples.Sample] = []
    refused: Sentence | None = None


Options = Callable[[Ask], Awaitable[Mapping[str, Sequence[str]]]]
More = Callable[[Ask, str], Awaitable[Any]]
Created = Callable[[Ask, str, Applied], Awaitable[Answer]]
Usage = Callable[[Ask, str], list[samples.Sample]]


async def _no_options(ask: Ask) -> Mapping[str, Sequence[str]]:
    return {}


async def _nothing_more(ask: Ask, name: str) -> Any:
    return None


def _no_code(ask: Ask, name: str) -> list[samples.Sample]:
    return []


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of declared thing. table: as in a declaration. key: the field that names it. nav: where it belongs.
    code: how one of them is used, beside its declaration.
    """

    table: str
    nav: str
    fields: tuple[forms.Field, ...]
    key: str = "name"
    options: Options = _no_options
    more: More = _nothing_more
    created: Created | None = None
    code: Usage = _no_code
    start: dict[str, Any] = {}

    @property
    def path(self) -> str:
        return f"/panel/{self.table}"

    def address(self, name: str) -> str:
        """Where one of them is edited."""
        return f"{self.path}/edit?name={quote(name, safe='')}"

    def pages(self, show: Callable[[Ask], Awaitable[Answer]]) -> tuple[Page, ...]:
        """All pages; `show` is the list."""
        return (
            Page(path=self.path, get=show),
            Page(path=f"{self.path}/new", get=self.show_new, post=self.create),
            Page(path=f"{self.path}/edit", get=self.show, post=self.change),
            Page(path=f"{self.path}/remove", post=self.remove),
        )

    async def show_new(self, ask: Ask) -> Answer:
        form = forms.fill(self.fields, self.start, options=await self.options(ask), language=ask.language)
        return self._shown(ask, None, form, None)

    async def show(self, ask: Ask) -> Answer:
        return await self.editor(ask, ask.query.get("name", ""))

    async def editor(self, ask: Ask, name: str, more: Any = None, form: forms.Form | None = None) -> Shown:
        """The page of one of them. Raises GatewayError(NOT_FOUND)."""
        spec = await find(ask, self.table, name)
        if form is None:
            form = forms.fill(
                self.fields,
                _complete(spec),
                options=await self.options(ask),
                seen=mark(spec),
                fixed=self.key,
                language=ask.language,
            )
        return self._shown(ask, name, form, more if more is not None else await self.more(ask, name), spec=spec)

    async def create(self, ask: Ask) -> Answer:
        entry = forms.entry(self.fields, ask.form, {})
        name = entry.setdefault(self.key, "")
        try:
            applied = await declare(ask, self.table, name, entry, None)
        except Refused as refused:
            form = await self.refilled(ask, entry, refused.problems, None)
            return self._shown(ask, None, form, None, HTTPStatus.UNPROCESSABLE_ENTITY)
        if self.created is not None:
            return await self.created(ask, name, applied)
        return Moved(f"{self.address(name)}&done=created")

    async def change(self, ask: Ask) -> Answer:
        name = ask.query.get("name", "")
        spec = await find(ask, self.table, name)
        entry = forms.entry(self.fields, ask.form, plain(spec)) | {self.key: name}
        seen = ask.form.get("seen", "")
        try:
            await declare(ask, self.table, name, entry, seen)
        except Refused as refused:
            form = await self.refilled(ask, entry, refused.problems, seen)
            more = await self.more(ask, name)
            return self._shown(ask, name, form, more, HTTPStatus.UNPROCESSABLE_ENTITY, spec=spec)
        return Moved(f"{self.address(name)}&done=saved")

    async def remove(self, ask: Ask) -> Answer:
        name = ask.query.get("name", "")
        try:
            await remove(ask, self.table, name)
        except GatewayError as error:
            if error.code is not Code.CONFLICT:
                raise
            shown = await self.editor(ask, name)
            assert isinstance(shown.context, Editor)
            context = msgspec.structs.replace(shown.context, refused=error.message)
            return msgspec.structs.replace(shown, context=context, status=HTTPStatus.CONFLICT)
        return Moved(f"{self.path}?done=removed")

    async def refilled(
        self, ask: Ask, entry: Mapping[str, Any], problems: Sequence[Problem], seen: str | None
    ) -> forms.Form:
        """The form with what the person typed."""
        return forms.fill(
            self.fields,
            entry,
            options=await self.options(ask),
            seen=seen,
            fixed=self.key if seen is not None else None,
            problems=problems,
            language=ask.language,
        )

    def _shown(
        self,
        ask: Ask,
        name: str | None,
        form: forms.Form,
        more: Any,
        status: HTTPStatus = HTTPStatus.OK,
        *,
        spec: Any = None,
    ) -> Shown:
        known = [] if name is None else [*self.code(ask, name), samples.declaration(self.table, spec)]
        crumbs = (Crumb(words.say(ask.language, f"{self.table}.title"), self.path),)
        return Shown(
            template=f"{self.table}_edit",
            context=Editor(kind=self.table, path=self.path, name=name, form=form, more=more, samples=known),
            title=words.say(ask.language, f"{self.table}.new") if name is None else name,
            nav=self.nav,
            crumbs=crumbs,
            status=status,
        )


def _complete(spec: Any) -> dict[str, Any]:
    """Every field, those that have their default too."""
    return {
        name: plain(value) if isinstance(value, msgspec.Struct) else value
        for name, value in msgspec.structs.asdict(spec).items()
    }
