"""What a flood of logins does to those who look: 200 attempts at a time, from everywhere, while a stream is read.

The hub has one core, which it shares with the threads that check passwords: harder than in life. The delay of a tick is
how much later than one tick after its predecessor it reached the viewer.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp

from bench.measure import Figure
from bench.servers import NODES_CPU, enrol_many, serving

__all__ = ["measure_login"]

PARALLEL = 200
SECONDS = 15.0
TICK_SECONDS = 0.25
CONFIG = f"""
[hub]
listen = "127.0.0.1:0"
public = "read"
tick_seconds = {TICK_SECONDS}
trusted_proxies = ["127.0.0.1"]
"""


async def _delays(http: aiohttp.ClientSession, seconds: float) -> list[float]:
    """Read the stream and give each tick's delay, in seconds."""
    delays = []
    async with http.get("api/v1/stream") as response:
        await response.content.readuntil(b"\n\n")  # the snapshot
        await response.content.readuntil(b"\n\n")
        before = start = time.monotonic()
        while before - start < seconds:
            await response.content.readuntil(b"\n\n")
            now = time.monotonic()
            delays.append(max(0.0, now - before - TICK_SECONDS))
            before = now
    return delays


async def _attempt(
    http: aiohttp.ClientSession, numbers: itertools.count[int], statuses: Counter[int]
) -> None:
    """Fail to log in, from a new address each time and without a pause."""
    while True:
        number = next(numbers)
        headers = {
            "X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            "X-Forwarded-Proto": "https",
        }
        body = {"name": f"user{number % 50}", "password": "not the right one"}
        async with http.post("api/v1/session", json=body, headers=headers) as response:
            await response.read()
            statuses[response.status] += 1


async def _measure(port: int) -> tuple[list[float], list[float], Counter[int]]:
    url = f"http://127.0.0.1:{port}/"
    statuses: Counter[int] = Counter()
    async with (
        aiohttp.ClientSession(url) as viewer,
        aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0)) as crowd,
    ):
        quiet = await _delays(viewer, SECONDS / 2)
        numbers = itertools.count()
        flood = [asyncio.ensure_future(_attempt(crowd, numbers, statuses)) for _ in range(PARALLEL)]
        try:
            flooded = await _delays(viewer, SECONDS)
        finally:
            for attempt in flood:
                attempt.cancel()
            await asyncio.gather(*flood, return_exceptions=True)
    return quiet, flooded, statuses


def measure_login() -> list[Figure]:
    """Flood a hub with logins and tell how late the stream is."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {NODES_CPU})
    try:
        with tempfile.TemporaryDirectory() as scratch:
            state_dir, file = Path(scratch) / "hub", Path(scratch) / "gpuherd.toml"
            enrol_many(state_dir, 1)
            file.write_text(CONFIG)
            arguments = ["-m", "gpuherd", "hub", "--config", str(file), "--state-dir", str(state_dir), "run"]
            with serving(arguments) as hub:
                quiet, flooded, statuses = asyncio.run(_measure(hub.port))
    finally:
        os.sched_setaffinity(0, before)
    late = sorted(flooded)
    worst = 1000 * late[-1]
    per_second = {status: round(count / SECONDS) for status, count in sorted(statuses.items())}
    answers = ", ".join(f"{count} × {status}" for status, count in per_second.items())
    return [
        Figure(
            id="login",
            what=f"longest delay of the stream while {PARALLEL} logins are tried at a time",
            value=round(worst, 1),
            unit="ms",
            against="nobody logs in",
            baseline=round(1000 * max(quiet), 1),
            goal="< 100 ms",
            met=worst < 100,
            note=f"median {1000 * late[len(late) // 2]:.1f} ms; answers a second: {answers}",
        )
    ]


if __name__ == "__main__":
    for figure in measure_login():
        print(figure)
