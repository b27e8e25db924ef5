"""Multipart forms as clients send them."""

from __future__ import annotations

BOUNDARY = "b0undary"


def form(
    data: bytes, filename: str = "a.txt", *, field: str = "file", kind: str = "text/plain", end: str = "--"
) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; filename="{filename}"\r\n'
    return f"{head}Content-Type: {kind}\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}{end}\r\n".encode()


def headers(key: str | None = "k1", **more: str) -> dict[str, str]:
    found = {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "x-envai-contract-version": "3"}
    return found | ({} if key is None else {"idempotency-key": key}) | more
