"""Devices that send no samples are in the herd's history all the same: silent ones, and those that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.intake import Intake
from gpuherd.history.batch import NOT_JUDGED, Batch, SeriesKey, Unsampled
from gpuherd.history.codec import BatchReader, BatchWriter, read_record
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import HerdSeries
from support.herd import IDLE, ManualClock, Speaker, gpu
from support.summed_herd import Herd

OFFLINE = DEVICE_STATES.index("offline")


class Watched:
    """A fleet whose history is summed up."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.clock.advance(60 - self.clock.wall() % 60)
        self.began_at = self.clock.wall()
        self.herd = Herd(folder)
        self.fleet = Fleet(clock=self.clock)
        self.intake = self.fleet.intake = Intake(
            clock=self.clock, names=self.fleet.names, accountant=None, oldest_seconds=1e9
        )

    def speaker(self, name: str, *devices: int) -> Speaker:
        self.fleet.add_node(name, name)
        speaker = Speaker(self.fleet, self.clock, name)
        speaker.describe(*(gpu(index, uuid=f"GPU-{name}-{index}") for index in devices))
        return speaker

    def pass_time(self, seconds: int, *speakers: Speaker) -> None:
        """Let speakers send a sample of an idle GPU, or of several, each second."""
        for _ in range(seconds):
            self.clock.advance(1.0)
            for speaker in speakers:
                speaker.sample(*[IDLE] * len(speaker.facts.devices))
            self.fleet.tick()
            gathered = self.intake.gather()
            if gathered is not None:
                self.herd.sink.take(self.intake.batch(gathered), self.herd.file)
        self.herd.now = self.clock.wall()

    def series(self, max_points: int = 500) -> HerdSeries:
        return self.herd.reader.series(self.began_at, self.clock.wall(), max_points=max_points)


def total(series: HerdSeries) -> list[float | None]:
    return [
        None if None in step else sum(filter(None, step))
        for step in zip(*series.devices.values(), strict=True)
    ]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.herd.tables.close()


def test_silent_devices_are_stale_then_offline_and_the_total_does_not_dip(watched: Watched) -> None:
    here, away = watched.speaker("here", 0, 1), watched.speaker("away", 0, 1, 2)
    watched.pass_time(120, here, away)
    watched.pass_time(240, here)
    watched.pass_time(120, here, away)
    told = watched.series()
    assert total(told) == pytest.approx(
        [5.0] * 8, abs=0.3
    )  # the seconds until it is known that a node is silent
    assert told.devices["offline"][3:6] == pytest.approx([3.0] * 3, abs=0.2)
    assert told.devices["stale"][2] == pytest.approx(3 * 57 / 60, abs=0.2)
    assert told.devices["free"][3:5] == pytest.approx([2.0] * 2, abs=0.1)


def test_what_silent_devices_send_later_counts_once(watched: Watched) -> None:
    here, away = watched.speaker("here", 0, 1), watched.speaker("away", 0, 1, 2)
    watched.pass_time(120, here, away)
    watched.pass_time(240, here)
    watched.pass_time(60, here, away)
    watched.herd.seal()
    keys = tuple(SeriesKey("away", f"GPU-away-{index}", "A100 80GB") for index in range(3))
    late = range(121, 361)
    watched.herd.take(
        [(key, watched.began_at + at, {"power_watts": 90.0}, NOT_JUDGED) for at in late for key in keys]
    )
    for told in (watched.series(), watched.series(max_points=1)):
        assert total(told) == pytest.approx([5.0] * len(told.times), abs=0.3)
        assert max(filter(None, told.devices["offline"]), default=0.0) < 0.3
    assert watched.series().devices["unknown"][3:5] == pytest.approx([3.0] * 2, abs=0.1)


def test_a_missing_gpu_is_a_fault_in_history_too(watched: Watched) -> None:
    node = watched.speaker("n1", 0, 1)
    watched.pass_time(60, node)
    node.describe(gpu(0, uuid="GPU-n1-0"))
    watched.pass_time(120, node)
    told = watched.series()
    # What goes on is written with some delay.
    assert total(told) == pytest.approx([2.0] * 3, abs=0.2)
    assert told.devices["fault"] == pytest.approx([0.0, 1.0, 1.0], abs=0.2)


def test_a_herd_that_is_silent_as_a_whole_is_offline_and_not_unknown(watched: Watched) -> None:
    node = watched.speaker("n1", 0)
    watched.pass_time(60, node)
    watched.pass_time(240)
    watched.clock.advance(300)  # the hub itself was away
    watched.pass_time(60)
    told = watched.series()
    assert told.devices["offline"][2:5] == pytest.approx([1.0] * 3, abs=0.1)
    assert total(told)[6:9] == [None] * 3
    assert told.devices["offline"][10] == pytest.approx(1.0, abs=0.1)


def test_the_journal_keeps_it() -> None:
    piece = Unsampled("A100 80GB", OFFLINE, 10.0, 20.0, 3.0, 2.5)
    record = read_record(BatchWriter().write(Batch(written_at=20.0, unsampled=(piece,)), 1))
    assert BatchReader(record.names).read(record).unsampled == (piece,)
