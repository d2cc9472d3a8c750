"""Commands of gpuherd as processes of their own, and patience with them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

GPUHERD = [sys.executable, "-m", "gpuherd"]
PATIENCE_SECONDS = 60.0


def free_port() -> int:
    """Find a port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def eventually(look: Callable[[], Any], is_good: Callable[[Any], bool]) -> Any:
    """Look until what is seen is good; the last sight is the error otherwise."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        seen = look()
        if is_good(seen):
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


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
            process.wait(timeout=15)
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
