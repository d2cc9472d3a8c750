"""Export over SSH: fifty hosts at once, one of them slow, against that one alone; and what the files cost to write.

Everything is real but the GPUs: sshds on loopback, the script, the command as people run it. Both ends of all fifty
links share this machine's processors, which fifty real hosts would not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.measure import Figure, alternate, median
from gpuherd.client.herd_views import (
    Availability,
    Gpu,
    GpuFacts,
    GpuSample,
    Herd,
    Node,
    UsingProcess,
)
from gpuherd.wiring.exporting.page import PageSettings
from gpuherd.wiring.exporting.targets import SeenHerd, Targets, herd_files

if TYPE_CHECKING:
    from support.gpu_hosts import GpuHosts

__all__ = ["measure_export"]

HOSTS = 50
GPUS_PER_HOST = 8
SLOW_SECONDS = 2.0
"""Each nvidia-smi of the slow host: what one takes that has to wake the driver first."""
MANY_NODES = 1000
GOAL = 1.5
MS = 1000


def measure_export(rounds: int = 3) -> list[Figure]:
    """Measure both."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.gpu_hosts import gpu_hosts

    addresses = [f"127.0.4.{number}" for number in range(1, HOSTS + 1)]
    slow = addresses[HOSTS // 2]
    with tempfile.TemporaryDirectory() as name, gpu_hosts(Path(name) / "hosts", *addresses) as hosts:
        for address in addresses:
            for index in range(GPUS_PER_HOST):
                hosts.gpu(address, index, utilization_gpu=37)
        hosts.delay(slow, SLOW_SECONDS)
        everyone, alone = alternate(
            rounds, lambda: _export_seconds(hosts, *addresses), lambda: _export_seconds(hosts, slow)
        )
    return [
        Figure(
            id="export",
            what=f"export over SSH of {HOSTS} hosts, one of them slow",
            value=round(everyone, 2),
            unit="s",
            against="the slow host alone",
            baseline=round(alone, 2),
            ratio=round(everyone / alone, 2),
            goal=f"≤ {GOAL:g}× the slowest host",
            met=everyone <= GOAL * alone,
            note="hosts and command share this machine",
        ),
        _writing(),
    ]


def _export_seconds(hosts: GpuHosts, *addresses: str) -> float:
    table = hosts.folder / "load_data.csv"
    table.unlink(missing_ok=True)
    arguments = ["--ssh", hosts.write_ini(*addresses), "--html", hosts.folder, "--csv", table]
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "gpuherd", "export", *map(str, arguments)], env=hosts.environment, check=True
    )
    seconds = time.monotonic() - begun
    rows = len(table.read_text().splitlines()) - 1
    if rows != GPUS_PER_HOST * len(addresses):
        raise SystemExit(f"only {rows} GPUs of {len(addresses)} hosts were exported")
    return seconds


def _writing() -> Figure:
    """Measure what it takes to write page and tables of a large herd into memory."""
    herd = Herd(time=1_790_000_000.0, nodes=tuple(_node(number) for number in range(MANY_NODES)))
    seen = SeenHerd(herd=herd, answer=msgspec.json.encode(herd))
    folder = Path("/tmp")  # noqa: S108 - nothing is written there
    targets = Targets(html=folder, csv=folder / "load_data.csv", full_csv=folder / "full.csv")
    seconds = []
    size = 0
    for _ in range(5):
        begun = time.process_time()
        files = herd_files(seen, targets, PageSettings())
        seconds.append(time.process_time() - begun)
        size = len(files[folder / "index.html"])
    return Figure(
        id="export",
        what=f"page and tables of {MANY_NODES} nodes with {GPUS_PER_HOST} GPUs each, CPU time",
        value=round(median(seconds) * MS),
        unit="ms",
        note=f"a page of {size / 2**20:.1f} MiB; in a hub, beside the event loop",
    )


def _node(number: int) -> Node:
    name = f"gpu{number:04d}"
    gpus = tuple(
        Gpu(
            node_id=name,
            short_name="A100 80GB",
            facts=GpuFacts(
                uuid=f"GPU-{number}-{index}",
                index=index,
                name="NVIDIA A100-SXM4-80GB",
                memory_total_bytes=80 * 2**30,
            ),
            sample=GpuSample(utilization_gpu=0.5, memory_used_bytes=40 * 2**30, temperature_celsius=55.0),
            availability=Availability(state="busy", reason="at work", since=1_789_990_000.0),
            processes=(
                UsingProcess(pid=4000 + index, user=f"user{number % 97}", started_at=1_789_990_000.0),
            ),
        )
        for index in range(GPUS_PER_HOST)
    )
    return Node(id=name, name=name, state="live", devices=gpus)
