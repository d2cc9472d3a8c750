"""A clock that is wrong for a while: nothing is gone for good because of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from gpuherd.history.batch import USE_MEASURES, Batch, SessionKey, Uses
from gpuherd.history.library import Library
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.history.trusted_time import TrustedTime
from gpuherd.history.usage.asking import UsageReader
from gpuherd.wiring.sample_stores import embedded_store
from support.past import batch_of, device_keys

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86_400.0


class Clocks:
    """A wall clock that can be set, and one that only runs."""

    def __init__(self, now: float = MIDNIGHT) -> None:
        self.now = now
        self.moment = 1000.0

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.moment += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def opened(folder: Path, clocks: Clocks, *, is_new: bool = False) -> TrustedTime:
    return TrustedTime(
        folder / "trusted.json", is_new=is_new, wall=lambda: clocks.now, monotonic=lambda: clocks.moment
    )


def test_a_clock_that_was_set_is_trusted_after_an_hour(tmp_path: Path, clocks: Clocks) -> None:
    trusted = opened(tmp_path, clocks, is_new=True)
    assert trusted(clocks.now) == clocks.now
    clocks.now += 400 * DAY
    for _ in range(59):
        assert trusted(clocks.now) is None
        clocks.run(60)
    clocks.now -= 400 * DAY  # put right: that, too, is a clock that was set
    for _ in range(60):
        assert trusted(clocks.now) is None
        clocks.run(60)
    assert trusted(clocks.now) == clocks.now
    clocks.now += 5.0  # as the network's time does
    assert trusted(clocks.now) == clocks.now
    read_before = clocks.now
    clocks.run(300)  # as long as some work took
    assert trusted(read_before) == read_before


def test_a_start_with_a_wrong_clock_again_and_again_is_not_believed(tmp_path: Path, clocks: Clocks) -> None:
    assert opened(tmp_path, clocks, is_new=True)(clocks.now) is not None
    clocks.run(DAY)
    assert opened(tmp_path, clocks)(clocks.now) == clocks.now
    clocks.now += 400 * DAY
    for _ in range(3):
        trusted = opened(tmp_path, clocks)
        assert trusted(clocks.now) is None
        clocks.run(1800)
        assert trusted(clocks.now) is None
    clocks.run(1801)  # it was off for so long
    assert trusted(clocks.now) == clocks.now
    assert opened(tmp_path, clocks)(clocks.now) == clocks.now


@pytest.mark.parametrize("content", [None, b"", b'"soon"'])
def test_without_a_time_that_was_trusted_it_takes_an_hour(
    tmp_path: Path, clocks: Clocks, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "trusted.json").write_bytes(content)
    trusted = opened(tmp_path, clocks)
    assert trusted(clocks.now) is None
    clocks.run(HOUR)
    assert trusted(clocks.now) == clocks.now


class Past:
    """All that remembers, of two days."""

    def __init__(self, folder: Path, clocks: Clocks) -> None:
        self.folder, self.clocks = folder, clocks
        self.open()

    def open(self) -> None:
        self.library = Library(
            self.folder,
            HistorySettings(min_free_bytes=0),
            UsageSettings(),
            open_samples=embedded_store,
            pseudonym=lambda user: f"~{user}",
            wall=lambda: self.clocks.now,
            monotonic=lambda: self.clocks.moment,
        )
        self.library.open()

    def fill(self) -> None:
        self.write()
        self.clocks.run(DAY)
        self.tend()

    def write(self) -> None:
        """Write two days into the journal."""
        (device,) = device_keys(1)
        for day in range(2):
            start = MIDNIGHT + day * DAY
            self.clocks.run(start - self.clocks.now)
            rows = [(device, start + at, {"utilization_gpu": 0.5}, 1) for at in range(0, 1800, 60)]
            key = SessionKey(device.node_id, device.uuid, "A100", "ada", None, None, start)
            uses = Uses(
                (key,),
                ("python x",),
                np.zeros(1, np.int32),
                np.array([int(start)]),
                np.array([start]),
                np.array([start + 900]),
                np.array([[900.0] * (len(USE_MEASURES) - 1) + [np.nan]]),
            )
            samples = batch_of(rows)
            self.library.historian.append(Batch(written_at=start, devices=samples.devices, uses=uses))

    def tend(self) -> None:
        for _ in range(4):
            self.clocks.run(2)
            self.library.historian.tend()

    def kept(self) -> tuple[dict[str, bool], list[str]]:
        names = (
            "devices_raw",
            "devices_minute",
            "devices_quarter",
            "herd_minute",
            "herd_quarter",
            "commands",
        )
        figures = UsageReader(self.library.book).figures("user", MIDNIGHT, MIDNIGHT + 3 * DAY)
        found = {
            name: bool(self.library.tables.segments(name, MIDNIGHT, MIDNIGHT + 2 * DAY)) for name in names
        }
        return found, [str(row.key) for row in figures.rows]


@pytest.fixture
def past(tmp_path: Path, clocks: Clocks) -> Iterator[Past]:
    past = Past(tmp_path / "history", clocks)
    yield past
    past.library.close()


@pytest.mark.promise("wrong-clock-deletes-nothing")
def test_a_clock_ahead_for_a_while_deletes_nothing(past: Past, clocks: Clocks) -> None:
    past.fill()
    before = past.kept()
    assert all(before[0].values())
    assert before[1] == ["ada"]
    clocks.now += 400 * DAY
    past.tend()
    assert past.kept() == before
    past.library.close()
    past.open()  # and a start with it deletes nothing either
    past.tend()
    assert past.kept() == before
    clocks.run(HOUR)  # it was off for a year
    past.tend()
    found, users = past.kept()
    assert found == {name: name in ("devices_quarter", "herd_quarter") for name in found}
    assert users == ["~ada"]


@pytest.mark.promise("wrong-clock-deletes-nothing")
def test_a_start_with_a_clock_ahead_deletes_nothing_that_is_only_in_the_journal(
    past: Past, clocks: Clocks
) -> None:
    past.write()
    clocks.run(DAY)
    past.library.close()
    clocks.now += 400 * DAY
    past.open()
    past.tend()
    past.library.close()
    clocks.now -= 400 * DAY
    past.open()
    past.tend()
    found, users = past.kept()
    assert all(found.values()), found
    assert users == ["ada"]
