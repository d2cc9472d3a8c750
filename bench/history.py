"""A herd's samples in our own files beside real Prometheus and VictoriaMetrics: the same numbers in one run.

Rivals are filled twice over: an hour as it comes, each moment a request, then 23 hours in bulk, ten minutes of each
series at a time, which costs them far less. Ours always gets each moment as it comes, through the journal and with all
that is made of it: files, rollups and the herd's sums. Six days before that day lie with one metric a minute, so that a
week of the herd can be asked for; at the full rate the rivals would have six times as much to read.
``GPUHERD_BENCH_SCALE=0.05`` takes a twentieth of the devices.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.herd_data import METRICS, START, HerdData
from bench.history_rivals import (
    Ingest,
    Prometheus,
    Rival,
    VictoriaMetrics,
    block_of,
    bytes_below,
    forget_cached,
)
from bench.measure import Figure, median
from gpuherd.history.batch import DEVICE_METRICS, Batch, Numbering, Samples, SeriesKey
from gpuherd.history.embedded.kinds import SHAPES
from gpuherd.history.embedded.store import EmbeddedStore
from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.herd.shapes import HERD_SHAPES
from gpuherd.history.herd.sink import HerdSink
from gpuherd.history.historian import Historian
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SeriesQuery
from gpuherd.history.tables.tables import Tables

__all__ = ["measure_history"]

DAY = 86_400
HOUR = 3600
AHEAD_DAYS = 6
CHART_STEP = 300
WEEK_STEP = 900
BULK = 60
HERD_METRIC = "utilization_gpu"
COLD_TIMES = 5
WARM_TIMES = 20


class Ours:
    """Our own store with its journal, in this process; its clock is that of the samples."""

    name = "gpuherd"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = START - AHEAD_DAYS * DAY
        self.append_cpu_seconds = 0.0
        self.tend_cpu_seconds = 0.0
        self.values = 0
        self.before_bytes: dict[str, int] = {}
        self._numbering = Numbering()
        self._numbers = np.empty(0, np.int64)
        self._keys: tuple[SeriesKey, ...] = ()
        self._open()

    def _open(self) -> None:
        settings = HistorySettings(min_free_bytes=0)
        self._tables = Tables(self.folder / "tables", (*SHAPES, *HERD_SHAPES), clock=self.clock)
        self.store = EmbeddedStore(self._tables, settings, clock=self.clock)
        sink = HerdSink(self._tables, settings)
        self.reader = HerdReader(self._tables, sink, clock=self.clock)
        self._historian = Historian(self.folder, settings, [self.store, sink], wall=self.clock)
        self._historian.open()

    def clock(self) -> float:
        """Tell the time of the samples."""
        return self.now

    def append(self, samples: Samples) -> None:
        """Take one moment in, and do what is due after it."""
        self.now = float(samples.time.max()) + 0.5
        batch = self._batch(samples)
        began = time.process_time()
        self._historian.append(batch)
        appended = time.process_time()
        self._historian.tend()
        self.append_cpu_seconds += appended - began
        self.tend_cpu_seconds += time.process_time() - appended
        self.values += int(np.isfinite(samples.values).sum())

    def write(self, samples: Samples) -> None:
        """Take samples in, whatever the time is, and do nothing else."""
        self._historian.append(self._batch(samples))

    def tend_all(self) -> None:
        """Do all that is due now, in as many rounds as that takes."""
        generation = -1
        while generation != self._tables.catalogue.generation:
            generation = self._tables.catalogue.generation
            self._historian.tend()

    def _batch(self, samples: Samples) -> Batch:
        if self._keys is not samples.keys:  # numbered as the hub's intake does
            self._keys = samples.keys
            pairs = zip(samples.keys, samples.memory_total.tolist(), strict=True)
            self._numbers = np.array([self._numbering.number(*pair) for pair in pairs])
        devices = replace(samples, numbering=self._numbering, numbers=self._numbers)
        return Batch(written_at=self.now, devices=devices)

    def begin_day(self) -> None:
        """Count from here."""
        self.append_cpu_seconds = self.tend_cpu_seconds = 0.0
        self.values = 0
        self.before_bytes = {
            table: self.table_bytes(table) for table in ("devices_minute", "devices_quarter")
        }

    def settle(self) -> None:
        """Let the last hour and the day be over."""
        began = time.process_time()
        for hours in (1.1, 2.2, 3.3):
            self.now = START + DAY + hours * HOUR
            self._historian.tend()
        self.tend_cpu_seconds += time.process_time() - began

    def restart(self) -> None:
        """Open it again, with cold caches."""
        self.close()
        forget_cached(self.folder)
        self._open()

    def close(self) -> None:
        """Close all files."""
        self._historian.close()
        self._tables.close()

    def one_device(
        self, key: SeriesKey, metrics: tuple[str, ...], start: float, end: float, step: int
    ) -> None:
        """Ask for mean, least and greatest of one device."""
        query = SeriesQuery(subjects=(key,), metrics=metrics, start=start, end=end, max_points=500)
        answer = self.store.read(query)
        if answer.step_seconds != step or not np.isfinite(answer.subjects[0].mean).all():
            raise SystemExit(f"gpuherd answers in steps of {answer.step_seconds} s, or with gaps")

    def herd(self, metric: str, start: float, end: float, step: int) -> None:
        """Ask for all that is told of the herd."""
        answer = self.reader.series(start, end, type=None, max_points=672)
        if answer.step_seconds != step or None in answer.utilization_gpu:
            raise SystemExit(f"gpuherd answers in steps of {answer.step_seconds} s, or with gaps")

    def table_bytes(self, table: str) -> int:
        """Give the size of one table's files."""
        return bytes_below(self.folder / "tables" / table)


