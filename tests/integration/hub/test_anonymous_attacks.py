"""Someone who is not logged in tries to take the hub down."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import gzip
import json
import select
import socket
import statistics
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from litestar import Litestar

from gpuherd.api.app import _Answered
from gpuherd.api.asgi import Message
from gpuherd.api.openapi import schema_of
from gpuherd.auth.local_key import read_local_key
from gpuherd.wire.frames import SUBPROTOCOL
from support.attacked_hub import AttackedHub, attacked_hub, head, many_files, status_of
from support.hub import eventually, running_hub
from support.soak import SOAK
from support.tally import Tally

IS_LONG = SOAK > 1
JSON = "Content-Type: application/json"
MIB = 2**20
HEALTH = head("GET", "health", "Connection: close")


def test_the_schema_is_built_once_and_sent_as_the_page_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Litestar] = []

    def counted(app: Litestar) -> bytes:
        built.append(app)
        return schema_of(app)

    monkeypatch.setattr("gpuherd.api.hub.schema_of", counted)

    async def story() -> None:
        async with (
            running_hub(tmp_path) as hub,
            aiohttp.ClientSession(hub.url, auto_decompress=False) as http,
        ):

            async def get(**headers: str) -> tuple[int, bytes, str]:
                async with http.get("api/v1/openapi.json", headers=headers) as response:
                    assert response.headers["cache-control"] == "no-cache"
                    assert response.headers["x-content-type-options"] == "nosniff"
                    return response.status, await response.read(), response.headers["etag"]

            plain = {"Accept-Encoding": "identity"}
            answers = set(await asyncio.gather(*(get(**plain) for _ in range(20))))
            [(status, body, etag)] = answers
            assert status == 200
            status, compressed, _ = await get(**{"Accept-Encoding": "gzip"})
            assert gzip.decompress(compressed) == body
            assert await get(**{"If-None-Match": etag}) == (304, b"", etag)

    asyncio.run(story())
    assert len(built) == 1


@pytest.mark.attack
@pytest.mark.promise("schema-costs-nothing")
def test_many_requests_for_the_schema_do_not_stop_the_hub(tmp_path: Path, tally: Tally) -> None:
    count = 500 if IS_LONG else 50
    with attacked_hub(tmp_path) as hub, contextlib.ExitStack() as stack:
        began = time.monotonic()
        connections = [stack.enter_context(hub.connect()) for _ in range(count)]
        for connection in connections:
            connection.sendall(head("GET", "openapi.json", "Connection: close"))
        answers = [status_of(connection.recv(4096)) for connection in connections]
        took = time.monotonic() - began
        gap = hub.stop()
    held = answers.count(200)
    figure = f"longest gap between ticks {gap:.2f} s, all answered after {took:.2f} s"
    tally.add("openapi.json by many at once", tries=count, held=held, figure=figure)
    assert held == count


@pytest.mark.promise("host-in-the-request-line")
def test_a_host_in_the_request_line_counts_where_there_is_no_host_header(tmp_path: Path) -> None:
    """With both, the header is what is checked: Granian does not tell the other."""
    expected = {
        ("localhost", None): 200,
        ("evil.example", None): 421,
        ("localhost", "evil.example"): 421,
        ("evil.example", "localhost"): 200,
    }
    with attacked_hub(tmp_path) as hub:
        for (target, name), status in expected.items():
            lines = [f"GET http://{target}/api/v1/health HTTP/1.1", "Connection: close"]
            request = "\r\n".join([*lines, *([] if name is None else [f"Host: {name}"]), "", ""])
            assert status_of(hub.ask(request.encode())) == status, request


@pytest.mark.attack
@pytest.mark.promise("bodies-have-a-budget")
@pytest.mark.parametrize(
    ("announced", "is_paced"),
    [(MIB, True), (8192, True), (8192, False)],
    ids=["1 MiB", "8 KiB", "8 KiB at once"],
)
def test_unfinished_bodies_do_not_fill_the_memory(
    tmp_path: Path, tally: Tally, announced: int, is_paced: bool
) -> None:
    """Paced, to see what the hub keeps; at once, to see what the connections cost until it has looked at them."""
    count = 4000 if IS_LONG else 200 if announced == MIB else 1000
    limit = 50 * MIB if is_paced else count * 32 * 1024
    request = head("POST", "session", JSON, f"Content-Length: {announced}") + b" " * (announced - 1)
    with many_files(count + 256), attacked_hub(tmp_path) as hub, contextlib.ExitStack() as stack:
        assert status_of(hub.ask(HEALTH)) == 200
        before = hub.rss_bytes()
        for number in range(1, count + 1):
            connection = stack.enter_context(hub.connect())
            with contextlib.suppress(ConnectionError):
                connection.sendall(request)
            if number == count or (is_paced and number % 100 == 0):
                # Answered after all of the above were looked at.
                assert status_of(hub.ask(HEALTH, source="127.0.0.9")) == 200
        grown = hub.rss_bytes() - before
        answer = hub.ask(head("POST", "session", JSON, "Content-Length: 2") + b"{}", source="127.0.0.9")
        tally.add(
            f"unfinished bodies of {announced // 1024} KiB{'' if is_paced else ', all at once'}",
            tries=count,
            held=count if grown <= limit else 0,
            figure=f"memory +{grown / MIB:.0f} MiB",
        )
    assert grown <= limit
    assert status_of(answer) == 400, "another address has its own share"


BROKEN = {
    "hung up": head("POST", "session", JSON, "Content-Length: 9") + b"{",
    "not UTF-8": head("POST", "session", JSON, "Content-Length: 31", "Connection: close")
    + b'{"name":"\xff","password":"12345"}',
    "bad chunk": head("POST", "session", JSON, "Transfer-Encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n",
    "long chunk extension": head("POST", "enroll", JSON, "Transfer-Encoding: chunked")
    + b"2;"
    + b"x" * 20_000
    + b"\r\n{}\r\n0\r\n\r\n",
    "callback": head("GET", "login/oidc/callback?state=x&code=y", "Connection: close"),
}


def _break(hub: AttackedHub, request: bytes, *, is_answered: bool) -> int:
    if is_answered:
        return status_of(hub.ask(request))
    with hub.connect() as connection:
        connection.sendall(request)
    return 400


class Sent:
    """A ``send`` that keeps the status."""

    def __init__(self) -> None:
        self.status = 0

    async def __call__(self, message: Message) -> None:
        self.status = message.get("status", self.status)


@pytest.mark.parametrize(("length", "expected"), [(b"9", 400), (b"9000", 413)], ids=["hung up", "too large"])
def test_a_refused_request_leaves_no_cycle_behind(tmp_path: Path, length: bytes, expected: int) -> None:
    """A cycle would be kept until Python looks for it, with the request, its connection and its buffers."""

    async def hang_up() -> Message:
        return {"type": "http.disconnect"}

    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            assert hub._server is not None
            headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/api/v1/session",
                "query_string": b"",
                "client": ("127.0.0.1", 4711),
                "headers": [*headers, (b"content-length", length)],
            }
            sent = Sent()
            watched = weakref.ref(sent)
            gc.disable()
            try:
                await hub._server._app(scope, hang_up, sent)
                assert sent.status == expected
                del sent
                assert watched() is None
            finally:
                gc.enable()

    asyncio.run(story())


@pytest.mark.attack
@pytest.mark.promise("sender-mistakes-are-not-logged")
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_requests_leave_the_log_alone(tmp_path: Path, tally: Tally, kind: str) -> None:
    request, is_answered = BROKEN[kind], kind != "hung up"
    with attacked_hub(tmp_path) as hub:
        assert status_of(hub.ask(head("GET", "health"))) == 200
        logged, began = hub.log_bytes(), time.monotonic()

        def attack(seconds: float) -> list[int]:
            statuses: list[int] = []
            while len(statuses) < 25 or time.monotonic() - began < seconds:
                statuses.append(_break(hub, request, is_answered=is_answered))
            return statuses

        times: list[float] = []
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            attacks = [threads.submit(attack, 8.0 if IS_LONG else 0.0) for _ in range(4)]
            while not all(one.done() for one in attacks):
                asked = time.monotonic()
                assert status_of(hub.ask(head("GET", "health"), source="127.0.0.9")) == 200
                times.append(time.monotonic() - asked)
                time.sleep(0.02)
        took = time.monotonic() - began
        statuses = [status for one in attacks for status in one.result()]
        assert status_of(hub.ask(head("GET", "health"))) == 200
        grown, log = hub.log_bytes() - logged, hub.log()
    middle = statistics.median(times) * 1000 if times else 0.0
    tally.add(
        f"broken requests: {kind}",
        tries=len(statuses),
        held=sum(400 <= status < 500 for status in statuses),
        figure=f"health p50 {middle:.0f} ms, {len(statuses) / took:.0f}/s, log {grown / took / 1000:.1f} kB/s",
    )
    assert [status for status in set(statuses) if not 400 <= status < 500] == []
    assert "Traceback" not in log
    assert grown <= 10_000 * max(took, 1.0)


ONE_BYTE = head("POST", "session", JSON, "Content-Length: 40") + b"{"
HELD = {"silent": b"", "half a head": ONE_BYTE[:40], "one byte of a body": ONE_BYTE}
ELSEWHERE = "127.0.0.9"


def _link(hub: AttackedHub, source: str) -> bytes:
    """Begin a node's link and return the beginning of the answer."""
    return hub.ask(
        head(
            "GET",
            "agent",
            f"Authorization: Bearer {hub.credential}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            f"Sec-WebSocket-Protocol: {SUBPROTOCOL}",
        ),
        source,
    )


