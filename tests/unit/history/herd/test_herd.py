"""The whole herd's numbers: exact sums, once, whatever comes late or is started anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gpuherd.history.batch import NOT_JUDGED, SeriesKey
from gpuherd.history.herd.shapes import MINUTE
from support.past import device_keys
from support.summed_herd import BUSY, FREE, HELD, MIDNIGHT, Herd, steady


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    herd = Herd(tmp_path)
    yield herd
    herd.tables.close()


def test_watching_begins_with_the_oldest_that_is_kept(herd: Herd) -> None:
    assert herd.reader.begins_at() is None
    herd.take(steady(device_keys(1), MIDNIGHT + 3600, 600, FREE))
    assert herd.reader.begins_at() == pytest.approx(MIDNIGHT + 3600, rel=0, abs=60)
    herd.seal()
    herd.take(steady(device_keys(1), MIDNIGHT + 7200, 600, FREE))
    assert herd.reader.begins_at() == pytest.approx(MIDNIGHT + 3600, rel=0, abs=60)
    herd.take(steady(device_keys(1), MIDNIGHT, 600, FREE))  # came late
    assert herd.reader.begins_at() == pytest.approx(MIDNIGHT, rel=0, abs=60)


def test_a_steady_herd_is_told_as_it_is(herd: Herd) -> None:
    herd.take(steady(device_keys(3), MIDNIGHT, 600) + steady(device_keys(5)[3:], MIDNIGHT, 600, FREE))
    herd.now = MIDNIGHT + 600
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 600)
    assert told.step_seconds == 60
    assert told.devices["busy"] == pytest.approx([3.0] * 10)
    assert told.devices["free"] == pytest.approx([2.0] * 10)
    assert told.power_watts == pytest.approx([500.0] * 10)
    assert told.utilization_gpu == pytest.approx([0.5] * 10)
    assert told.memory_ratio == pytest.approx([0.5] * 10)
    assert told.types == ("H100",)


def test_sealing_folding_and_a_new_start_change_nothing(herd: Herd) -> None:
    keys = device_keys(2)
    for minute in range(0, 3 * 1440, 60):
        herd.take(steady(keys, MIDNIGHT + minute * 60 + (10 if minute else 0), 3590 if minute else 3600))
        herd.now = MIDNIGHT + minute * 60 + 3600
        if minute % 720 == 0:
            before = herd.reader.series(MIDNIGHT, herd.now, max_points=48)
            herd.seal()
            assert herd.reader.series(MIDNIGHT, herd.now, max_points=48) == before
    herd.seal()
    told = herd.reader.series(MIDNIGHT, herd.now, max_points=72)
    assert told.devices["busy"] == pytest.approx([2.0] * 72)
    assert told.resolution == "quarter_hour"
    # Two days are over; and the very first sample stands for a moment of the day before.
    assert len(herd.tables.segments("herd_quarter")) == 3
    herd.tables.close()
    herd.open()
    assert herd.reader.series(MIDNIGHT, herd.now, max_points=72) == told
    assert herd.reader.capacity(MIDNIGHT, herd.now).seen_hours == pytest.approx(2 * 72)
    assert herd.reader.capacity(MIDNIGHT, herd.now).free_hours == 0.0


def test_what_was_not_settled_is_taken_again_once(herd: Herd) -> None:
    keys = device_keys(2)
    herd.take(steady(keys, MIDNIGHT, 600))
    herd.seal()
    herd.take(steady(keys, MIDNIGHT + 610, 590))
    herd.tables.close()
    herd.open()  # the second file comes again, the first does not
    assert herd.sink.settled == herd.file
    herd.take(steady(keys, MIDNIGHT + 610, 590))
    herd.now = MIDNIGHT + 1200
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 1200)
    assert told.devices["busy"] == pytest.approx([2.0] * 20)


def test_how_long_it_was_watched_is_told_of_any_steps(herd: Herd) -> None:
    fast, slow = device_keys(2)[:1], (SeriesKey("n9", "GPU-9", "L40S"),)
    hours = [MIDNIGHT + 3600 * number for number in range(5)]
    herd.take(steady(fast, MIDNIGHT, 1800))
    herd.seal()
    herd.take(steady(fast, MIDNIGHT + 1810, 890) + steady(slow, MIDNIGHT, 1800))
    herd.take(steady(fast, hours[3], 600))
    expected = [2700.0, 0.0, 10.0, 600.0]  # the first sample after a gap stands for the usual ten seconds
    assert herd.reader.watched(hours).tolist() == pytest.approx(expected)
    herd.now = MIDNIGHT + 2 * 86_400
    herd.seal()
    assert herd.tables.segments("herd_quarter")
    assert herd.reader.watched(hours).tolist() == pytest.approx(expected)
    assert herd.reader.watched([hours[0], hours[0] + 900, hours[3]]).tolist() == pytest.approx(
        [900.0, 1810.0]
    )
    assert herd.reader.watched([hours[0] - 7200, hours[0] - 3600]).tolist() == [0.0]


def test_a_gap_is_a_gap_and_not_an_empty_herd(herd: Herd) -> None:
    keys = device_keys(2)
    herd.take(steady(keys, MIDNIGHT, 300) + steady(keys, MIDNIGHT + 900, 300))
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 1200)
    assert told.devices["busy"][:5] == pytest.approx([2.0] * 5)
    assert told.devices["busy"][6:14] == [None] * 8
    assert told.utilization_gpu[6:14] == [None] * 8
    assert told.devices["busy"][15:] == pytest.approx([2.0] * 5)


def test_samples_that_come_late_are_put_in_their_place(herd: Herd) -> None:
    first, second = device_keys(2)
    herd.take(steady((first,), MIDNIGHT, 3600))
    herd.take(steady((second,), MIDNIGHT, 600) + steady((second,), MIDNIGHT + 3000, 600))
    herd.seal()
    late = [
        (key, time, numbers, NOT_JUDGED) for key, time, numbers, _ in steady((second,), MIDNIGHT + 610, 2380)
    ]
    herd.take(late)
    herd.now = MIDNIGHT + 2 * 86_400
    herd.seal()
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 3600)
    assert told.power_watts[11:49] == pytest.approx([200.0] * 38)
    assert told.devices["busy"][11:49] == pytest.approx([1.0] * 38)  # what it was then was not worked out
    assert [s.level for s in herd.tables.segments(MINUTE.name, MIDNIGHT)] == [1]


def test_a_partitioned_gpu_counts_as_its_slices(herd: Herd) -> None:
    parent = SeriesKey("node-0", "GPU-0", "")
    slices = (SeriesKey("node-0", "MIG-0", "H100 1g"), SeriesKey("node-0", "MIG-1", "H100 1g"))
    herd.take(steady((parent, *slices), MIDNIGHT, 600))
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 600)
    assert told.devices["busy"] == pytest.approx([2.0] * 10)
    assert told.types == ("H100 1g",)


def test_hours_are_those_of_the_zone_also_when_clocks_are_set_back(herd: Herd) -> None:
    zone = ZoneInfo("Europe/Berlin")
    start = datetime(2026, 10, 25, tzinfo=zone).timestamp()  # a Sunday of 25 hours
    herd.take(steady(device_keys(1), start, 25 * 3600))
    herd.now = start + 25 * 3600
    told = herd.reader.hours(start, start + 25 * 3600, zone=zone)
    sunday = told.hours[6]
    assert sunday[2] == pytest.approx(2.0)
    assert sunday[3] == pytest.approx(1.0)
    assert sum(map(sum, told.hours)) == pytest.approx(25.0)
    assert told.busy[6] == pytest.approx([1.0] * 24)
    assert told.busy[0] == [None] * 24
    delhi = herd.reader.hours(start, start + 25 * 3600, zone=ZoneInfo("Asia/Kolkata"))
    assert sum(map(sum, delhi.hours)) == pytest.approx(25.0)


def test_distribution_counts_devices_in_use_by_class(herd: Herd) -> None:
    keys = device_keys(3)
    rows = [
        (key, MIDNIGHT + at, {"utilization_gpu": work}, state)
        for key, work, state in zip(keys, (0.0, 1.0, 0.55), (HELD, BUSY, FREE), strict=True)
        for at in range(0, 3601, 10)
    ]
    herd.take(rows)
    told = herd.reader.distribution(MIDNIGHT, MIDNIGHT + 3600)
    assert told.hours[0] == pytest.approx(1.0)
    assert told.hours[-1] == pytest.approx(1.0)
    assert sum(told.hours) == pytest.approx(2.0)
    assert told.by_type == {"H100": told.hours}


def test_clock_oddities_never_count_time_that_is_not_there(herd: Herd) -> None:
    (key,) = device_keys(1)
    times = [0, 10, 10, 20, 15, 30, 40, 100_000, 100_010, 50, 60]
    for time in times:
        herd.take([(key, MIDNIGHT + time, {"power_watts": 100.0}, BUSY)])
    seconds = herd.reader.capacity(MIDNIGHT, MIDNIGHT + 86_400 * 2).seen_hours
    assert seconds is not None
    assert 60 <= seconds * 3600 <= 100


def test_random_samples_add_up_to_their_distances(herd: Herd) -> None:
    random = np.random.default_rng(3)
    (key,) = device_keys(1)
    times = MIDNIGHT + np.cumsum(random.uniform(5, 15, 2000))
    for part in np.array_split(times, 9):
        herd.take([(key, float(time), {"power_watts": 1.0}, int(random.integers(3))) for time in part])
        herd.seal()
    told = herd.reader.capacity(MIDNIGHT - 900, float(times[-1]) + 900)
    first = times[1] - times[0]  # the first one stands for as long as the second
    assert told.seen_hours == pytest.approx((first + times[-1] - times[0]) / 3600, rel=1e-6)


def test_late_samples_count_and_nothing_is_not_zero(herd: Herd) -> None:
    """While a hub was away nobody judged: the devices were there all the same. Where nothing came, nothing is known."""
    keys = device_keys(3)
    herd.take(steady(keys, MIDNIGHT, 300, FREE))
    herd.take(steady(keys, MIDNIGHT + 310, 290, NOT_JUDGED))
    herd.take(steady(keys, MIDNIGHT + 1210, 290, FREE))
    herd.now = MIDNIGHT + 1500
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 1500)
    total = [None if None in step else sum(step) for step in zip(*told.devices.values(), strict=True)]
    assert total == [pytest.approx(3.0)] * 10 + [None] * 10 + [pytest.approx(3.0)] * 5
    assert told.devices["unknown"][5:10] == pytest.approx([3.0] * 5, abs=0.6)


def test_a_gpu_that_two_nodes_report_is_one(herd: Herd) -> None:
    uuid = "GPU-11111111-2222-3333-4444-000000000000"
    twins = (SeriesKey("first", uuid, "H100"), SeriesKey("second", uuid, "H100"))
    others = (SeriesKey("first", "GPU-0", "H100"), SeriesKey("second", "GPU-0", "H100"))
    herd.take(steady((*twins, *others), MIDNIGHT, 600, FREE))
    herd.now = MIDNIGHT + 600
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 600)
    assert told.devices["free"] == pytest.approx([3.0] * 10), "an id that was made up is not compared"
    assert told.power_watts == pytest.approx([300.0] * 10)
