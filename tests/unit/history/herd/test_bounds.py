"""However long the range, and whatever nodes make up, memory stays small and the sums right."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gpuherd.history import places
from gpuherd.history.batch import DEVICE_METRICS, Numbering, Samples, SeriesKey
from gpuherd.history.herd import asking, tally
from gpuherd.history.herd.reader import MOST_TYPES, HerdReader, hours_of_week
from gpuherd.history.herd.shapes import HERD_SHAPES, QUARTER
from gpuherd.history.herd.sink import HerdSink
from gpuherd.history.herd.tally import OTHER_TYPES, Tally
from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.tables import Tables
from gpuherd.history.tables.writing import Coded
from gpuherd.model.devices import DEVICE_STATES

TYPES = 5_000
DAY = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
YEARS = 20 * 366 * 86_400
BUSY = DEVICE_STATES.index("busy")
SMALL_BYTES = 48 * 2**20


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[HerdReader]:
    """Two quarters of an hour with a device each of far too many types; later ones were there longer."""
    tables = Tables(tmp_path, HERD_SHAPES, threads=1)
    code = np.tile(np.arange(TYPES), 2)
    seconds = np.where(code >= TYPES - MOST_TYPES, 900.0, 450.0)
    made = tables.write(
        QUARTER.name,
        {
            "time": np.repeat([int(DAY) * 1000, (int(DAY) + 900) * 1000], TYPES).astype("datetime64[ms]"),
            "type": Coded(code, [f"type {number:04}" for number in range(TYPES)]),
            **{name: np.zeros(2 * TYPES) for name in QUARTER.columns if name not in ("time", "type")},
            "state_busy": seconds,
            "gpu_busy": seconds,
            "in_use_0_seconds": seconds,
            "covered_seconds": seconds,
        },
        partition=int(DAY),
        level=1,
    )
    tables.commit(add=[made])
    yield HerdReader(tables, HerdSink(tables, HistorySettings()), clock=lambda: DAY + 86_400)
    tables.close()


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_decades_and_thousands_of_types_take_little_memory(reader: HerdReader) -> None:
    end = DAY + 86_400
    asked = {
        "hours": lambda: reader.hours(end - YEARS, end, zone=ZoneInfo("Europe/Berlin")),
        "series": lambda: reader.series(end - YEARS, end, max_points=2_000),
        "distribution": lambda: reader.distribution(end - YEARS, end),
        "capacity": lambda: reader.capacity(end - YEARS, end),
    }
    peaks = {name: peak_of(work) for name, work in asked.items()}
    assert max(peaks.values()) < SMALL_BYTES, peaks


def test_an_answer_names_the_largest_types_and_counts_all(reader: HerdReader) -> None:
    hours = (TYPES + MOST_TYPES) * 0.25
    largest = [f"type {number:04}" for number in range(TYPES - MOST_TYPES, TYPES)]
    told = reader.distribution(DAY, DAY + 1800)
    assert sorted(told.by_type) == sorted([*largest, OTHER_TYPES])
    assert told.by_type[OTHER_TYPES][0] == pytest.approx((TYPES - MOST_TYPES) * 0.25)
    assert told.hours[0] == pytest.approx(hours)
    assert reader.distribution(DAY, DAY + 1800, type="type 0001").by_type == {
        "type 0001": [0.25, *[0.0] * (len(told.hours) - 1)]
    }
    assert reader.distribution(DAY, DAY + 1800, type="nothing").by_type == {}
    series = reader.series(DAY, DAY + 1800, max_points=2)
    assert series.types == tuple(largest)
    assert series.devices["busy"] == pytest.approx([2 * hours] * 2)
    assert reader.series(DAY, DAY + 1800, type="type 0001", max_points=2).devices["busy"] == [0.5, 0.5]
    week = reader.hours(DAY, DAY + 1800, zone=ZoneInfo("UTC"), type="type 0001")
    assert sum(map(sum, week.hours)) == pytest.approx(0.25)
    assert reader.capacity(DAY, DAY + 1800).seen_hours == pytest.approx(hours)


def test_what_is_known_is_told_alike_in_pieces(reader: HerdReader, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reader.series(DAY - 86_400, DAY + 86_400, max_points=2_000)
    monkeypatch.setattr(asking, "ROWS_AT_ONCE", 1)
    assert reader.series(DAY - 86_400, DAY + 86_400, max_points=2_000) == whole


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"])
def test_hours_of_the_week_are_those_that_clocks_show(zone: str) -> None:
    clock = ZoneInfo(zone)
    first = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    times = first + 900 * np.arange(366 * 96)
    shown = [datetime.fromtimestamp(int(time), clock) for time in times]
    assert hours_of_week(times, clock).tolist() == [each.weekday() * 24 + each.hour for each in shown]


def sample_of(keys: tuple[SeriesKey, ...], time: float, numbering: Numbering | None = None) -> Samples:
    count = len(keys)
    return Samples(
        keys=keys,
        subject=np.arange(count, dtype=np.int32),
        time=np.full(count, time),
        values=np.zeros((count, len(DEVICE_METRICS))),
        state=np.full(count, BUSY, np.uint8),
        memory_total=np.full(count, np.nan),
        numbering=numbering,
        numbers=np.array([numbering.number(key) for key in keys], np.int64) if numbering else None,
    )


def made_up(frame: int) -> tuple[SeriesKey, ...]:
    return tuple(SeriesKey("evil", f"GPU-{frame}-{number}", f"made up {frame}") for number in range(512))


def test_made_up_devices_and_types_are_forgotten_and_true_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = 8_192
    monkeypatch.setattr(places, "MOST_KNOWN", most)
    counts, numbering = Tally(most_devices=most), Numbering()
    honest = (SeriesKey("good", "GPU-0", "H100"),)
    for frame in range(300):
        seconds = counts.add(sample_of(honest, DAY + 10 * frame, numbering)).values[:, BUSY].sum()
        assert seconds == pytest.approx((0.0, 20.0, 10.0)[min(frame, 2)])  # the first waits for the second
        counts.add(sample_of(made_up(frame), DAY + 10 * frame))
        assert counts.devices <= most + 512
    assert counts.types[:2] == ["", "H100"]
    assert len(counts.types) == tally.MOST_TYPES + 1
    assert counts.types[-1] == OTHER_TYPES


def test_memory_of_devices_does_not_grow_with_those_that_are_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_KNOWN", 1_024)
    counts = Tally(most_devices=1_024)

    def flood(frames: range) -> int:
        for frame in frames:
            counts.add(sample_of(made_up(frame), DAY + frame))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = flood(range(8))
        assert flood(range(8, 40)) < before + 2**20
    finally:
        tracemalloc.stop()


def test_a_device_that_changes_its_type_all_the_time_is_not_remembered_with_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "MOST_KNOWN", 16)
    asked: list[SeriesKey] = []

    def find(key: SeriesKey) -> tuple[int, int]:
        asked.append(key)
        return 7, 0

    known = places.Places(find)
    keys = [SeriesKey("evil", "GPU-0", f"made up {number}") for number in range(40)]
    for key in keys:
        assert known.of(sample_of((key,), DAY))[0].tolist() == [7]
    known.of(sample_of((keys[0],), DAY))
    assert asked == [*keys, keys[0]]
