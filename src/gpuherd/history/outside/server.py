"""Speaking HTTP to a store: with a deadline for the whole answer, kept connections, and no redirects."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from gpuherd import __version__
from gpuherd.history.deadline import within
from gpuherd.model.errors import Failed

__all__ = ["Answer", "Server", "Unanswered", "authorization_header"]

MAX_ANSWER_BYTES = 64 * 2**20
_MAX_IDLE = 4
_PIECE_BYTES = 1 << 18


class Answer(NamedTuple):
    """What a server said."""

    status: int
    body: bytes
    retry_after: str | None
    is_new_line: bool
    """A connection had to be made for it: the one before was closed, or there was none."""

    @property
    def is_good(self) -> bool:
        """Tell whether it was done."""
        return 200 <= self.status < 300

    def text(self) -> str:
        """Give the beginning of it, for a message; it comes from outside."""
        words = " ".join(self.body[:300].decode("utf-8", "replace").split())
        return "".join(letter if letter.isprintable() else "?" for letter in words)


class Unanswered(Failed):
    """No answer came: whether the server took what it was sent is not known."""


def authorization_header(user: str | None, password: str | None, token: str | None) -> str | None:
    """Give the value of the header that lets us in; none if there is nothing to show."""
    if token is not None:
        return f"Bearer {token}"
    if user is not None and password is not None:
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return None


class Server:
    """A server at one address. Usable from several threads: each question has a connection to itself."""

    def __init__(
        self,
        url: str,
        *,
        authorization: str | None = None,
        timeout_seconds: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._base = parts.path.rstrip("/")
        self._query = parts.query
        self._authorization = authorization
        self._timeout_seconds = timeout_seconds
        self._tls = tls
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._base}"

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> Answer:
        """Ask and wait for the whole answer. ``Unanswered`` names the place, and never repeats a secret."""
        with self._lock:
            line = self._idle.pop() if self._idle else None
        is_new = line is None
        if line is None:
            line = self._line()
        deadline = time.monotonic() + within(timeout_seconds or self._timeout_seconds)
        try:
            answer = self._talk(line, method, path, body, headers or {}, deadline, is_new)
        except (OSError, http.client.HTTPException, ValueError) as error:
            line.close()
            self.close()  # the others lead to the same server, which has gone
            raise Unanswered(f"{self.place}: {_reason(error)}") from error
        except BaseException:
            line.close()
            raise
        if line.sock is None:
            return answer
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(line)
                return answer
        line.close()
        return answer

    def close(self) -> None:
        """Close what is open and idle."""
        with self._lock:
            lines, self._idle = self._idle, []
        for line in lines:
            with contextlib.suppress(OSError):
                line.close()

    def _line(self) -> http.client.HTTPConnection:
        if self._is_secure:
            tls = self._tls or ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_seconds, context=tls
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)

    def _talk(
        self,
        line: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        deadline: float,
        is_new: bool,
    ) -> Answer:
        shown = {"User-Agent": f"gpuherd/{__version__}", **headers}
        if self._authorization is not None:
            shown["Authorization"] = self._authorization
        target = self._base + path
        if self._query:
            target += ("&" if "?" in path else "?") + self._query
        line.timeout = max(deadline - time.monotonic(), 0.001)
        if line.sock is not None:
            line.sock.settimeout(line.timeout)
        line.request(method, target or "/", body=body, headers=shown)
        _hurry(line, deadline)
        response = line.getresponse()
        pieces: list[bytes] = []
        size = 0
        while True:
            _hurry(line, deadline)
            piece = response.read1(_PIECE_BYTES)  # one wait each
            if not piece:
                break
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                line.close()
                raise ValueError(f"the response is larger than {MAX_ANSWER_BYTES} bytes")
            pieces.append(piece)
        if response.length:
            raise ConnectionError  # before all of it had come
        response.close()
        return Answer(response.status, b"".join(pieces), response.getheader("Retry-After"), is_new)


def _hurry(line: http.client.HTTPConnection, deadline: float) -> None:
    """Let each read wait no longer than is left: a trickle of bytes does not prolong it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if line.sock is not None:
        line.sock.settimeout(left)


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no response in time"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, http.client.RemoteDisconnected | ConnectionError):
        return "the connection was lost"
    if isinstance(error, socket.gaierror):
        return "the host name is unknown"
    if isinstance(error, ssl.SSLError):
        return f"no secure connection: {error.reason or type(error).__name__}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, http.client.HTTPException):
        return "it does not speak HTTP"
    return str(error)
