"""Speaking to a store: deadlines, no redirects, and no secret in what is said about it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gpuherd.history.deadline import due_at
from gpuherd.history.outside.server import Server, Unanswered, authorization_header
from support.running import PATIENCE_SECONDS

SECRET = "Basic c2VjcmV0"


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer(self)

        do_GET = do_POST  # noqa: N815 - as its base calls it

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def plain(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_a_connection_is_kept() -> None:
    with answering(plain(204)) as url, closing(Server(f"{url}/base/")) as server:
        assert [server.ask("POST", "/x", b"1").is_new_line for _ in range(3)] == [True, False, False]


def test_base_path_query_and_secret_are_sent_along() -> None:
    seen: list[tuple[str, str | None]] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.append((handler.path, handler.headers.get("Authorization")))
        plain(200)(handler)

    with (
        answering(answer) as url,
        closing(Server(f"{url}/base?tenant=1", authorization=SECRET)) as server,
    ):
        server.ask("GET", "/x?y=2")
    assert seen == [("/base/x?y=2&tenant=1", SECRET)]


def test_nobody_is_followed_elsewhere() -> None:
    asked: list[str] = []

    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        plain(307, Location="/other")(handler)

    with answering(elsewhere) as url, closing(Server(url, authorization=SECRET)) as server:
        answer = server.ask("POST", "/here", b"")
    assert (answer.status, answer.is_good, asked) == (307, False, ["/here"])


def test_a_trickle_of_bytes_does_not_prolong_the_deadline() -> None:
    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        with_patience = time.monotonic() + PATIENCE_SECONDS
        try:
            while time.monotonic() < with_patience:
                handler.wfile.write(b"x")
                handler.wfile.flush()
                time.sleep(0.02)
        except OSError:
            handler.close_connection = True

    with (
        answering(trickle) as url,
        closing(Server(url, timeout_seconds=0.3)) as server,
        pytest.raises(Unanswered, match="no response in time"),
    ):
        server.ask("GET", "/")
    with (
        answering(trickle) as url,
        closing(Server(url, timeout_seconds=10 * PATIENCE_SECONDS)) as server,
        due_at(time.monotonic() + 0.3),
        pytest.raises(Unanswered, match="no response in time"),
    ):
        server.ask("GET", "/")


def test_an_answer_that_is_cut_short_is_none() -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"half")
        handler.close_connection = True

    with answering(cut) as url, closing(Server(url)) as server, pytest.raises(Unanswered, match="lost"):
        server.ask("GET", "/")


def test_an_answer_in_chunks() -> None:
    def chunks(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n")

    with answering(chunks) as url, closing(Server(url)) as server:
        assert [server.ask("GET", "/")[1:] for _ in range(2)] == [
            (b"abcdefgh", None, True),
            (b"abcdefgh", None, False),
        ]


def test_an_endless_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.history.outside.server.MAX_ANSWER_BYTES", 1000)
    with (
        answering(plain(200, b"x" * 2000)) as url,
        closing(Server(url)) as server,
        pytest.raises(Unanswered, match="larger than 1000 bytes"),
    ):
        server.ask("GET", "/")


def test_what_is_wrong_is_told_without_the_secret() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        server = Server(f"http://127.0.0.1:{port}", authorization=SECRET)
        with pytest.raises(Unanswered) as told:
            server.ask("GET", "/")
    assert str(told.value) == f"http://127.0.0.1:{port}: nothing listens there"
    assert SECRET not in repr(told.value)


def test_something_that_is_not_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            line, _ = listener.accept()
            with line:
                line.recv(10_000)
                line.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        server = Server(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_seconds=5)
        with pytest.raises(Unanswered, match="does not speak HTTP"):
            server.ask("GET", "/")
        thread.join()


def test_what_a_server_says_is_shown_short_and_on_one_line() -> None:
    with answering(plain(500, b"a\n\x1b[31mred\x00 " + b"x" * 5000)) as url, closing(Server(url)) as server:
        text = server.ask("GET", "/").text()
    assert text.startswith("a ?[31mred? x")
    assert len(text) <= 300
    assert text.isprintable()


@pytest.mark.parametrize(
    ("user", "password", "token", "header"),
    [
        (None, None, None, None),
        ("ada", "geheim", None, "Basic YWRhOmdlaGVpbQ=="),
        (None, None, "t0ken", "Bearer t0ken"),
    ],
)
def test_header(user: str | None, password: str | None, token: str | None, header: str | None) -> None:
    assert authorization_header(user, password, token) == header
