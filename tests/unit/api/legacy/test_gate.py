"""Only listed networks come in, only so often, and only with bodies of a reasonable size."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpuherd.api.errors import HttpError
from gpuherd.api.legacy.gate import MAX_SENDERS, Gate, read_body
from gpuherd.api.networks import parse_networks
from gpuherd.model.errors import Misconfigured
from support.herd import ManualClock


def scope(peer: str, **headers: str) -> dict[str, Any]:
    listed = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "client": (peer, 1234), "headers": listed}


def gate(*networks: str, pace: float = 10.0, clock: ManualClock | None = None) -> Gate:
    return Gate(
        parse_networks(networks, "legacy.gpustat.networks"),
        requests_per_second=pace,
        monotonic=(clock or ManualClock()).monotonic,
    )


@pytest.mark.parametrize(
    ("peer", "seen"),
    [
        ("192.168.0.9", "192.168.0.9"),
        ("::ffff:192.168.0.9", "192.168.0.9"),
        ("10.1.2.3", "10.1.2.3"),
        ("fd00::7", "fd00::7"),
    ],
)
def test_listed_networks_come_in(peer: str, seen: str) -> None:
    assert gate("192.168.0.0/24", "10.1.2.3", "fd00::/8").check(scope(peer)) == seen


@pytest.mark.parametrize("peer", ["192.168.1.9", "::1", "127.0.0.1", "not-an-address", ""])
def test_nobody_else_comes_in_whatever_they_claim(peer: str) -> None:
    with pytest.raises(HttpError) as caught:
        gate("192.168.0.0/24").check(scope(peer, x_forwarded_for="192.168.0.9", x_real_ip="192.168.0.9"))
    assert caught.value.status == 403


@pytest.mark.parametrize("text", ["gpus", "192.168.0.0/33", "", "192.168.0.0/24,10.0.0.0/8"])
def test_what_is_no_network_is_named_with_its_key(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"legacy\.gpustat\.networks"):
        parse_networks([text], "legacy.gpustat.networks")


def test_the_hasty_wait_and_nobody_else_does() -> None:
    clock = ManualClock()
    held = gate("10.0.0.0/8", pace=10.0, clock=clock)
    for _ in range(40):
        held.check(scope("10.0.0.1"))
    with pytest.raises(HttpError) as caught:
        held.check(scope("10.0.0.1"))
    assert caught.value.status == 429
    held.check(scope("10.0.0.2"))
    clock.advance(0.5)
    for _ in range(5):
        held.check(scope("10.0.0.1"))
    with pytest.raises(HttpError):
        held.check(scope("10.0.0.1"))


def test_memory_for_senders_is_bounded() -> None:
    held = gate("10.0.0.0/8")
    for number in range(MAX_SENDERS + 500):
        held.check(scope(f"10.0.{number // 250}.{number % 250}"))
    assert len(held._left) == MAX_SENDERS


# -- bodies ----------------------------------------------------------------------------------------------------------


def read(chunks: list[bytes], **headers: str) -> tuple[bytes | HttpError, int]:
    """Give what became of a body and how many of its chunks were asked for."""
    asked = 0

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": chunks[asked - 1], "more_body": asked < len(chunks)}

    async def run() -> bytes | HttpError:
        try:
            return await read_body(scope("10.0.0.1", **headers), receive, 1024)
        except HttpError as error:
            return error

    return asyncio.run(run()), asked


def test_a_body_in_pieces_is_put_together() -> None:
    assert read([b"a" * 500, b"b" * 524]) == (b"a" * 500 + b"b" * 524, 2)


def test_a_large_body_is_refused_before_it_is_read() -> None:
    error, asked = read([b"a"] * 100, content_length="100000000")
    assert isinstance(error, HttpError)
    assert (error.status, asked) == (413, 0)


def test_a_body_that_lies_about_its_size_is_read_no_further() -> None:
    error, asked = read([b"a" * 600] * 100, content_length="12")
    assert isinstance(error, HttpError)
    assert (error.status, asked) == (413, 2)


def test_a_compressed_body_is_refused() -> None:
    error, asked = read([b"a"], content_encoding="gzip")
    assert isinstance(error, HttpError)
    assert (error.status, asked) == (415, 0)
