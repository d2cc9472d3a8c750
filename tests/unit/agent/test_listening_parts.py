"""Small parts of a listening agent: addresses, networks, requests, guesses."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.agent.listen_address import ListenAddress, Networks
from gpuherd.agent.node_info_port import Guesses
from gpuherd.agent.requests import (
    MAX_HEAD_BYTES,
    BadRequest,
    Request,
    Response,
    body_length,
    parse_head,
)
from gpuherd.model.errors import Misconfigured
from support.herd import ManualClock


@pytest.mark.parametrize(
    ("text", "host", "port", "is_loopback"),
    [
        ("0.0.0.0:9000", "0.0.0.0", 9000, False),
        ("0.0.0.0", "0.0.0.0", 8472, False),
        ("[::]:9000", "::", 9000, False),
        ("::1", "::1", 8472, True),
        ("[::1]", "::1", 8472, True),
        ("localhost:1", "127.0.0.1", 1, True),
    ],
)
def test_where_to_listen(text: str, host: str, port: int, is_loopback: bool) -> None:
    address = ListenAddress.parse("agent.listen", text, 8472)
    assert (address.host, address.port, address.is_loopback) == (host, port, is_loopback)
    assert ListenAddress.parse("agent.listen", str(address), 0) == address


@pytest.mark.parametrize(
    "text", ["", ":8472", "gpu01", "0.0.0.0:", "0.0.0.0:x", "0.0.0.0:70000", "0.0.0.0:-1", "1.2.3:4"]
)
def test_where_nobody_can_listen(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"agent\.listen: .* is not an IP address with a port"):
        ListenAddress.parse("agent.listen", text, 8472)


def test_networks() -> None:
    networks = Networks("agent.key", ["10.1.0.0/16", "192.0.2.7", "fd00::/8"])
    assert all(map(networks.include, ["10.1.2.3", "192.0.2.7", "::ffff:10.1.2.3", "fd00::1", "fd00::1%eth0"]))
    assert not any(map(networks.include, ["10.2.0.1", "192.0.2.8", "::1", "127.0.0.1", "::ffff:10.2.0.1"]))
    assert not Networks("agent.key", []).include("127.0.0.1")
    with pytest.raises(Misconfigured, match=r'agent\.key: "10\.0\.0\.1/8" is not a network'):
        Networks("agent.key", ["10.0.0.1/8"])


def test_a_request() -> None:
    request = parse_head(b"POST /get-status?a=b HTTP/1.1\r\nHost: x:1\r\nContent-Length:  12 \r\nX:\r\n\r\n")
    assert request == Request(
        method="POST", path="/get-status", headers={"host": "x:1", "content-length": "12", "x": ""}
    )
    assert body_length(request) == 12


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\0", b"\n\t", b"x\n"])
def test_a_hostile_header_is_refused_at_once(end: bytes) -> None:
    head = b"GET / HTTP/1.1\r\na:" + b" " * (MAX_HEAD_BYTES - 100) + end + b"\r\n\r\n"
    began = time.process_time()
    with pytest.raises(BadRequest, match="malformed header"):
        parse_head(head)
    assert time.process_time() - began < 0.5, "everything the agent does waits for this"


@given(st.binary(max_size=200))
def test_any_bytes_give_a_request_or_a_refusal(data: bytes) -> None:
    try:
        request = parse_head(data + b"\r\n\r\n")
    except BadRequest:
        return
    assert request.path.startswith("/")


def test_an_answer() -> None:
    head, _, body = Response(status=403, body=b"no\n").encode().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"Content-Length: 3\r\n" in head
    assert body == b"no\n"


def test_guesses_run_out_and_come_back() -> None:
    clock = ManualClock()
    guesses = Guesses(most=3, window_seconds=60, most_addresses=2, monotonic=clock.monotonic)
    for _ in range(3):
        assert not guesses.are_too_many("a")
        guesses.note("a")
        clock.advance(1)
    assert guesses.are_too_many("a")
    assert not guesses.are_too_many("b")
    clock.advance(57.5)
    assert not guesses.are_too_many("a"), "the first guess is a minute old"
    guesses.note("a")
    assert guesses.are_too_many("a"), "but there are not three new ones"
    for address in "bc":
        guesses.note(address)
    assert not guesses.are_too_many("a"), "memory is bounded"


def test_only_who_listens_pays_for_it() -> None:
    code = (
        "import sys; import gpuherd.agent.loop; "
        "print([name for name in sys.modules if name.startswith(('gpuherd.agent.listen', 'gpuherd.agent.door', "
        "'websockets'))])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
