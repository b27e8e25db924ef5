"""Requests out of arguments, results out of answers: the HTTP half of the protocol, without I/O."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib.resources import files
from pathlib import Path
from time import time
from typing import IO, Any, TypeAlias
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET

from .effects import FilePart, Head, Phases, Request
from .errors import CompatibilityError, EnvaiError, InvalidResponseError, UnsafePathError, error_class
from .options import Options, origin_of

FileInput: TypeAlias = bytes | Path | IO[bytes] | tuple[str, bytes | IO[bytes], str]
VERSION_HEADER = "X-Envai-Contract-Version"
TRACE_NAMES = ("traceparent", "tracestate", "baggage", "b3", "x-b3-", "x-request-id", "x-correlation-id")
HEADER_VALUE = re.compile(r"[!-~]{1,255}\Z")
ACCEPT = {"json": "application/json", "none": "application/json", "bytes": "*/*", "events": "text/event-stream"}


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the contract's inventory. `query` and `header` map argument names to wire names."""

    id: str
    method: str
    path: str
    result: str
    type: str = ""
    unwrap: str = ""
    auth: bool = False
    negotiated: bool = False
    query: dict[str, str] = {}
    header: dict[str, str] = {}
    body: list[str] = []
    files: list[str] = []
    media: str | None = None

    @property
    def retry_safe(self) -> bool:
        return self.method == "GET"


class _Inventory(msgspec.Struct, frozen=True):
    operations: list[Operation]


def read_inventory() -> dict[str, Operation]:
    raw = files(__package__).joinpath("operations.json").read_bytes()
    return {operation.id: operation for operation in msgspec.json.decode(raw, type=_Inventory).operations}


OPERATIONS = read_inventory()


def build(
    options: Options, operation: Operation, given: dict[str, Any], version: int, timeout: float | None
) -> Request:
    """The request for `operation`; `version` is the contract spoken (2 or 3). Raises TypeError on unknown arguments."""
    arguments = {name: value for name, value in given.items() if value is not UNSET}
    unknown = arguments.keys() - known_arguments(operation)
    if unknown:
        raise TypeError(f"{operation.id} has no argument {sorted(unknown)}")
    check_workspace_path(operation, arguments)
    headers = base_headers(options, operation, version)
    for name, wire in operation.header.items():
        if name in arguments:
            headers[wire] = header_value(wire, arguments[name])
    content, form, parts = body_of(operation, arguments)
    if content is not None:
        headers["Content-Type"] = "application/json"
    label = operation.path if version == 3 else operation.path.replace("/atp/v3/", "/")
    read = timeout if timeout is not None else options.timeouts.request
    return Request(
        operation=operation.id,
        method=operation.method,
        url=url_of(options, operation, label, arguments),
        label=label,
        headers=headers,
        phases=Phases(connect=options.timeouts.connect, read=read),
        content=content,
        form=form,
        files=parts,
    )


def known_arguments(operation: Operation) -> set[str]:
    return {*path_names(operation), *operation.query, *operation.header, *operation.body}


def path_names(operation: Operation) -> list[str]:
    return re.findall(r"{(\w+)}", operation.path)


def base_headers(options: Options, operation: Operation, version: int) -> dict[str, str]:
    # Compression only where the body is read whole: streams must flow and downloads arrive as they are.
    encoding = "gzip, deflate" if operation.result in ("json", "none") else "identity"
    headers = {"Accept": ACCEPT[operation.result], "Accept-Encoding": encoding, "User-Agent": options.user_agent}
    given = options.trace_headers() if options.trace_headers else {}
    headers |= {name: value for name, value in given.items() if name.lower().startswith(TRACE_NAMES)}
    if operation.negotiated and version == 3:
        legacy = operation.id in ("getCapabilitiesLegacy", "streamChatEventsLegacy")
        headers[VERSION_HEADER] = "2" if legacy else "3"
    if operation.auth and options.api_key is not None:
        headers["Authorization"] = f"Bearer {options.api_key.reveal()}"
    return headers


def header_value(name: str, value: str) -> str:
    if not HEADER_VALUE.match(value):
        raise ValueError(f"{name} must be 1 to 255 printable ASCII characters without spaces")
    return value


def url_of(options: Options, operation: Operation, path: str, arguments: dict[str, Any]) -> str:
    if operation.id == "getJwks":
        return options.jwks_url
    if operation.id == "getWikiWebhookJwks":
        return options.webhook_jwks_url
    for name in path_names(operation):
        path = path.replace("{" + name + "}", path_segment(name, arguments[name]))
    base = origin_of(options.base_url) if path.startswith("/.well-known/") else options.base_url
    query = [(wire, query_value(arguments[name])) for name, wire in operation.query.items() if name in arguments]
    return base + path + ("?" + urlencode(query, quote_via=quote, safe="") if query else "")