@pytest.mark.attack
@pytest.mark.promise("one-address-cannot-take-all-connections")
@pytest.mark.parametrize("kind", HELD)
def test_one_address_cannot_take_all_connections(tmp_path: Path, tally: Tally, kind: str) -> None:
    most, count = (8000, 9000) if IS_LONG else (256, 400)
    with (
        many_files(count + 512),
        attacked_hub(tmp_path, is_patient=True, max_connections=most) as hub,
        contextlib.ExitStack() as stack,
        concurrent.futures.ThreadPoolExecutor(2) as threads,
    ):
        ended = threading.Event()

        def ask_all_the_time(ask: Callable[[], int], wanted: int) -> list[float]:
            times: list[float] = []
            while not ended.wait(0.05) or not times:
                asked = time.monotonic()
                assert ask() == wanted
                times.append(time.monotonic() - asked)
            return times

        asking = [
            threads.submit(ask_all_the_time, lambda: status_of(hub.ask(HEALTH, ELSEWHERE)), 200),
            threads.submit(ask_all_the_time, lambda: status_of(_link(hub, ELSEWHERE)), 101),
        ]
        try:
            for _ in range(count):
                connection = stack.enter_context(hub.connect())
                with contextlib.suppress(ConnectionError):
                    connection.sendall(HELD[kind])
            statuses = status_of(hub.ask(HEALTH, ELSEWHERE)), status_of(_link(hub, ELSEWHERE))
            own = status_of(_link(hub, "127.0.0.1"))
            if IS_LONG:
                time.sleep(5)
        finally:
            ended.set()
        health, link = (max(one.result()) for one in asking)
        tally.add(
            f"connections of one address: {kind}",
            tries=count,
            held=count if statuses == (200, 101) else 0,
            figure=f"longest wait of others: page {health:.2f} s, node {link:.2f} s",
        )
    assert statuses == (200, 101)
    assert own == 101, "a node at the same address has a place, too"


