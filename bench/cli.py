"""The command line: what starting it costs, and a look at 100 nodes against what others take for this one machine."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.agent import eight_busy_gpus
from bench.hub import hub_load
from bench.measure import Figure, median
from bench.servers import enrol_many, playing, serving_hub

__all__ = ["measure_cli"]

MS = 1e3
MIB = 2**20
HERD_NODES = 100
LARGE_HERD_NODES = 5000
PROGRAMS = Path(sys.executable).parent


class Cost(NamedTuple):
    """What a command cost: CPU time of it and its children, and time on the wall."""

    cpu_seconds: float
    wall_seconds: float


def cost(command: list[str], environment: dict[str, str] | None = None) -> Cost:
    """Run a command to its end; what it prints is thrown away."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [str(PROGRAMS / command[0]), *command[1:]], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def in_turn(rounds: int, *measurements: Callable[[], Cost]) -> list[Cost]:
    """Take each in turn, ``rounds`` times over, and give the medians."""
    taken: list[list[Cost]] = [[] for _ in measurements]
    for _ in range(rounds):
        for costs, measurement in zip(taken, measurements, strict=True):
            costs.append(measurement())
    return [
        Cost(
            median([one.cpu_seconds for one in costs]),
            median([one.wall_seconds for one in costs]),
        )
        for costs in taken
    ]


def measure_cli(rounds: int = 15) -> list[Figure]:
    """Measure the start, a look at 100 nodes, and one at 5,000."""
    return [*_start(rounds * 2), *_look(rounds), *_large(3)]


def _start(rounds: int) -> list[Figure]:
    version, nothing = in_turn(
        rounds, lambda: cost(["gpuherd", "--version"]), lambda: cost(["python", "-c", "pass"])
    )
    ratio = version.cpu_seconds / nothing.cpu_seconds
    return [
        Figure(
            id="CLI",
            what="CPU of `gpuherd --version`",
            value=round(version.cpu_seconds * MS, 1),
            unit="ms",
            against="python -c pass",
            baseline=round(nothing.cpu_seconds * MS, 1),
            ratio=round(ratio, 2),
            goal="≤ 2.5×",
            met=ratio <= 2.5,
        )
    ]


def _look(rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        credentials = enrol_many(Path(folder) / "hub", HERD_NODES)
        with (
            serving_hub(Path(folder) / "hub") as hub,
            playing(hub_load(hub, credentials)),
            eight_busy_gpus(Path(folder)) as environment,
        ):
            url = f"http://127.0.0.1:{hub.port}"
            status, gpustat, nvitop, here = in_turn(
                rounds,
                lambda: cost(["gpuherd", "status", "--hub", url], environment),
                lambda: cost(["gpustat"], environment),
                lambda: cost(["nvitop", "-1"], environment),
                lambda: cost(["gpuherd", "status", "--here"], environment),
            )
    figures = []
    for name, other in (("gpustat", gpustat), ("nvitop -1", nvitop)):
        for kind, ours, theirs in (
            ("time on the wall", status.wall_seconds, other.wall_seconds),
            ("CPU", status.cpu_seconds, other.cpu_seconds),
        ):
            figures.append(
                Figure(
                    id="CLI",
                    what=f"{kind} of `gpuherd status`, {HERD_NODES} nodes of 8 GPUs, all rows",
                    value=round(ours * MS),
                    unit="ms",
                    against=f"{name} of this machine alone",
                    baseline=round(theirs * MS),
                    ratio=round(ours / theirs, 2),
                    goal="< 1×" if kind != "CPU" else "",
                    met=ours < theirs if kind != "CPU" else None,
                )
            )
    figures.append(
        Figure(
            id="CLI",
            what="time on the wall of `gpuherd status --here`, 8 GPUs",
            value=round(here.wall_seconds * MS),
            unit="ms",
            note=f"CPU {here.cpu_seconds * MS:.0f} ms, that of the probe included",
        )
    )
    return figures


def _large(rounds: int) -> list[Figure]:
    """Look at a herd of thousands: how long the answer takes, and how large it is."""
    with tempfile.TemporaryDirectory() as folder:
        credentials = enrol_many(Path(folder), LARGE_HERD_NODES)
        with serving_hub(Path(folder)) as hub, playing(hub_load(hub, credentials)):
            url = f"http://127.0.0.1:{hub.port}"
            status, users, node, whole = in_turn(
                rounds,
                lambda: cost(["gpuherd", "status", "--brief", "--hub", url]),
                lambda: cost(["gpuherd", "users", "--hub", url]),
                lambda: cost(["gpuherd", "node", "n00042", "--hub", url]),
                lambda: cost(["gpuherd", "status", "--json", "--hub", url]),
            )
            sent, plain, all_of_it = (
                _answer_bytes(f"{url}/api/v1/fleet{path}", coding)
                for path, coding in (("/glance", "gzip"), ("/glance", "identity"), ("", "identity"))
            )
    size = f"an answer of {sent / MIB:.1f} MiB, {plain / MIB:.1f} unpacked"
    return [
        Figure(
            id="CLI",
            what=f"time on the wall of `gpuherd {name}`, {LARGE_HERD_NODES:,} nodes of 8 GPUs",
            value=round(taken.wall_seconds, 2),
            unit="s",
            against=f"`status --json`, which asks for all {all_of_it / MIB:.0f} MiB",
            baseline=round(whole.wall_seconds, 2),
            ratio=round(taken.wall_seconds / whole.wall_seconds, 2),
            note=note,
        )
        for name, taken, note in (
            ("status --brief", status, size),
            ("users", users, ""),
            ("node NAME", node, "asks for that node alone"),
        )
    ]


def _answer_bytes(url: str, coding: str) -> int:
    request = urllib.request.Request(url, headers={"Accept-Encoding": coding})  # noqa: S310 - http, as written
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return len(answer.read())
