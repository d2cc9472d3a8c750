"""Pull: what a report costs a hub that dials its nodes, against the same reports from nodes that dial it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench.hub import US, cost_of, hub_load
from bench.measure import Figure, alternate, cpu_seconds
from bench.nodes import Load, Sent
from bench.servers import NODES_CPU, enrol_many, serving, serving_hub

__all__ = ["measure_pull"]

NODES = 1000


def _pulled(folder: Path, count: int, seconds: float) -> tuple[float, Sent]:
    """Give CPU seconds per report of a hub that dials ``count`` nodes."""
    load = Load(host="127.0.0.1", port=0, path="", credentials=[""] * count, cpu=NODES_CPU)
    nodes = subprocess.Popen(
        [sys.executable, "-m", "bench.listening_nodes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert nodes.stdin is not None
        assert nodes.stdout is not None
        nodes.stdin.write(msgspec.json.encode(load).decode() + "\n")
        nodes.stdin.flush()
        port = nodes.stdout.readline().strip()
        with serving(["-m", "bench.pulling_hub", str(folder), port, str(count)]) as hub:
            if nodes.stdout.readline().strip() != "ready":
                raise SystemExit("the hub did not dial every node")
            time.sleep(1.0 / load.rate)
            before, start = cpu_seconds(hub.pid), time.monotonic()
            time.sleep(seconds)
            cpu, elapsed = cpu_seconds(hub.pid) - before, time.monotonic() - start
            output, _ = nodes.communicate(timeout=60)
    finally:
        if nodes.poll() is None:
            nodes.kill()
            nodes.wait()
    sent = msgspec.json.decode(output.strip().splitlines()[-1], type=Sent)
    if sent.blocked or sent.unacked:
        raise SystemExit(f"the hub did not take and acknowledge every report: {sent}")
    return cpu / (count * load.rate * elapsed), sent


def measure_pull(seconds: float = 8.0, rounds: int = 3) -> list[Figure]:
    """Compare both ways, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        credentials = enrol_many(Path(folder) / "push", NODES)
        with serving_hub(Path(folder) / "push") as hub:

            def push() -> float:
                return cost_of(hub, hub_load(hub, credentials), seconds).seconds_per_report

            def pull() -> float:
                with tempfile.TemporaryDirectory() as fresh:
                    return _pulled(Path(fresh), NODES, seconds)[0]

            pushed, pulled = alternate(rounds, push, pull)
    ratio = pulled / pushed
    return [
        Figure(
            id="pull",
            what=f"hub CPU per report of nodes that the hub dials ({NODES:,} nodes of 8 GPUs at 1 Hz)",
            value=round(pulled * US, 1),
            unit="µs",
            against="the same from nodes that dial the hub",
            baseline=round(pushed * US, 1),
            ratio=round(ratio, 2),
            goal="≤ 1.3×",
            met=ratio <= 1.3,
        )
    ]