def test_connections_of_nodes_and_people_are_not_closed(tmp_path: Path) -> None:
    """More than an address may have, but all of them logged in."""
    known = head("GET", "health", "Authorization: Bearer {}")
    with attacked_hub(tmp_path, is_patient=True, max_connections=256) as hub, contextlib.ExitStack() as stack:
        request = known.replace(b"{}", hub.credential.encode())
        mine = []
        for _ in range(50):
            connection = stack.enter_context(hub.connect())
            connection.sendall(request)
            assert status_of(connection.recv(65_536)) == 200
            mine.append(connection)
        strangers = [stack.enter_context(hub.connect()) for _ in range(100)]
        with contextlib.suppress(ConnectionError):
            assert strangers[0].recv(1) == b"", "the oldest connection of a stranger is closed"
        for connection in mine:
            connection.sendall(request)
            assert status_of(connection.recv(65_536)) == 200


@pytest.mark.attack
@pytest.mark.promise("one-credential-cannot-take-all-connections")
@pytest.mark.parametrize("kind", ["idle", "in use"])
def test_one_credential_cannot_take_all_connections(tmp_path: Path, tally: Tally, kind: str) -> None:
    most, count = (8000, 9000) if IS_LONG else (256, 400)
    body = "" if kind == "idle" else "Content-Length: 9"
    with (
        many_files(count + 512),
        attacked_hub(tmp_path, is_patient=True, max_connections=most) as hub,
        contextlib.ExitStack() as stack,
    ):
        request = head(
            "GET" if kind == "idle" else "POST",
            "session" if kind == "idle" else "reports",
            f"Authorization: Bearer {hub.credential}",
            "Content-Type: application/json",
            *([body] if body else []),
        )
        for _ in range(count):
            connection = stack.enter_context(hub.connect())
            with contextlib.suppress(ConnectionError):
                connection.sendall(request)
                if kind == "idle":
                    connection.recv(65_536)
        held = [status_of(hub.ask(HEALTH, ELSEWHERE, timeout=5)) for _ in range(5)].count(200)
        tally.add(f"connections of one credential: {kind}", tries=count, held=count if held == 5 else 0)
    assert held == 5


