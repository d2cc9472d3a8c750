"""Recovery: one GPU hangs and is repaired, then every call of the driver becomes slow. What does the hub say, and when?

A real agent at an interval of 1 s on eight simulated cards, and a real hub that is asked ten times a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from sim.build import SCENARIOS, build_library, simulator_environment

from bench.measure import Figure
from bench.servers import enrol_many, serving_hub

__all__ = ["measure_recovery"]

LOOK_SECONDS = 0.1
TRIES = 3
"""The repair comes just after this many failed tries: from then on the wait for the next is the longest."""
SETTLE_SECONDS = 5.0
"""After the hang was reported, until the probes that are there count as those at work."""
SLOW_SECONDS = 90.0
CALL_SECONDS = 0.06
HUNG = 1
"""The GPU that hangs."""


class Node:
    """Eight cards, their agent, and what the hub says of them."""

    def __init__(self, folder: Path, port: int) -> None:
        self._file = folder / "scenario.json"
        self._scenario = json.loads((SCENARIOS / "healthy.json").read_text())
        for card in self._scenario["gpus"]:
            card.update(processes=[], memory_used_bytes=2**20, throttle_reasons=1)
            card.update(utilization_gpu_percent=0, utilization_memory_percent=0)
        self._url = f"http://127.0.0.1:{port}/api/v1/nodes/n00000"
        self.pid = 0
        self.samples: list[tuple[float, bool]] = []
        self.most_probes = 0
        self.probes: set[str] = set()
        self.probes_now: set[str] = set()
        self.states: dict[str, float] = {}
        self.last: dict[str, Any] = {}

    def play(self, **more: Any) -> float:
        """Change what the driver does; gives the time."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps({**self._scenario, "epoch": 0, **more}))
        fresh.replace(self._file)
        return time.monotonic()

    def environment(self) -> dict[str, str]:
        """Where the agent finds the cards."""
        return simulator_environment(build_library(Path("build/sim")), self._file)

    def watch(self, seconds: float, is_enough: Callable[[dict[str, Any]], bool] = lambda _: False) -> float:
        """Look until it is enough; gives the time of the last look."""
        until = time.monotonic() + seconds
        while True:
            with urlopen(self._url, timeout=10) as answer:  # noqa: S310 - loopback
                node = self.last = json.load(answer)
            now = time.monotonic()
            self.states[node["state"]] = self.states.get(node["state"], 0.0) + LOOK_SECONDS
            others = [device for place, device in enumerate(node["devices"]) if place != HUNG]
            is_read = bool(others) and all("temperature_celsius" in device["sample"] for device in others)
            if node.get("received_at") and (not self.samples or node["received_at"] > self.samples[-1][0]):
                self.samples.append((node["received_at"], is_read))
            self.probes_now = set(Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())
            self.probes |= self.probes_now
            self.most_probes = max(self.most_probes, len(self.probes_now))
            if is_enough(node) or now >= until:
                return now
            time.sleep(LOOK_SECONDS)

    def missed(self) -> int:
        """Count the samples that the neighbours missed at a stretch, at most."""
        read = [at for at, is_read in self.samples if is_read]
        gaps = [later - earlier for earlier, later in pairwise(read)]
        return max(round(max(gaps)) - 1, 0)


def _state(node: dict[str, Any], place: int) -> str:
    return node["devices"][place]["availability"]["state"] if len(node["devices"]) > place else ""


def _is_well(node: dict[str, Any]) -> bool:
    return node["state"] == "live" and [_state(node, place) for place in range(8)] == ["free"] * 8


def measure_recovery() -> list[Figure]:
    """Play the faults and look."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (credential,) = enrol_many(folder / "hub", 1)
        agent_dir = folder / "agent"
        agent_dir.mkdir()
        (agent_dir / "credential").write_text(credential)
        (agent_dir / "credential").chmod(0o600)
        with serving_hub(folder / "hub") as hub:
            node = Node(folder, hub.port)
            node.play()
            agent = subprocess.Popen(
                [sys.executable, "-m", "gpuherd", "agent", "--hub", f"http://127.0.0.1:{hub.port}",
                 "--state-dir", str(agent_dir), "--interval", "1"],
                env={**os.environ, **node.environment()},
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            node.pid = agent.pid
            try:
                node.watch(60, _is_well)
                node.samples.clear()
                node.watch(5)
                hung_at = node.play(faults=[{"function": "nvmlDeviceGet*", "gpu": HUNG, "effect": "hang"}])
                said = node.watch(60, lambda seen: _state(seen, HUNG) == "fault") - hung_at
                node.watch(SETTLE_SECONDS)
                at_work, node.probes = set(node.probes_now), set(node.probes_now)
                node.watch(300, lambda _: len(node.probes - at_work) >= TRIES and node.probes_now <= at_work)
                tries, hung_seconds = len(node.probes - at_work), time.monotonic() - hung_at
                missed, most_probes = node.missed(), node.most_probes
                repaired_at = node.play()
                back = node.watch(120, _is_well) - repaired_at
                node.states.clear()
                node.play(latencies=[{"function": "nvmlDeviceGet*", "seconds": CALL_SECONDS}])
                node.watch(60, lambda seen: "slow_driver" in str(seen["problems"]))
                turning = dict(node.states)
                node.states.clear()
                node.watch(SLOW_SECONDS)
            finally:
                agent.terminate()
                agent.wait(30)
    load = f"load average {os.getloadavg()[0]:.0f}"
    not_live = sum(seconds for state, seconds in node.states.items() if state != "live")
    stale = sum(seconds for state, seconds in turning.items() if state != "live")
    interval = float(node.last["interval_seconds"])
    return [
        Figure(
            id="recovery",
            what="one of 8 GPUs hangs, interval 1 s: until the hub says so",
            value=round(said, 1),
            unit="s",
            goal="≤ 3 s",
            met=said <= 3,
            note=load,
        ),
        Figure(
            id="recovery",
            what="the same: samples that the other 7 missed at a stretch",
            value=missed,
            unit="samples",
            goal="≤ 2",
            met=missed <= 2,
            note=f"{hung_seconds:.0f} s of hanging, {tries} tries seen",
        ),
        Figure(
            id="recovery",
            what="the same: probes at a time, the one that works included",
            value=most_probes,
            unit="processes",
            goal="≤ 2",
            met=most_probes <= 2,
        ),
        Figure(
            id="recovery",
            what="from its repair, just after a failed try, until it is free again",
            value=round(back, 1),
            unit="s",
            goal="≤ 60 s",
            met=back <= 60,
        ),
        Figure(
            id="recovery",
            what=f"every call takes {CALL_SECONDS * 1000:g} ms: seconds not live of {SLOW_SECONDS:g}",
            value=round(not_live, 1),
            unit="s",
            goal="0",
            met=not not_live,
            note=f"interval {interval:g} s, as the hub shows it; {stale:.0f} s until the first slow sample was there",
        ),
    ]