def path_segment(name: str, value: str) -> str:
    if not isinstance(value, str) or not value or value in (".", ".."):
        raise ValueError(f"{name} must be a non-empty identifier")
    return quote(value, safe="")


def query_value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def body_of(
    operation: Operation, arguments: dict[str, Any]
) -> tuple[bytes | None, dict[str, str] | None, list[FilePart] | None]:
    """JSON bytes, or form fields and file parts; nothing for an operation without a body."""
    if not operation.body and not operation.media:
        return None, None, None
    fields = {name: arguments[name] for name in operation.body if name in arguments}
    if not operation.files:
        return msgspec.json.encode(fields, enc_hook=plain), None, None
    parts: list[FilePart] = []
    for name in operation.files:
        value = fields.pop(name)
        parts += [(name, file_part(item)) for item in (value if isinstance(value, list) else [value])]
    return None, {name: query_value(value) for name, value in fields.items()}, parts


def plain(value: Any) -> Any:
    """What JSON has for the mappings and sequences that arguments may be."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def file_part(source: FileInput) -> tuple[str, Any, str]:
    """File name, content and media type of an upload: bytes, a path, an open binary file or all three spelled out."""
    if isinstance(source, tuple):
        return source
    if isinstance(source, bytes):
        return "upload", source, "application/octet-stream"
    if isinstance(source, Path):
        return source.name, source.open("rb"), media_type(source.name)
    name = getattr(source, "name", None)
    label = Path(name).name if isinstance(name, str) else "upload"
    return label, source, media_type(label)


def media_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def check_workspace_path(operation: Operation, arguments: dict[str, Any]) -> None:
    """Refuse what no workspace accepts before it leaves; the server's own check stays the authority."""
    path = arguments.get("path")
    if path is None or "/files" not in operation.path:
        return
    bad = not path.startswith("/") or "\\" in path or "//" in path or any(ord(c) < 32 or ord(c) == 127 for c in path)
    if bad or ".." in path.split("/") or (path != "/" and path.endswith("/")):
        raise UnsafePathError("workspace paths are absolute and hold no '..', backslash, control character or '//'")


def check_acknowledgement(operation: Operation, head: Head, version: int) -> None:
    """A negotiated success names the contract version exactly once; anything else is another contract's answer."""
    if not operation.negotiated or version == 2:
        return
    legacy = operation.id in ("getCapabilitiesLegacy", "streamChatEventsLegacy")
    lines = head.all(VERSION_HEADER.lower())
    if lines != ["2" if legacy else "3"]:
        raise CompatibilityError(
            f"{operation.id}: the answer does not acknowledge contract {2 if legacy else 3} exactly once",
            http_status=head.status,
            request_id=head.get("x-request-id"),
        )


def read_result(operation: Operation, head: Head, body: bytes, version: int) -> Any:
    """Parsed and unwrapped JSON of a successful answer, or None. Raises the mapped error otherwise."""
    if not 200 <= head.status < 300:
        raise read_error(head, body)
    check_acknowledgement(operation, head, version)
    if operation.result == "none":
        return None
    value = parse_json(body)
    for key in operation.unwrap.split(".") if operation.unwrap else ():
        if not isinstance(value, dict) or key not in value:
            raise InvalidResponseError(f"{operation.id}: the answer has no {operation.unwrap!r}", raw=value)
        value = value[key]
    return value


def parse_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InvalidResponseError("the answer is not valid JSON", raw=body) from None


def read_error(head: Head, body: bytes) -> EnvaiError:
    """The typed error of an answer, whatever its body is."""
    try:
        envelope = msgspec.json.decode(body)["error"]
        kind, code = text(envelope.get("type")), text(envelope.get("code"))
        message, details = str(envelope.get("message") or ""), envelope.get("details")
    except (msgspec.DecodeError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        kind, code, message, details = None, None, f"HTTP {head.status} without an error envelope", None
    cls = error_class(head.status, kind, code)
    return cls(
        message,
        http_status=head.status,
        type=kind,
        code=code,
        details=details,
        request_id=head.get("x-request-id"),
        retry_after=retry_after(head),
    )


def text(value: object) -> str | None:
    """`value` if it is text: what a server writes in the place of a code may be anything."""
    return value if isinstance(value, str) else None


def retry_after(head: Head) -> float | None:
    """Seconds of a `Retry-After`, given in seconds or as a date; None when absent or unreadable."""
    value = head.get("retry-after")
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}", value.strip()):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (TypeError, ValueError, IndexError):
        return None