def _looks(hub: AttackedHub, key: str) -> int:
    """Return how often the hub has looked at its connections."""
    answer = hub.ask(head("GET", "health", "Connection: close", f"Authorization: Bearer {key}"), ELSEWHERE)
    health = json.loads(answer.partition(b"\r\n\r\n")[2])
    return next(int(loop["rounds"]) for loop in health["loops"] if loop["name"] == "watch connections")


def test_a_lab_behind_one_address_comes_back_at_once(tmp_path: Path) -> None:
    """All of its connections are open before the first of them says who it is."""
    request = head("GET", "health", "Authorization: Bearer {}")
    with attacked_hub(tmp_path, max_connections=1600) as hub, contextlib.ExitStack() as stack:
        lab = [stack.enter_context(hub.connect()) for _ in range(100)]
        key = read_local_key(tmp_path / "state")
        assert key is not None
        looks = _looks(hub, key)
        while _looks(hub, key) < looks + 3:
            time.sleep(0.05)
        for connection in lab:
            connection.sendall(request.replace(b"{}", hub.credential.encode()))
        assert [status_of(connection.recv(65_536)) for connection in lab] == [200] * 100


@pytest.mark.attack
@pytest.mark.promise("unread-responses-are-dropped")
def test_responses_that_nobody_reads_hold_little_and_end(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<head></head>")
    (page / "large.bin").write_bytes(bytes(2**22))
    handed: list[int] = []
    send_pieces = _Answered._send_pieces

    async def counted(self: _Answered, message: Message) -> None:
        send = self._send

        async def count(piece: Message) -> None:
            await send(piece)
            handed.append(len(piece["body"]))

        self._send = count
        await send_pieces(self, message)

    monkeypatch.setattr(_Answered, "_send_pieces", counted)
    monkeypatch.setattr("gpuherd.api.app.UNREAD_SECONDS", 1.0)
    count = 20

    async def story() -> None:
        async with running_hub(tmp_path / "state", hub_options={"page_folder": page}) as hub:
            loop, address = asyncio.get_running_loop(), ("127.0.0.1", hub.settings.address.port)
            with contextlib.ExitStack() as stack:
                ends = select.poll()
                for _ in range(count):
                    client = stack.enter_context(socket.socket())
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    client.setblocking(False)
                    await loop.sock_connect(client, address)
                    await loop.sock_sendall(client, b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    ends.register(client, 0)
                await eventually(lambda: len(ends.poll(0)) == count)
            held = sum(handed) // count
            tally.add("responses that nobody reads", tries=count, held=count, figure=f"{held >> 10} KiB each")
            assert held < 2**19
            handed.clear()
            async with aiohttp.ClientSession(hub.url) as http, http.get("large.bin") as response:
                assert await response.read() == bytes(2**22)

    asyncio.run(story())
