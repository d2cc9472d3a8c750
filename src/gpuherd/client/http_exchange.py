"""One HTTP request and its answer, over a connection of its own.

The standard library's client brings the parsers of e-mail with it, which take longer to load than a hub takes to
answer: a command that asks one question does without.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

__all__ = ["Answer", "NotHttp", "exchange"]

MAX_HEAD_BYTES = 65_536
_PIECE_BYTES = 262_144
_GZIP = 31
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: .*)?", re.DOTALL)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;.*)?", re.DOTALL)


class NotHttp(Exception):  # noqa: N818 - what it is
    """What came back is no answer."""


class Answer(NamedTuple):
    """What came back; the names of fields are in small letters."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes
    """No longer than asked for: one byte more than allowed tells that there is more."""

    def all(self, name: str) -> list[str]:
        """Give every field of a name."""
        return [value for found, value in self.fields if found == name]


def exchange(
    address: tuple[str, int],
    method: str,
    target: str,
    headers: Mapping[str, str],
    content: bytes | None,
    *,
    tls: SSLContext | None,
    silence_seconds: float,
    max_bytes: int,
) -> Answer:
    """Ask and read the answer, at most ``max_bytes`` and one more of its body.

    ``OSError`` if the line fails, ``TimeoutError`` if nothing comes for too long, ``EOFError`` if the other side hangs
    up without a word, ``NotHttp`` if what it says is something else.
    """
    # Of bytes nothing has to be encoded: the tables for names in other scripts are not loaded.
    host: Any = address[0].encode() if address[0].isascii() else address[0]
    with socket.create_connection((host, address[1]), timeout=silence_seconds) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is None:
            return _ask(plain, address, method, target, headers, content, max_bytes)
        with tls.wrap_socket(plain, server_hostname=address[0]) as sealed:
            return _ask(sealed, address, method, target, headers, content, max_bytes, is_secure=True)


def _ask(
    line: socket.socket,
    address: tuple[str, int],
    method: str,
    target: str,
    headers: Mapping[str, str],
    content: bytes | None,
    max_bytes: int,
    *,
    is_secure: bool = False,
) -> Answer:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    given = {
        "Host": host if address[1] == (443 if is_secure else 80) else f"{host}:{address[1]}",
        "Accept-Encoding": "gzip" if method == "GET" else "identity",
        "Connection": "close",
        **headers,
    }
    if content is not None or method in ("POST", "PUT", "PATCH"):
        given["Content-Length"] = str(len(content or b""))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    if any("\r" in one or "\n" in one for one in lines):
        raise NotHttp("a header contains a line break")
    line.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (content or b""))
    reader = _Reader(line)
    while True:
        status, fields = _head(reader)
        if status >= 200:  # what comes before is a hint that the answer is on its way
            break
    answer = Answer(status, fields, b"")
    if method == "HEAD" or status in (204, 304):
        return answer
    body = _body(reader, answer, max_bytes + 1)
    coding = ",".join(answer.all("content-encoding")).strip().lower()
    if coding == "gzip":
        body = _unpacked(body, max_bytes + 1)
    elif coding not in ("", "identity"):
        raise NotHttp("a content encoding that was not requested")
    return answer._replace(body=body)


def _unpacked(packed: bytes, most: int) -> bytes:
    """Give what was compressed, no more than ``most`` bytes of it, however much it may become."""
    import zlib  # noqa: PLC0415 - small answers come as they are

    if not packed:
        return b""
    unpacking = zlib.decompressobj(wbits=_GZIP)
    try:
        body = unpacking.decompress(packed, most)
    except zlib.error:
        raise NotHttp("a compressed response that cannot be read") from None
    if not unpacking.eof and len(body) < most:
        raise NotHttp("it ended early")
    if unpacking.unused_data:
        raise NotHttp("more than one compressed response")
    return body


def _head(reader: _Reader) -> tuple[int, tuple[tuple[str, str], ...]]:
    first = reader.line()
    found = _STATUS.fullmatch(first)
    if found is None:
        raise NotHttp("no status line")
    fields = []
    room = MAX_HEAD_BYTES
    while field := reader.line():
        name, colon, value = field.partition(b":")
        room -= len(field)
        if room < 0:
            raise NotHttp("too many interim responses")
        if not colon or name != name.strip():
            raise NotHttp("an invalid header")
        fields.append((name.decode("latin-1").lower(), value.strip().decode("latin-1")))
    return int(found[1]), tuple(fields)


def _body(reader: _Reader, answer: Answer, most: int) -> bytes:
    coding = ",".join(answer.all("transfer-encoding")).strip().lower()
    if coding == "chunked":
        return _chunks(reader, most)
    if coding not in ("", "identity"):
        raise NotHttp("a transfer encoding that was not requested")
    lengths = set(answer.all("content-length"))
    if not lengths:
        return reader.rest(most)
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdecimal()):
        raise NotHttp("no length")
    return reader.exactly(min(int(length), most))


def _chunks(reader: _Reader, most: int) -> bytes:
    parts: list[bytes] = []
    left = most
    while left:
        head = _CHUNK.fullmatch(reader.line())
        if head is None:
            raise NotHttp("no chunk")
        size = int(head[1], 16)
        if not size:
            break
        parts.append(reader.exactly(min(size, left)))
        left -= len(parts[-1])
        if left and reader.line():
            raise NotHttp("a chunk is longer than announced")
    return b"".join(parts)


class _Reader:
    """Lines and bytes out of a socket."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._kept = bytearray()
        self._has_come = False

    def _more(self) -> bool:
        piece = self._line.recv(_PIECE_BYTES)
        self._has_come = self._has_come or bool(piece)
        self._kept += piece
        return bool(piece)

    def line(self) -> bytes:
        """Give what comes before the end of a line."""
        while (end := self._kept.find(b"\n")) < 0:
            if len(self._kept) > MAX_HEAD_BYTES:
                raise NotHttp("a line without an end")
            if not self._more():
                raise NotHttp("it ended early") if self._has_come else EOFError
        found = bytes(self._kept[:end]).removesuffix(b"\r")
        del self._kept[: end + 1]
        return found

    def exactly(self, count: int) -> bytes:
        """Give so many bytes."""
        while len(self._kept) < count:
            if not self._more():
                raise NotHttp("it ended early")
        found = bytes(self._kept[:count])
        del self._kept[:count]
        return found

    def rest(self, most: int) -> bytes:
        """Give all that comes, up to so many bytes."""
        while len(self._kept) < most and self._more():
            pass
        return bytes(self._kept[:most])
