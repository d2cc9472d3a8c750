"""One request and its answer, with servers that say all kinds of things."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from gpuherd.client.http_exchange import MAX_HEAD_BYTES, Answer, NotHttp, exchange
from support.running import PATIENCE_SECONDS


class Server:
    """Takes one request, then says what it is told to, piece by piece, and hangs up."""

    def __init__(self, pieces: Sequence[bytes], *, is_silent: bool = False) -> None:
        self.asked = b""
        self._pieces = pieces
        self._is_silent = is_silent
        self._done = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        line, _ = self._listening.accept()
        with line:
            while b"\r\n\r\n" not in self.asked:
                part = line.recv(65_536)
                if not part:
                    return
                self.asked += part
            try:
                for piece in self._pieces:
                    line.sendall(piece)
            except OSError:
                pass  # whoever asked has seen enough
            if self._is_silent:
                self._done.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        self._done.set()
        self._thread.join(PATIENCE_SECONDS)
        self._listening.close()


@contextmanager
def saying(*pieces: bytes, is_silent: bool = False) -> Iterator[Server]:
    server = Server(pieces, is_silent=is_silent)
    try:
        yield server
    finally:
        server.close()


def ask(server: Server, method: str = "GET", content: bytes | None = None, **headers: str) -> Answer:
    return exchange(
        server.address, method, "/x", headers, content, tls=None, silence_seconds=5.0, max_bytes=100_000
    )


@pytest.mark.parametrize(
    ("said", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", b"abc"),
        (b"HTTP/1.0 200\r\n\r\nuntil it ends", b"until it ends"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"ok"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            b"abc0123456789",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 30_000 + b"0\r\n\r\n",
            b"x" * 30_000,
        ),
    ],
)
@pytest.mark.parametrize("is_torn", [False, True])
def test_answers(said: bytes, body: bytes, is_torn: bool) -> None:
    pieces = (
        [said[start : start + 7] for start in range(0, min(len(said), 700), 7)] + [said[700:]]
        if is_torn
        else [said]
    )
    with saying(*pieces) as server:
        answer = ask(server)
    assert answer.body == body


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"x" * (3 * MAX_HEAD_BYTES),
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_no_answer_is_told(said: bytes) -> None:
    with saying(said) as server, pytest.raises((NotHttp, ConnectionError)):
        ask(server)


def test_a_server_that_hangs_up_without_a_word() -> None:
    with saying() as server, pytest.raises(EOFError):
        ask(server)


def test_a_server_that_falls_silent() -> None:
    with (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", is_silent=True) as server,
        pytest.raises(TimeoutError),
    ):
        exchange(server.address, "GET", "/x", {}, None, tls=None, silence_seconds=0.1, max_bytes=10)


@pytest.mark.parametrize(
    "head",
    [b"", b"Content-Length: 999999999\r\n", b"Transfer-Encoding: chunked\r\n"],
)
def test_no_more_is_read_than_is_allowed(head: bytes) -> None:
    start = b"7fffffff\r\n" if b"chunked" in head else b""
    with saying(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + start, *[b"x" * 65_536] * 40) as server:
        assert len(ask(server).body) == 100_001, "one more tells that there is more"


def packed(content: bytes, coding: bytes = b"gzip") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        coding,
        len(content),
        content,
    )


def test_a_compressed_answer() -> None:
    for coding in (b"gzip", b" GZIP "):
        with saying(packed(gzip.compress(b"all of it"), coding)) as server:
            assert ask(server).body == b"all of it"
        assert b"\r\nAccept-Encoding: gzip\r\n" in server.asked
    with saying(packed(b"")) as server:
        assert ask(server).body == b""
    with saying(packed(b"as it is", b"identity")) as server:
        assert ask(server).body == b"as it is"


def test_a_compressed_answer_becomes_no_larger_than_is_allowed() -> None:
    with saying(packed(gzip.compress(bytes(50_000_000)))) as server:
        assert len(ask(server).body) == 100_001, "one more tells that there is more"


@pytest.mark.parametrize(
    ("content", "coding"),
    [
        (gzip.compress(b"all of it", mtime=0)[:-9], b"gzip"),
        (b"not compressed at all", b"gzip"),
        (b"abc", b"br"),
        (gzip.compress(b"abc", mtime=0), b"gzip, gzip"),
        (gzip.compress(b"abc", mtime=0) * 2, b"gzip"),
    ],
    ids=["cut off", "none", "another coding", "twice", "two of them"],
)
def test_what_cannot_be_unpacked_is_told(content: bytes, coding: bytes) -> None:
    with saying(packed(content, coding)) as server, pytest.raises(NotHttp):
        ask(server)


def test_what_is_asked() -> None:
    with saying(
        b"HTTP/1.1 201 Created\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n"
    ) as server:
        answer = ask(server, "POST", b"{}", Authorization="Bearer x")
        port = server.address[1]
    assert (answer.status, answer.all("set-cookie")) == (201, ["a=1", "b=2"])
    assert (
        server.asked
        == (
            f"POST /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept-Encoding: identity\r\nConnection: close\r\n"
            "Authorization: Bearer x\r\nContent-Length: 2\r\n\r\n{}"
        ).encode()
    )


def test_nobody_smuggles_a_header_in() -> None:
    with saying(b"HTTP/1.1 200 OK\r\n\r\n") as server, pytest.raises(NotHttp, match="line break"):
        ask(server, Cookie="a=1\r\nX-Evil: 1")
    assert server.asked == b""