def _days_before(herd: HerdData) -> Iterator[Samples]:
    """Give the six days before, with one metric a minute."""
    column = DEVICE_METRICS.index(HERD_METRIC)
    sparse = replace(herd, interval_seconds=60.0)
    for day in range(AHEAD_DAYS, 0, -1):
        for samples in sparse.day(START - day * DAY):
            values = np.full_like(samples.values, np.nan)
            values[:, column] = samples.values[:, column]
            yield replace(samples, values=values)


def _joined(moments: Sequence[Samples]) -> Samples:
    """Put moments of the same devices together."""
    return replace(
        moments[0],
        subject=np.concatenate([samples.subject for samples in moments]),
        time=np.concatenate([samples.time for samples in moments]),
        values=np.concatenate([samples.values for samples in moments]),
        state=np.concatenate([samples.state for samples in moments]),
    )


def _fill(ours: Ours, rivals: list[Rival], herd: HerdData) -> tuple[dict[str, Ingest], dict[str, Ingest]]:
    """Give everyone the same, in turns; of each rival what an hour as it comes and the rest in bulk have cost."""
    gathered: list[Samples] = []

    def send(metrics: tuple[str, ...], spent: dict[str, Ingest] | None) -> None:
        block = block_of(gathered, metrics)
        for rival in rivals:
            began = time.process_time()
            rival.send_all(block)
            if spent is not None:
                spent[rival.name].sender_cpu_seconds += time.process_time() - began
                spent[rival.name].values += block.values.size
        gathered.clear()

    for samples in _days_before(herd):
        gathered.append(samples)
        if len(gathered) == BULK:
            ours.append(_joined(gathered))
            send((HERD_METRIC,), None)
    ours.begin_day()
    costs: list[dict[str, Ingest]] = []
    moments = herd.day()
    for count, length in ((int(HOUR / herd.interval_seconds), 1), (None, BULK)):
        for rival in rivals:
            rival.rest()
        spent = {rival.name: Ingest() for rival in rivals}
        before = {rival.name: rival.cpu_seconds() for rival in rivals}
        for taken, samples in enumerate(moments, 1):
            ours.append(samples)
            gathered.append(samples)
            if len(gathered) == length:
                send(METRICS, spent)
            if taken == count:
                break
        for rival in rivals:
            rival.rest()
            spent[rival.name].server_cpu_seconds = rival.cpu_seconds() - before[rival.name]
        costs.append(spent)
    ours.settle()
    return costs[0], costs[1]


class _Times:
    """How long everyone takes for the same questions, asked in turns."""

    def __init__(self, everyone: list[Ours | Rival], herd: HerdData) -> None:
        self._everyone = everyone
        self._keys = herd.keys
        self._turn = 0

    def _take(self, who: Ours | Rival, what: str) -> float:
        key = self._keys[self._turn * 37 % len(self._keys)]
        questions: dict[str, Callable[[], None]] = {
            "one": lambda: who.one_device(key, METRICS[:1], START, START + DAY, CHART_STEP),
            "twelve": lambda: who.one_device(key, METRICS, START, START + DAY, CHART_STEP),
            "herd": lambda: who.herd(HERD_METRIC, START - AHEAD_DAYS * DAY, START + DAY, WEEK_STEP),
        }
        began = time.perf_counter()
        questions[what]()
        return (time.perf_counter() - began) * 1000

    def cold(self, what: str) -> dict[str, float]:
        taken: dict[str, list[float]] = {who.name: [] for who in self._everyone}
        for _ in range(COLD_TIMES):
            self._turn += 1
            for who in self._everyone:
                who.restart()
                taken[who.name].append(self._take(who, what))
        return {name: median(times) for name, times in taken.items()}

    def warm(self, what: str) -> dict[str, float]:
        taken: dict[str, list[float]] = {who.name: [] for who in self._everyone}
        for number in range(WARM_TIMES + 2):
            self._turn += 1
            for who in self._everyone:
                milliseconds = self._take(who, what)
                if number >= 2:
                    taken[who.name].append(milliseconds)
        return {name: median(times) for name, times in taken.items()}


