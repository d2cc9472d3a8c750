"""P2 and P6: what a report costs the hub, against a no-op echo, and how that changes with the size of the herd."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.measure import Figure, alternate, cpu_seconds
from bench.nodes import Load, Sent
from bench.servers import NODES_CPU, Server, enrol_many, playing, serving_hub, serving_noop

__all__ = ["US", "cost_of", "hub_load", "measure_p2", "measure_p6"]

US = 1e6


class Cost(NamedTuple):
    """What a load cost a server."""

    seconds_per_report: float
    cores: float
    sent: Sent


def cost_of(server: Server, load: Load, seconds: float) -> Cost:
    """Play a load; the reports of the time measured are those that were due, and none may be missing at the end."""
    with playing(load) as nodes:
        before, start = cpu_seconds(server.pid), time.monotonic()
        time.sleep(seconds)
        cpu, elapsed = cpu_seconds(server.pid) - before, time.monotonic() - start
        sent = nodes.stop()
    if load.is_echo and sent.received < 0.9 * sent.samples:
        raise SystemExit(f"the yardstick lost messages: {sent}")
    return Cost(cpu / (len(load.credentials) * load.rate * elapsed), cpu / elapsed, sent)


def measure_p2(seconds: float = 8.0, rounds: int = 3) -> list[Figure]:
    """Compare cost per accepted report with the echo, then hold 10,000 nodes on one core."""
    with tempfile.TemporaryDirectory() as folder, serving_noop() as noop:
        state_dir = Path(folder)
        credentials = enrol_many(state_dir, 10_000)
        few = credentials[:2000]
        with serving_hub(state_dir) as hub:

            def one_hub() -> float:
                return cost_of(hub, hub_load(hub, few), seconds).seconds_per_report

            def one_echo() -> float:
                return cost_of(noop, hub_load(noop, few, is_echo=True), seconds).seconds_per_report

            hub_cost, echo_cost = alternate(rounds, one_hub, one_echo)
        with serving_hub(state_dir) as hub:
            herd = cost_of(hub, hub_load(hub, credentials), seconds * 2)
    ratio = hub_cost / echo_cost
    return [
        Figure(
            id="P2",
            what="hub CPU per accepted report (2,000 nodes of 8 GPUs at 1 Hz)",
            value=round(hub_cost * US, 1),
            unit="µs",
            against="no-op WebSocket echo on Granian",
            baseline=round(echo_cost * US, 1),
            ratio=round(ratio, 2),
            goal="≤ 1.5×",
            met=ratio <= 1.5,
        ),
        Figure(
            id="P2",
            what="core used by 10,000 nodes of 8 GPUs at 1 Hz, hub pinned to one core",
            value=round(herd.cores, 2),
            unit="cores",
            goal="every report taken and acknowledged",
            met=herd.sent.blocked == herd.sent.unacked == herd.sent.lost == 0,
            note=f"{herd.sent.samples:,} sent, {herd.sent.blocked} not taken, {herd.sent.unacked} without an ack 2 s "
            f"after the end, {herd.sent.lost} links ended by the hub; "
            f"ack after {herd.sent.ack_p50_seconds:.2f} s (median), {herd.sent.ack_p99_seconds:.2f} s (99 %)",
        ),
    ]


def hub_load(server: Server, credentials: list[str], *, is_echo: bool = False) -> Load:
    """Let nodes speak to a hub, or to the yardstick, from the other core."""
    return Load(
        host="127.0.0.1",
        port=server.port,
        path="/echo" if is_echo else "/api/v1/agent",
        credentials=credentials,
        cpu=NODES_CPU,
        is_echo=is_echo,
    )


def measure_p6(seconds: float = 8.0) -> list[Figure]:
    """Measure the cost per node and second for herds of growing size, the tick included."""
    figures: list[Figure] = []
    for count in (10, 100, 1000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            credentials = enrol_many(Path(folder), count)
            with serving_hub(Path(folder)) as hub:
                cost = cost_of(hub, hub_load(hub, credentials), seconds).seconds_per_report * US
        before = figures[-1].value if figures else None
        figures.append(
            Figure(
                id="P6",
                what=f"hub CPU per node and second, {count:,} nodes",
                value=round(cost, 1),
                unit="µs",
                against="the herd a tenth of the size" if before else "",
                baseline=before,
                ratio=round(cost / before, 2) if before else None,
                goal="never rising" if before else "",
                met=cost <= before if before else None,
            )
        )
    return figures
