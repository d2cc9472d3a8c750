"""Enrolment: does the last of thousands of nodes wait longer than the first?

Both run over HTTP, 16 nodes at a time, with one join token. ``GPUHERD_ENROL_NODES`` changes their number.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

import aiohttp

from bench.measure import Figure
from bench.servers import serving_hub
from gpuherd.auth.enrolment import Enrolment
from gpuherd.records.database import open_records, records_file
from gpuherd.records.nodes import NodeRecords

__all__ = ["measure_enrol"]

NODES = int(os.environ.get("GPUHERD_ENROL_NODES", "7000"))
AT_ONCE = 16
GOAL_SECONDS = 20.0


def _token(state_dir: Path) -> str:
    state_dir.mkdir()
    enrolment = Enrolment(NodeRecords(open_records(records_file(state_dir))))
    token = enrolment.create_token(now=time.time(), uses=NODES)
    enrolment.close()
    return token


async def _enrol(port: int, token: str) -> list[float]:
    """Enrol all nodes; gives when each was answered, in seconds since the first began."""
    answered: list[float] = []
    names = iter(f"n{number:05}" for number in range(NODES))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}/") as http:
        started = time.monotonic()

        async def join() -> None:
            for name in names:
                async with http.post("api/v1/enroll", json={"token": token, "hostname": name}) as answer:
                    if answer.status != 201:
                        raise SystemExit(f"{name}: {answer.status} {await answer.text()}")
                answered.append(time.monotonic() - started)

        await asyncio.gather(*(join() for _ in range(AT_ONCE)))
    return answered


def measure_enrol() -> list[Figure]:
    """Enrol thousands of nodes at one hub."""
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder) / "hub"
        token = _token(state_dir)
        with serving_hub(state_dir) as hub:
            answered = asyncio.run(_enrol(hub.port, token))
    tenth = NODES // 10
    first, last = answered[tenth - 1], answered[-1] - answered[-1 - tenth]
    return [
        Figure(
            id="enrol",
            what=f"{NODES:,} nodes enrol, {AT_ONCE} at a time",
            value=round(answered[-1], 1),
            unit="s",
            goal=f"≤ {GOAL_SECONDS:g} s",
            met=answered[-1] <= GOAL_SECONDS if NODES == 7000 else None,
            note=f"machine's load {os.getloadavg()[0]:.1f}",
        ),
        Figure(
            id="enrol",
            what=f"the last {tenth:,} of them",
            value=round(last, 2),
            unit="s",
            against=f"the first {tenth:,}",
            baseline=round(first, 2),
        ),
    ]
