"""HTTP requests, as little of them as a listening agent needs: one per connection, small, read and answered whole."""

from __future__ import annotations

import re
from http import HTTPStatus

from msgspec import Struct

from gpuherd.model.errors import GpuherdError

__all__ = [
    "MAX_BODY_BYTES",
    "MAX_HEAD_BYTES",
    "BadRequest",
    "Request",
    "Response",
    "body_length",
    "parse_head",
]

MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_BYTES = 64 * 1024

_REQUEST_LINE = re.compile(r"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/1\.[01]")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_HEADERS = re.compile(r"[\0\r\n]")


class BadRequest(GpuherdError):  # noqa: N818 - reads as a state, like the others of the tree
    """A request that cannot be answered otherwise than with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Request(Struct, frozen=True, kw_only=True):
    """A request's head. Header names are lower case; of a repeated header the last one counts."""

    method: str
    path: str
    headers: dict[str, str]


class Response(Struct, frozen=True, kw_only=True):
    """An answer, after which the connection is closed."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"

    def encode(self) -> bytes:
        """Write it for the wire."""
        head = (
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
            f"Content-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nServer: gpuherd-agent\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode("ascii") + self.body


def parse_head(head: bytes) -> Request:
    """Read a request's head, up to and with its empty line; ``BadRequest`` if it is none."""
    lines = head.decode("latin-1").split("\r\n")[:-2]
    match = _REQUEST_LINE.fullmatch(lines[0]) if lines else None
    if match is None:
        raise BadRequest(400, "this is not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        # By hand: an expression for blanks on both sides of a value takes the cube of its length when it fails.
        name, colon, value = line.partition(":")
        if not colon or not _HEADER_NAME.fullmatch(name) or _NOT_IN_HEADERS.search(value):
            raise BadRequest(400, "the request has a malformed header")
        headers[name.lower()] = value.strip(" \t")
    return Request(method=match[1], path=match[2].partition("?")[0], headers=headers)


def body_length(request: Request) -> int:
    """Say how many bytes follow the head; ``BadRequest`` if that is not said, or too much."""
    if "transfer-encoding" in request.headers:
        raise BadRequest(411, "send the length of the body in Content-Length")
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise BadRequest(400, "Content-Length is not a number")
    if len(length) > 9 or int(length) > MAX_BODY_BYTES:
        raise BadRequest(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    return int(length)
