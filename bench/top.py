"""`gpuherd top`: CPU time of a tick in which every number of every GPU has changed, and of scrolling, by herd size."""

from __future__ import annotations

import asyncio
import random
import resource
import subprocess
import sys
import time
from typing import Any

import msgspec
from msgspec import structs

from bench.measure import Figure, median
from gpuherd.client.live import Condition, Feed
from gpuherd.client.live_messages import HerdChange
from gpuherd.tui import TopApp

__all__ = ["measure_top"]

PER_NODE = 8
SIZES = (100, 1_000, 5_000)
TICKS = 12
SCREEN = (150, 50)


class _Silent(Feed):
    """Brings nothing: messages are given by hand."""

    def _run(self) -> None:
        pass


def _numbers(nodes: int, chance: random.Random) -> dict[str, Any]:
    rows = list(range(nodes * PER_NODE))

    def some(high: float) -> list[float]:
        return [round(chance.uniform(0, high), 2) for _ in rows]

    return {
        "devices": {
            "row": rows,
            "utilization_gpu": some(1),
            "utilization_memory": some(1),
            "memory_used_mebibytes": some(80_000),
            "temperature_celsius": some(90),
            "power_watts": some(700),
            "fan_ratio": [None] * len(rows),
            "clock_sm_megahertz": some(1980),
        },
        "hosts": {"row": list(range(nodes)), "cpu_ratio": [0.5] * nodes},
        "uses": {
            "node": [row // PER_NODE for row in rows],
            "position": [row % PER_NODE for row in rows],
            "gpu_memory_bytes": some(8e10),
            "utilization_sm": some(1),
            "cpu_cores": some(2),
            "memory_bytes": some(8e10),
        },
    }


def _snapshot(nodes: int, chance: random.Random) -> dict[str, Any]:
    rows = list(range(nodes * PER_NODE))
    facts = {"name": "NVIDIA H100 80GB HBM3", "memory_total_bytes": 80 * 2**30}
    inventories = [
        {
            "row": row,
            "id": f"id{row}",
            "name": f"node{row:04}",
            "devices": [
                {
                    "row": row * PER_NODE + place,
                    "short_name": "H100 80GB",
                    "facts": {**facts, "uuid": f"GPU-{row}-{place}", "index": place},
                }
                for place in range(PER_NODE)
            ],
            "processes": [
                {"pid": 1000 + place, "user": f"user{chance.randint(1, 99):02}", "command": "python train.py"}
                for place in range(PER_NODE)
            ],
            "uses": [{"process": place, "device": place} for place in range(PER_NODE)],
        }
        for row in range(nodes)
    ]
    states = {
        "row": rows,
        "state": [chance.choice(("free", "busy", "busy", "held")) for _ in rows],
        "reason": [""] * len(rows),
        "since": [1e9] * len(rows),
    }
    return {
        "tick": 0,
        "time": 1e9,
        "nodes": inventories,
        "device_states": states,
        **_numbers(nodes, chance),
    }


async def _measure(nodes: int) -> dict[str, float]:
    chance = random.Random(7)  # noqa: S311 - repeatable, not secret
    app = TopApp(_Silent("bench"), me="nobody")
    messages = [msgspec.json.encode({"tick": 1, "time": 1e9, **_numbers(nodes, chance)}) for _ in range(4)]
    async with app.run_test(size=SCREEN) as pilot:
        app.watched.apply(msgspec.convert(_snapshot(nodes, chance), HerdChange))
        app.watched.condition = Condition("live")
        await pilot.pause()
        read, drawn = [], []
        for tick in range(TICKS):
            began = time.process_time()
            change = msgspec.json.decode(messages[tick % len(messages)], type=HerdChange)
            app.watched.apply(structs.replace(change, tick=tick + 1, after_tick=tick, time=1e9 + tick))
            told = time.process_time()
            app._draw()  # noqa: SLF001 - what the next tick would do
            await pilot.pause()
            read.append(told - began)
            drawn.append(time.process_time() - told)
        began = time.process_time()
        for _ in range(10):
            await pilot.press("pagedown")
        scrolled = (time.process_time() - began) / 10
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "read": median(read) * 1e3,
        "drawn": median(drawn) * 1e3,
        "page": scrolled * 1e3,
        "memory": memory,
    }


def _apart(nodes: int) -> dict[str, float]:
    """Measure in a process of its own, so that memory is that of one herd."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.top", str(nodes)], capture_output=True, text=True, check=True
    )
    return msgspec.json.decode(done.stdout, type=dict[str, float])


def measure_top() -> list[Figure]:
    """Measure a tick and a page of scrolling in herds of three sizes."""
    figures, first = [], None
    for nodes in SIZES:
        found = _apart(nodes)
        tick = round(found["read"] + found["drawn"], 1)
        first = first or tick
        figures.append(
            Figure(
                id="top",
                what=f"CPU of a tick on screen, {nodes * PER_NODE} GPUs",
                value=tick,
                unit="ms",
                against=f"{SIZES[0] * PER_NODE} GPUs",
                baseline=first,
                ratio=round(tick / first, 1),
                note=f"reading {found['read']:.1f} ms, drawing {found['drawn']:.1f} ms, "
                f"a page of scrolling {found['page']:.1f} ms, {found['memory']:.0f} MB",
            )
        )
    return figures


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(asyncio.run(_measure(int(sys.argv[1])))).decode())
