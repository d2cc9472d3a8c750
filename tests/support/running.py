"""Commands of gpuherd as processes of their own, and patience with them."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

GPUHERD = [sys.executable, "-m", "gpuherd"]
PATIENCE_SECONDS = 120.0
"""How long a test waits for what will come unless there is an error. It goes on as soon as that is there, so this
measures nothing: it only ends a test that would wait for ever, even on a very slow machine."""


_PORTS_EACH = 200
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


@functools.cache
def _own_ports() -> Iterator[int]:
    """Take a block of ports that no other test process has, for as long as this one lives.

    None of them is one that the kernel gives to connections: what is free now may be taken when a slow server at last
    comes to bind it.
    """
    low, high = map(int, _EPHEMERAL.read_text().split())
    outside = [*range(11_000, min(low, 65_536)), *range(high + 1, 65_536)]
    folder = Path(tempfile.gettempdir()) / "gpuherd-test-ports"
    folder.mkdir(exist_ok=True)
    for first in range(0, len(outside) - _PORTS_EACH, _PORTS_EACH):
        lock = os.open(folder / str(outside[first]), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return itertools.cycle(outside[first : first + _PORTS_EACH])
    raise AssertionError("other test processes have all the ports")


def free_port() -> int:
    """Find a port that nobody listens on, and that nobody will be given meanwhile."""
    for port in itertools.islice(_own_ports(), _PORTS_EACH):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may linger
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("all ports of this process are taken")


def eventually(look: Callable[[], Any], is_good: Callable[[Any], bool]) -> Any:
    """Look until what is seen is good; the last sight is the error otherwise."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        seen = look()
        if is_good(seen):
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


def stand_still(*pids: int) -> None:
    """Stop processes of ours, and wait until each of their threads has stopped.

    On a busy machine a thread goes on for a while after the signal, long enough to answer a question.
    """
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: _thread_states(pids), lambda states: states <= set("TtXZ"))


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Let processes of ours stand still for a while.

    They go on at last by themselves, so that whoever waits for them in vain fails instead of waiting for ever.
    """
    stand_still(*pids)
    thaw = threading.Timer(PATIENCE_SECONDS, _go_on, pids)
    thaw.daemon = True
    thaw.start()
    try:
        yield
    finally:
        thaw.cancel()
        _go_on(*pids)


def _go_on(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _thread_states(pids: tuple[int, ...]) -> set[str]:
    states = set()
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                states.add((thread / "stat").read_text().rpartition(") ")[2][0])
    return states


@contextmanager
def running(
    *arguments: str, environment: dict[str, str] | None = None, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*GPUHERD, *arguments], env={**os.environ, **(environment or {})}, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)
            raise


async def until(is_so: Callable[[], bool], what: str) -> None:
    """Let the event loop go on until something is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}"
        await asyncio.sleep(0.005)
