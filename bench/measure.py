"""Reading what a process costs, and comparing two things fairly."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

__all__ = ["Figure", "alternate", "cpu_seconds", "median", "memory_bytes"]

_TICK = os.sysconf("SC_CLK_TCK")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table: what was measured against what."""

    id: str
    what: str
    value: float
    unit: str
    against: str = ""
    baseline: float | None = None
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None
    note: str = ""


def cpu_seconds(*pids: int) -> float:
    """Give the CPU time, user and system, that processes have used, all their threads included."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def memory_bytes(pid: int) -> tuple[int, int]:
    """Give resident and proportional memory of a process."""
    values = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in {"Rss", "Pss"}:
            values[name] = int(rest.split()[0]) * 1024
    return values["Rss"], values["Pss"]


def median(values: Sequence[float]) -> float:
    """Give the median."""
    return statistics.median(values)


def alternate(rounds: int, *measurements: Callable[[], float]) -> list[float]:
    """Take each measurement in turn, ``rounds`` times over, and give the median of each.

    Taking turns lets a change of the machine's mood fall on all of them alike.
    """
    results: list[list[float]] = [[] for _ in measurements]
    for _ in range(rounds):
        for values, measurement in zip(results, measurements, strict=True):
            values.append(measurement())
    return [median(values) for values in results]