def measure_history() -> list[Figure]:
    """Fill all three, and ask them."""
    herd = HerdData(devices=max(8, round(800 * float(os.environ.get("GPUHERD_BENCH_SCALE", "1")))))
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuherd-history-")))
        rivals: list[Rival] = []
        kinds: tuple[type[VictoriaMetrics | Prometheus], ...] = (VictoriaMetrics, Prometheus)
        for kind in kinds:
            if shutil.which(kind.program) is None:
                raise SystemExit(f"{kind.program} is not installed; scripts/provision installs it")
            folder = place / kind.program
            folder.mkdir()
            rivals.append(kind(folder))
            rivals[-1].start()
            stack.callback(rivals[-1].stop)
        ours = Ours(place / "ours")
        stack.callback(ours.close)
        live, bulk = _fill(ours, rivals, herd)
        for rival in rivals:
            rival.settle()
        sizes = {rival.name: rival.size_bytes() for rival in rivals}
        times = _Times([ours, *rivals], herd)
        figures = _ingest_figures(ours, live, bulk, herd)
        figures += _size_figures(ours, sizes, herd)
        for what, text, goal, bound in (
            ("one", "one GPU × 24 h × 1 metric, 288 points", "≤ 20 ms, ≤ 2× VictoriaMetrics'", 20.0),
            ("twelve", "one GPU × 24 h × 12 metrics, 288 points", "≤ 20 ms, ≤ 2× VictoriaMetrics'", 20.0),
            ("herd", "mean of the herd over 7 days, 672 points", "≤ 2× VictoriaMetrics'", None),
        ):
            figures += _time_figures(text, goal, bound, times.warm(what), times.cold(what))
    return figures


def _ingest_figures(
    ours: Ours, live: dict[str, Ingest], bulk: dict[str, Ingest], herd: HerdData
) -> list[Figure]:
    per_million = (ours.append_cpu_seconds + ours.tend_cpu_seconds) / ours.values * 1e6
    note = (
        f"{herd.devices} GPUs, {ours.values / 1e6:.0f} M values; of ours "
        f"{ours.append_cpu_seconds / ours.values * 1e6:.3f} s until it is safe in the journal, the rest files, "
        "rollups and merging"
    )
    figures = []
    for how, costs in (("as they come", live), ("in bulk", bulk)):
        for name, cost in costs.items():
            ratio = cost.server_per_million / per_million
            figures.append(
                Figure(
                    id="history",
                    what=f"CPU for a million values in; {name} {how}",
                    value=round(per_million, 3),
                    unit="s",
                    against=name,
                    baseline=round(cost.server_per_million, 3),
                    ratio=round(ratio, 1),
                    goal="≥ 10× cheaper",
                    met=ratio >= 10,
                    note=f"{note}; its sender {cost.sender_per_million:.2f} s more",
                )
            )
    return figures


def _size_figures(ours: Ours, sizes: dict[str, tuple[int, int]], herd: HerdData) -> list[Figure]:
    # With those of the days before.
    before = AHEAD_DAYS * DAY // 60 * herd.devices
    values = ours.values + before
    raw = ours.table_bytes("devices_raw") / values
    victoria = sizes["VictoriaMetrics"][0] / values
    figures = []
    for name, (lasting, passing) in sizes.items():
        ratio = raw / (lasting / values)
        bound = 1.25 if name == "VictoriaMetrics" else 1.0
        figures.append(
            Figure(
                id="history",
                what="raw samples on disk, for a value",
                value=round(raw, 3),
                unit="bytes",
                against=name,
                baseline=round(lasting / values, 3),
                ratio=round(ratio, 2),
                goal="≤ 1.25×" if name == "VictoriaMetrics" else "below",
                met=ratio <= bound,
                note=f"with states; its log and open chunks not counted: {passing / values:.2f} bytes",
            )
        )
    of_a_day = [(ours.table_bytes(table) - size) / herd.devices for table, size in ours.before_bytes.items()]
    year = 100 * (90 * of_a_day[0] + 365 * of_a_day[1])
    figures.append(
        Figure(
            id="history",
            what="a year of rollups for 100 GPUs: 90 days of minutes, 365 of quarters of an hour",
            value=round(year / 1e6, 1),
            unit="MB",
            goal="< 1 GB",
            met=year < 1e9,
            note=f"from one day; with minutes for the whole year {36_500 * sum(of_a_day) / 1e6:.0f} MB; "
            f"VictoriaMetrics' raw samples of such a year {victoria * 100 * 365 * 8640 * 12 / 1e6:.0f} MB",
        )
    )
    return figures


def _time_figures(
    what: str, goal: str, bound: float | None, warm: dict[str, float], cold: dict[str, float]
) -> list[Figure]:
    figures = []
    for how, taken in (("warm", warm), ("cold", cold)):
        value = taken["gpuherd"]
        for name in ("VictoriaMetrics", "Prometheus"):
            is_judged = how == "warm" and name == "VictoriaMetrics"
            ratio = value / taken[name]
            figures.append(
                Figure(
                    id="history",
                    what=f"{what}, {how}",
                    value=round(value, 2),
                    unit="ms",
                    against=name,
                    baseline=round(taken[name], 2),
                    ratio=round(ratio, 2),
                    goal=goal if is_judged else "",
                    met=(ratio <= 2 and (bound is None or value <= bound)) if is_judged else None,
                    note="ours with least and greatest, in the process; the other's mean, over HTTP on loopback",
                )
            )
    return figures
