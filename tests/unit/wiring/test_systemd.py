"""What systemd is told, over real datagram sockets."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.wiring.systemd import Effort, Pulse, Systemd, keep_told, told, told_of_start
from support.running import PATIENCE_SECONDS


class Listener:
    """Stands for systemd."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(10)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)

    def next(self) -> list[str]:
        return self._socket.recv(4096).decode().split("\n")

    async def next_within(self) -> list[str]:
        return await asyncio.to_thread(self.next)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listener]:
    is_path = request.param == "path"
    listener = Listener(str(tmp_path / "notify") if is_path else f"@gpuherd-test-{secrets.token_hex(8)}")
    yield listener
    listener.close()


def pulse(beats: int = 1, *, silence: float = 60.0, ready: bool = True, status: str = "fine") -> Pulse:
    return Pulse(beats=beats, longest_silence_seconds=silence, is_ready=ready, status=status)


def test_everything_assigned_goes_in_one_datagram(listener: Listener) -> None:
    Systemd(listener.address).tell("READY=1", "STATUS=all is well")
    assert listener.next() == ["READY=1", "STATUS=all is well"]


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),  # inherited: another process's
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdog_is_ours_or_nobody_s(environment: dict[str, str], seconds: float | None) -> None:
    systemd = Systemd.of({"NOTIFY_SOCKET": "/run/notify", **environment})
    assert systemd.is_there
    assert systemd.watchdog_seconds == seconds


@pytest.mark.parametrize("address", [None, "", "notify", "vsock:2:1234"])
def test_without_a_socket_of_ours_nobody_is_told(address: str | None) -> None:
    systemd = Systemd.of({} if address is None else {"NOTIFY_SOCKET": address})
    assert not systemd.is_there
    systemd.tell("READY=1")
    asyncio.run(asyncio.wait_for(keep_told(systemd, pulse), PATIENCE_SECONDS))


def test_a_socket_that_is_gone_costs_a_log_line_and_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Systemd(str(tmp_path / "gone")).tell("READY=1")
    assert "cannot send READY to systemd: No such file or directory" in caplog.text


def test_a_service_is_told_ready_once_then_fed_then_stopping(listener: Listener) -> None:
    now = pulse(ready=False, status="starting")

    async def serve() -> None:
        nonlocal now
        async with told(Systemd(listener.address, watchdog_seconds=0.2), lambda: now):
            assert await listener.next_within() == ["WATCHDOG=1", "STATUS=starting"]
            now = pulse(status="fine\nREADY=0")
            while (messages := await listener.next_within()) == ["WATCHDOG=1"]:
                pass
            assert messages == ["WATCHDOG=1", "READY=1", "STATUS=fine READY=0"]
            assert await listener.next_within() == ["WATCHDOG=1"]

    asyncio.run(serve())
    while (messages := listener.next()) == ["WATCHDOG=1"]:
        pass
    assert messages == ["STOPPING=1", "STATUS=stopping"]


def test_work_that_stands_still_is_not_covered_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    listener = Listener(str(tmp_path / "notify"))
    clock = 0.0
    now = pulse(silence=10)

    async def watch() -> None:
        nonlocal clock, now
        telling = asyncio.create_task(
            keep_told(Systemd(listener.address, watchdog_seconds=0.04), lambda: now, monotonic=lambda: clock)
        )
        assert "WATCHDOG=1" in await listener.next_within()
        clock, now = 11.0, pulse(silence=10, status="hangs")
        while (messages := await listener.next_within()) == ["WATCHDOG=1"]:
            pass
        assert messages == ["STATUS=hangs"]
        clock, now = 12.0, pulse(beats=2, silence=10, status="hangs")
        assert await listener.next_within() == ["WATCHDOG=1"]
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)

    asyncio.run(watch())
    listener.close()
    assert caplog.text.count("no progress for") == 1


@pytest.mark.parametrize("worked", [Effort(1.0, 0), Effort(0.0, 1)])
def test_a_start_that_works_asks_for_more_time_until_it_is_over(listener: Listener, worked: Effort) -> None:
    rounds = 0

    def effort() -> Effort:
        nonlocal rounds
        rounds += 1
        return Effort(worked.cpu_seconds * rounds, worked.blocks * rounds)

    with told_of_start(Systemd(listener.address), effort=effort, look_seconds=0.01):
        for _ in range(3):
            assert listener.next() == ["EXTEND_TIMEOUT_USEC=120000000", "STATUS=starting since 0 s"]
    Systemd(listener.address).tell("READY=1")
    while (messages := listener.next())[0].startswith("EXTEND"):
        pass
    assert messages == ["READY=1"]


def test_a_start_that_does_nothing_gets_no_more_time(tmp_path: Path) -> None:
    listener = Listener(str(tmp_path / "notify"))
    looks: list[Effort] = []

    def effort() -> Effort:
        looks.append(Effort(7.0 + len(looks) / 10_000, 12))  # looking itself costs a little
        return looks[-1]

    with told_of_start(Systemd(listener.address), effort=effort, look_seconds=0.005):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(looks) < 5:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    Systemd(listener.address).tell("READY=1")
    assert listener.next() == ["READY=1"]
    listener.close()


def test_the_kernel_tells_work_from_waiting() -> None:
    before = Effort.of_this_process()
    sum(number * number for number in range(1_000_000))
    assert Effort.of_this_process().is_work_since(before)


def test_a_start_that_fails_is_not_covered_up(listener: Listener) -> None:
    with (
        pytest.raises(ValueError, match="cannot"),
        told_of_start(Systemd(listener.address), look_seconds=60),
    ):
        raise ValueError("cannot")
    Systemd(listener.address).tell("READY=1")
    assert listener.next() == ["READY=1"]
