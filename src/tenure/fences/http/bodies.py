"""How much of a request's body is read: never more than its service takes, never less than its client announced."""

from __future__ import annotations

from typing import Any

from tenure.fences.http.problems import RequestMalformed, RequestTooLarge


class Body:
    """A body that arrives in pieces, whatever its length was said to be."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._bytes = bytearray()

    def add(self, piece: bytes) -> None:
        """Take one more piece; raises RequestTooLarge with the one that is too much."""
        self._bytes += piece
        if len(self._bytes) > self._largest:
            raise too_large(self._largest)

    def whole(self) -> bytes:
        """Return what has arrived."""
        return bytes(self._bytes)


def read_length(text: str | None, largest: int) -> int:
    """Read a Content-Length, 0 where there is none; raises RequestMalformed, or RequestTooLarge."""
    if not text:
        return 0
    text = text.strip(" \t")
    if not (text.isascii() and text.isdecimal()):
        raise RequestMalformed("the header field Content-Length must be a whole number, in digits alone")
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(largest)) or int(digits) > largest:
        raise too_large(largest)
    return int(digits)


def read_body(source: Any, length: int, largest: int, *, endless: bool) -> bytes:
    """Read a body of `length` from a file, or one that ends by itself; raises RequestTooLarge or RequestMalformed."""
    body = Body(largest)
    left = largest + 1 if endless else length
    while left and (piece := source.read(left)):
        body.add(piece)
        left -= len(piece)
    return check_length(body.whole(), length)


def check_length(body: bytes, length: int) -> bytes:
    """Return a body that is as long as its client announced; raises RequestMalformed: half a request is none."""
    if length and len(body) != length:
        raise RequestMalformed(f"a body of {length} bytes was announced, and one of {len(body)} bytes came")
    return body


def too_large(largest: int) -> RequestTooLarge:
    """Say that a request is larger than its service takes."""
    return RequestTooLarge(f"this service takes requests of at most {largest} bytes; nothing was done")
