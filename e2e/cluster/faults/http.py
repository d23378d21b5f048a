"""As much of HTTP/1.1 as passing on takes: where a head ends, how long a body is, and nothing changed on the way."""

from __future__ import annotations

import json
from asyncio import IncompleteReadError, StreamReader
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

HEAD_END: Final = b"\r\n\r\n"
PIECE: Final = 64 * 1024
LAST_CHUNK: Final = b"0\r\n\r\n"
CLOSED: Final = -1
"""A body that lasts as long as the connection."""
CHUNKED: Final = -2
REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class Head:
    """First line and headers, as they came."""

    raw: bytes
    length: int
    """Of the body in bytes, or CHUNKED, or CLOSED."""
    closes: bool
    """Whether whoever sent it closes the connection behind it."""

    @property
    def first_line(self) -> list[str]:
        return self.raw.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.raw[9:12])

    def header(self, name: bytes) -> bytes:
        """Its value in small letters; empty where there is none."""
        return _header(self.raw.lower(), name)


async def read_request(reader: StreamReader) -> Head | None:
    """None when there is no more."""
    try:
        raw = await reader.readuntil(HEAD_END)
    except IncompleteReadError:
        return None
    small = raw.lower()
    return Head(raw, _length(small, without=0), _header(small, b"connection") == b"close")


async def read_answer(reader: StreamReader, *, method: str) -> Head:
    """IncompleteReadError when the server closed instead."""
    while True:
        raw = await reader.readuntil(HEAD_END)
        if not raw.startswith(b"HTTP/1.1 1"):  # a provisional one is followed by the one that counts
            break
    small = raw.lower()
    bodiless = method == "HEAD" or raw[9:12] in (b"204", b"304")
    length = 0 if bodiless else _length(small, without=CLOSED)
    return Head(raw, length, length == CLOSED or _header(small, b"connection") == b"close")


async def read_body(reader: StreamReader, head: Head) -> bytes:
    """A request's, whole and as it came: the largest that an API server takes is 3 MB."""
    if head.length != CHUNKED:
        return await reader.readexactly(head.length) if head.length else b""
    parts = [as_chunk(part) async for part in read_chunks(reader)]
    return b"".join([*parts, LAST_CHUNK])


async def read_pieces(reader: StreamReader, length: int) -> AsyncIterator[bytes]:
    """A body as it comes."""
    if length == CHUNKED:
        async for part in read_chunks(reader):
            yield part
        return
    while length:
        part = await reader.read(min(PIECE, length) if length > 0 else PIECE)
        if not part:
            if length == CLOSED:
                return
            raise IncompleteReadError(b"", length)
        yield part
        if length > 0:
            length -= len(part)


async def read_chunks(reader: StreamReader) -> AsyncIterator[bytes]:
    """What is in the chunks, one by one."""
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        yield (await reader.readexactly(size + 2))[:-2]
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass


def as_chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


def status_object(status: int, message: str, retry_after: int | None = None) -> bytes:
    """What the API server says when it refuses."""
    details = {} if retry_after is None else {"details": {"retryAfterSeconds": retry_after}}
    about = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return json.dumps({**about, "reason": REASONS.get(status, ""), **details, "code": status}).encode()


def answer(status: int, body: bytes, retry_after: int | None = None) -> bytes:
    """A whole answer."""
    more = b"" if retry_after is None else b"Retry-After: %d\r\n" % retry_after
    return (
        b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"
        % (status, REASONS.get(status, "").encode(), more, len(body))
        + body
    )


def _length(small: bytes, *, without: int) -> int:
    if _header(small, b"transfer-encoding") == b"chunked":
        return CHUNKED
    said = _header(small, b"content-length")
    return int(said) if said else without


def _header(small: bytes, name: bytes) -> bytes:
    at = small.find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 3
    return small[start : small.index(b"\r\n", start)].strip()
