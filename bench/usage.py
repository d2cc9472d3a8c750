"""Accounting: what counting costs each second in a large herd, and how long reports of thirty days take."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from bench.measure import Figure
from gpuherd.history.batch import DEVICE_METRICS, USE_MEASURES, Batch, SessionKey, Uses
from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.tables import Tables
from gpuherd.history.usage.accountant import Accountant
from gpuherd.history.usage.asking import BookedSpan, UsageReader, UseFilter
from gpuherd.history.usage.book import UsageBook
from gpuherd.history.usage.register import Register
from gpuherd.history.usage.rows import SHAPES
from gpuherd.history.usage.samples import NodeSample, Scene
from gpuherd.history.usage.slots import SLOT_SECONDS
from gpuherd.history.usage.standing import Standing
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import Process, ProcessTable, ProcessUse
from gpuherd.wire.matrix import LAYOUT, pack_numbers

__all__ = ["measure_usage"]

START = 1_800_000_000.0
DAY = 86_400
NODES, GPUS = 5_000, 8
GIB = float(2**30)


def measure_usage() -> list[Figure]:
    """Measure counting and reports."""
    return [*_counting(), *_reports()]


class _NoLedger:
    """Nothing was counted before, and nothing is kept."""

    def __init__(self) -> None:
        self.register = Register()
        self.taken = 0

    def standing(self) -> Standing:
        return Standing()

    def apply_erasures(self) -> bool:
        return False

    def release(self, in_use: Collection[int]) -> None:
        """Keep all numbers."""


def _scene(node: int) -> Scene:
    devices = tuple(
        DeviceFacts(uuid=f"GPU-{node}-{index}", index=index, name="H100", memory_total_bytes=80 * 2**30)
        for index in range(GPUS)
    )
    # Half of the devices are shared by two.
    on = [*range(GPUS), *range(0, GPUS, 2)]
    processes = tuple(Process(pid=pid, job=str(node)) for pid in range(len(on)))
    uses = tuple(ProcessUse(process=place, device=device) for place, device in enumerate(on))
    owners = tuple(f"user{(node + 7 * place) % 200}" for place in range(len(on)))
    return Scene(
        f"node{node}", devices, ("H100",) * GPUS, ProcessTable(processes=processes, uses=uses), owners
    )


def _counting() -> list[Figure]:
    ledger = _NoLedger()
    accountant = Accountant(ledger)
    scenes = [_scene(node) for node in range(NODES)]
    numbers = [GIB if name == "gpu_memory_bytes" else None for name in LAYOUT.uses]
    uses = [pack_numbers(numbers * len(scene.table.uses)) for scene in scenes]
    rows = np.full((NODES * GPUS, len(DEVICE_METRICS)), np.nan)
    for name, value in (("utilization_gpu", 0.7), ("memory_used_bytes", 2 * GIB), ("power_watts", 400.0)):
        rows[:, DEVICE_METRICS.index(name)] = value
    costs = []
    for second in range(8):
        samples = [
            NodeSample(scene, START + second, 1.0, used) for scene, used in zip(scenes, uses, strict=True)
        ]
        before = time.process_time()
        accountant.take(samples, rows)
        costs.append(time.process_time() - before)
    seconds = statistics.median(costs[2:])
    return [
        Figure(
            id="usage-count",
            what=f"CPU to count a sample of {NODES:,} nodes × {GPUS} GPUs × 1.5 uses",
            value=round(1000 * seconds, 1),
            unit="ms",
            goal="≤ 100 ms",
            met=seconds <= 0.1,
        )
    ]


def _past(days: int) -> list[Uses]:
    """Make up use of 200 users on 800 GPUs: stays of hours, one after the other, on most devices."""
    draw = np.random.default_rng(1)
    batches = []
    for day in range(days):
        keys: list[SessionKey] = []
        sessions, slots, measures = [], [], []
        for gpu in range(800):
            at = START + day * DAY
            end = at + DAY
            while at < end:
                length = min(end, at + 1800 + draw.exponential(6 * 3600))
                if draw.random() < 0.7:
                    user, job = f"user{int(draw.zipf(1.4)) % 200}", str(int(draw.integers(5_000)))
                    key = SessionKey(
                        f"node{gpu // 8}", f"GPU-{gpu}", f"type{gpu % 5}", user, None, job, float(at)
                    )
                    own = np.arange(at // SLOT_SECONDS, np.ceil(length / SLOT_SECONDS)) * SLOT_SECONDS
                    sessions.append(np.full(len(own), len(keys)))
                    slots.append(own.astype(np.int64))
                    held = np.minimum(own + SLOT_SECONDS, length) - np.maximum(own, at)
                    parts = {"held_seconds": held, "gpu_seconds": held, "busy_seconds": held * 0.6}
                    parts |= {
                        "work_seconds": held * 0.5,
                        "memory_byte_seconds": held * GIB,
                        "joules": held * 300,
                    }
                    nothing = np.zeros(len(own))
                    measures.append(np.column_stack([parts.get(name, nothing) for name in USE_MEASURES]))
                    keys.append(key)
                at = length
        slot = np.concatenate(slots)
        batches.append(
            Uses(
                keys=tuple(keys),
                commands=(None,) * len(keys),
                session=np.concatenate(sessions).astype(np.int32),
                slot=slot,
                first=slot.astype(np.float64),
                last=slot.astype(np.float64) + SLOT_SECONDS,
                measures=np.concatenate(measures),
            )
        )
    return batches


def _reports() -> list[Figure]:
    days = 30
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(Path(folder), SHAPES)
        book = UsageBook(tables, HistorySettings(), pseudonym=lambda user: f"~{user}")
        now = START + days * DAY
        for file, uses in enumerate(_past(days), 1):
            book.take(Batch(written_at=now, uses=uses), file)
            book.tend(now + file * 1000, file + 1)
        for _ in range(2 * days):
            book.tend(now, days + 1)
        rows = sum(segment.rows for segment in tables.segments("usage"))
        size = tables.catalogue.size_bytes(["usage"])
        reader = UsageReader(book)
        hours = np.arange(START, now + 1, 3600.0)
        day_edges = hours[::24]
        groups = {f"user{user}": (f"group{user % 12}", f"group{user % 7}") for user in range(200)}
        spans = [
            BookedSpan(n, frozenset({"user1"}), f"node{n % 100}", f"GPU-{n % 800}", START, START + DAY)
            for n in range(400)
        ]
        questions: dict[str, Callable[[], object]] = {
            "by user": lambda: reader.figures("user", START, now),
            "by group": lambda: reader.figures(
                "group", START, now, keys_of=lambda user: groups.get(user or "", ())
            ),
            "by node": lambda: reader.figures("node", START, now),
            "by type": lambda: reader.figures("type", START, now),
            "by job": lambda: reader.figures("job", START, now),
            "by device": lambda: reader.figures("device", START, now),
            "by user and day": lambda: reader.over_time("user", day_edges),
            "one user by hour": lambda: reader.over_time(
                "user", hours, where=UseFilter(users=frozenset({"user1"}))
            ),
            "whom to ask": lambda: reader.averages(now),
            "last 1,000 stays": lambda: reader.stays(START, now),
            "400 bookings": lambda: reader.booked(spans),
        }
        figures = [
            Figure(
                id="usage-rows",
                what=f"Rows of {days} days, 200 users, 800 GPUs; {size / max(rows, 1):.0f} bytes each",
                value=rows,
                unit="rows",
            )
        ]
        for name, ask in questions.items():
            ask()
            took: list[float] = []
            spent: list[float] = []
            for _ in range(7):
                before, cpu = time.perf_counter(), time.process_time()
                ask()
                took.append(time.perf_counter() - before)
                spent.append(time.process_time() - cpu)
            figures.append(
                Figure(
                    id=f"usage-{name.replace(' ', '-').replace(',', '')}",
                    what=f"Report of {days} days: {name}",
                    value=round(1000 * min(took), 1),
                    unit="ms",
                    goal="≤ 100 ms",
                    met=min(took) <= 0.1,
                    note=f"median {1000 * statistics.median(took):.0f} ms; least CPU {1000 * min(spent):.0f} ms",
                )
            )
        tables.close()
    return figures
