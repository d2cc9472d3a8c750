"""Overload: more nodes than the hub can carry. Are links closed, is anything thrown away, and how soon is it said?

The hub and the nodes share the machine's cores on purpose. ``GPUHERD_OVERLOAD_NODES`` and ``GPUHERD_OVERLOAD_SECONDS``
change the size of the run; ``GPUHERD_OVERLOAD_OLD=1`` plays agents that cannot be asked for a longer interval.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.measure import Figure
from bench.overload_nodes import Herd, Seen
from bench.servers import enrol_many
from gpuherd.auth.local_key import read_local_key

__all__ = ["measure_overload"]

NODES = int(os.environ.get("GPUHERD_OVERLOAD_NODES", "7000"))
SECONDS = float(os.environ.get("GPUHERD_OVERLOAD_SECONDS", "300"))
IS_OLD = bool(os.environ.get("GPUHERD_OVERLOAD_OLD"))
LOOK_SECONDS = 0.5


class Watch:
    """Asks for the hub's health again and again, and remembers what it said."""

    def __init__(self, url: str, state_dir: Path) -> None:
        self._request = urllib.request.Request(  # noqa: S310 - loopback
            f"{url}api/v1/health", headers={"Authorization": f"Bearer {read_local_key(state_dir)}"}
        )
        self.answer_seconds: list[float] = []
        self.began_at = time.monotonic()
        self.said_at: float | None = None
        self.last: dict[str, Any] = {}
        self.worst_writing = self.worst_reading = self.worst_stretch = 0.0

    def look(self) -> None:
        """Ask once."""
        started = time.monotonic()
        with urllib.request.urlopen(self._request, timeout=60) as response:  # noqa: S310 - loopback
            self.last = msgspec.json.decode(response.read())
        now = time.monotonic()
        self.answer_seconds.append(now - started)
        load = self.last["load"]
        self.worst_writing = max(self.worst_writing, load["writing_seconds"])
        self.worst_reading = max(self.worst_reading, load["reading_seconds"])
        self.worst_stretch = max(self.worst_stretch, load["interval_stretch"])
        if any("overloaded" in reason for reason in self.last["reasons"]) and self.said_at is None:
            self.said_at = now


def _memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure_overload() -> list[Figure]:
    """Play the herd beside the hub."""
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder)
        credentials = enrol_many(state_dir, NODES)
        log = state_dir / "hub.log"
        with log.open("wb") as errors:
            hub = subprocess.Popen(
                [
                    sys.executable, "-m", "gpuherd", "hub", "--state-dir", folder, "run", "--listen", "127.0.0.1:0",
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )  # fmt: skip
        try:
            assert hub.stdout is not None
            url = hub.stdout.readline().split()[-1]
            watch, seen = _play(url, state_dir, credentials)
            memory = _memory_mib(hub.pid)
        finally:
            hub.terminate()
            hub.wait(60)
        lines = [line for line in log.read_text(encoding="utf-8").splitlines() if "overloaded" in line]
    return _figures(watch, seen, memory, lines)


def _play(url: str, state_dir: Path, credentials: list[str]) -> tuple[Watch, Seen]:
    herd = Herd(
        host="127.0.0.1",
        port=urlsplit(url).port or 0,
        path="/api/v1/agent",
        credentials=credentials,
        follows_pace=not IS_OLD,
    )
    nodes = subprocess.Popen(
        [sys.executable, "-m", "bench.overload_nodes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert nodes.stdin is not None
    assert nodes.stdout is not None
    try:
        nodes.stdin.write(msgspec.json.encode(herd).decode() + "\n")
        nodes.stdin.flush()
        if nodes.stdout.readline().strip() != "ready":
            raise SystemExit("the simulated nodes could not connect")
        watch = Watch(url, state_dir)
        ends_at, shown_at = time.monotonic() + SECONDS, 0.0
        while time.monotonic() < ends_at:
            watch.look()
            if time.monotonic() - shown_at > 10:
                shown_at = time.monotonic()
                load = watch.last["load"]
                print(
                    f"  {ends_at - shown_at:4.0f} s left, writing {load['writing_seconds']:.1f} s, reading "
                    f"{load['reading_seconds']:.1f} s, interval × {load['interval_stretch']:g}, "
                    f"links {watch.last['links']['open']}, machine's load {os.getloadavg()[0]:.1f}",
                    file=sys.stderr,
                    flush=True,
                )
            time.sleep(LOOK_SECONDS)
        output, _ = nodes.communicate(timeout=120)
        watch.look()
        return watch, msgspec.json.decode(output.strip().splitlines()[-1], type=Seen)
    finally:
        if nodes.poll() is None:
            nodes.kill()
            nodes.wait()


def _figures(watch: Watch, seen: Seen, memory_mib: float, lines: list[str]) -> list[Figure]:
    history = watch.last["history"]
    thrown_away = history["sent_again_samples"] + history["lost_samples"]
    missed = sum(node["missed"] for node in watch.last["nodes"])
    said = None if watch.said_at is None else watch.said_at - watch.began_at
    what = f"{NODES:,} nodes of 8 GPUs at 1 Hz for {SECONDS:.0f} s beside the load generator"
    print(msgspec.json.encode(seen).decode(), *lines, sep="\n", file=sys.stderr)
    return [
        Figure(
            id="overload",
            what=f"{what}: links closed by the hub, and given up by nodes",
            value=seen.closed_by_hub,
            unit=f"closed, {seen.dropped_by_nodes} given up",
            goal="0",
            met=seen.closed_by_hub == seen.dropped_by_nodes == 0,
            note=f"{seen.samples:,} samples; a ping waits at most {seen.pong_worst_seconds:.1f} s "
            f"(99 %: {seen.pong_p99_seconds:.1f} s); hub at most {memory_mib:.0f} MiB",
        ),
        Figure(
            id="overload",
            what="frames received and thrown away",
            value=thrown_away + missed,
            unit="frames",
            goal="0",
            met=thrown_away + missed == 0,
            note=f"ack p50 {seen.ack_p50_seconds:.1f} s, 99 % {seen.ack_p99_seconds:.1f} s; {seen.unacked} without an "
            "ack 3 s after the end",
        ),
        Figure(
            id="overload",
            what="from the first samples of all nodes until health says it",
            value=round(said, 1) if said is not None else float("nan"),
            unit="s",
            goal="≤ 5 s",
            met=None if said is None else said <= 5,
            note=f"at most {watch.worst_writing:.1f} s behind in writing and {watch.worst_reading:.1f} s in reading; "
            f"interval stretched up to {watch.worst_stretch:g} times; {len(lines)} lines in the log",
        ),
        Figure(
            id="overload",
            what="an answer of GET /api/v1/health with all nodes",
            value=round(statistics.median(watch.answer_seconds) * 1000),
            unit="ms",
            note=f"machine's load {os.getloadavg()[0]:.1f}",
        ),
    ]
