"""The herd's time: none of it twice, none that was not there, and slices as parts of a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from gpuherd.fleet.names import Names
from gpuherd.fleet.scene import Scene
from gpuherd.fleet.settings import DisplaySettings
from gpuherd.history.batch import DEVICE_METRICS, Batch, Numbering, Samples, SeriesKey
from gpuherd.history.codec import BatchReader, BatchWriter, read_record
from gpuherd.history.herd.stretches import Covered, Stretches
from gpuherd.history.usage.seats import shares_of
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts
from gpuherd.wire.matrix import LAYOUT
from support.past import device_keys
from support.summed_herd import BUSY, FREE, MIDNIGHT, Herd, steady

GIB = 2**30
HOUR = 3600.0
POWER = DEVICE_METRICS.index("power_watts")


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    herd = Herd(tmp_path)
    yield herd
    herd.tables.close()


def one_by_one(herd: Herd, keys: Sequence[SeriesKey], start: float, seconds: int) -> None:
    """Each device reports every ten seconds, each at another second, each in a batch of its own."""
    for second in range(seconds):
        key = keys[second % 10]
        herd.take([(key, start + second, {"power_watts": 100.0}, BUSY)])


def test_nodes_that_report_one_after_the_other_cover_the_same_time_once(herd: Herd) -> None:
    keys = tuple(SeriesKey(f"n{number}", f"GPU-{number}", "A100") for number in range(10))
    for hour in (0, 1):  # the hub is there for a quarter of each hour
        one_by_one(herd, keys, MIDNIGHT + hour * HOUR, 900)
        herd.seal()  # minutes lie in several files
    herd.now = MIDNIGHT + 2 * HOUR
    told = herd.reader.series(MIDNIGHT, herd.now, max_points=2)
    # Exactly: of 900 s each device is known for 900, but in the second hour the first samples are after a gap.
    assert told.devices["busy"] == pytest.approx([10.0, 10.0], rel=0.015)
    assert told.power_watts == pytest.approx([1000.0, 1000.0], rel=0.015)
    herd.now = MIDNIGHT + 2 * 86_400
    herd.seal()
    assert herd.tables.segments("herd_quarter")
    assert herd.reader.series(MIDNIGHT, MIDNIGHT + 2 * HOUR, max_points=2).devices["busy"] == pytest.approx(
        told.devices["busy"]
    )


def test_the_step_that_is_not_over_shows_all_devices(herd: Herd) -> None:
    keys = tuple(SeriesKey(f"n{number}", f"GPU-{number}", "A100") for number in range(10))
    one_by_one(herd, keys, MIDNIGHT, 1200)
    herd.now = MIDNIGHT + 1200
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 1800, max_points=2)
    assert told.devices["busy"] == pytest.approx([10.0, 10.0], rel=0.02)


def test_what_a_restart_covers_again_is_not_more_time(herd: Herd) -> None:
    first, second = device_keys(2)
    herd.take(steady((first,), MIDNIGHT, 600))
    herd.seal()
    herd.tables.close()
    herd.open()
    herd.take(steady((second,), MIDNIGHT, 600))  # kept by its node meanwhile
    herd.now = MIDNIGHT + 2 * 86_400
    herd.seal()
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 900, max_points=1)
    assert told.step_seconds == 900
    assert told.devices["busy"] == pytest.approx([2.0])


@pytest.mark.parametrize("seals", [False, True])
def test_a_clock_that_is_set_back_counts_nothing_twice(herd: Herd, seals: bool) -> None:
    keys = device_keys(3)
    herd.take(steady(keys, MIDNIGHT, 7200))
    if seals:
        herd.seal()
    before = herd.reader.capacity(MIDNIGHT, MIDNIGHT + 7200)
    for at in range(3600, 7201, 10):
        herd.take(steady(keys, MIDNIGHT + at - 3, 0))
    assert herd.reader.capacity(MIDNIGHT, MIDNIGHT + 7200) == before
    assert before.seen_hours == pytest.approx(6.0)
    herd.take(steady(keys, MIDNIGHT + 7210, 3590))
    assert herd.reader.capacity(MIDNIGHT, MIDNIGHT + 10_800).seen_hours == pytest.approx(9.0)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_order_samples_come_in_each_second_counts_once(seed: int) -> None:
    """Against a set of tenths of seconds: what was counted is disjoint, and is all but what nobody told of."""
    random = np.random.default_rng(seed)
    times = np.arange(1, 400) * 10.0
    lost = random.random(len(times)) < 0.05
    now, late = times[~lost][:200], times[~lost][200:]
    cut = np.sort(random.choice(np.arange(20, 190), 2, replace=False))
    parts = [now[: cut[0]], late, now[cut[0] : cut[1]], now[cut[1] :], now[cut[0] - 10 :], late[5:]]
    stretches = Stretches()
    stretches.make_room(1)
    counted = np.zeros(5000 * 10, np.int64)
    for part in parts:
        for piece in np.array_split(part, max(1, len(part) // int(random.integers(1, 9)))):
            _, starts, ends = stretches.of(np.zeros(len(piece), np.int64), piece)
            for start, end in zip(starts, ends, strict=True):
                counted[round(start * 10) : round(end * 10)] += 1
    assert counted.max() == 1
    told = np.zeros_like(counted)
    for time in times[~lost]:
        told[round(time * 10) - 100 : round(time * 10)] = 1
    assert (told & (1 - counted)).sum() <= 100  # in tenths: at most what one sample stands for
    assert counted.sum() <= 10 * times[-1]


def test_nodes_that_report_seldom_count(herd: Herd) -> None:
    (hourly,) = device_keys(1)
    for at in range(0, 10 * 3600, 3600):
        herd.take([(hourly, MIDNIGHT + at + at % 7, {"power_watts": 100.0}, BUSY)])
    seen = herd.reader.capacity(MIDNIGHT - HOUR, MIDNIGHT + 10 * HOUR).seen_hours
    assert seen == pytest.approx(
        8.0, rel=0.01
    )  # whether the first two are an hour apart or had a gap is not known


def test_a_new_start_does_not_lose_the_sample_it_begins_with(herd: Herd) -> None:
    keys = device_keys(2)
    for at in range(0, 600, 10):
        herd.take(steady(keys, MIDNIGHT + at + 10, 0))
        if at == 290:
            herd.seal()
            herd.tables.close()
            herd.open()
    assert herd.reader.capacity(MIDNIGHT, MIDNIGHT + 900).seen_hours == pytest.approx(2 * 600 / HOUR)
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + 600)
    assert told.devices["busy"] == pytest.approx([2.0] * 10)


def test_late_minutes_of_a_day_whose_others_are_still_kept_do_not_double_it(herd: Herd) -> None:
    first, second = device_keys(2)
    herd.take(steady((first,), MIDNIGHT, 3600))
    herd.now = MIDNIGHT + 2 * 86_400
    herd.seal()
    assert [segment.level for segment in herd.tables.segments("herd_minute", MIDNIGHT)] == [1]
    herd.take(steady((second,), MIDNIGHT, 3600))
    herd.now = MIDNIGHT + 92 * 86_400  # its minutes are due to be forgotten, but still there
    herd.seal()
    seen = herd.reader.capacity(MIDNIGHT, MIDNIGHT + HOUR).seen_hours
    assert seen == pytest.approx(2.0)


def test_coverage_is_a_union() -> None:
    random = np.random.default_rng(1)
    covered, seconds = Covered(), np.zeros(1000, np.bool_)
    for _ in range(300):
        starts = random.integers(0, 950, 4).astype(np.float64)
        ends = starts + random.integers(1, 12, 4)
        fresh = covered.add(starts, ends)
        for start, end in fresh:
            assert not seconds[int(start) : int(end)].any()
            seconds[int(start) : int(end)] = True
        for start, end in zip(starts, ends, strict=True):
            assert seconds[int(start) : int(end)].all()


def split_gpu() -> tuple[DeviceFacts, ...]:
    name = "NVIDIA A100-SXM4-80GB"
    whole = DeviceFacts(uuid="P", index=0, name=name, is_partitioned=True, memory_total_bytes=80 * GIB)
    slices = (
        DeviceFacts(
            uuid=f"S{number}",
            index=number,
            name=name,
            kind="slice",
            parent_uuid="P",
            profile="1g.10gb",
            memory_total_bytes=10 * GIB,
        )
        for number in range(7)
    )
    return (whole, *slices)


def test_a_split_gpu_is_no_more_than_a_gpu(herd: Herd) -> None:
    facts = NodeFacts(host=HostFacts(hostname="n"), devices=split_gpu())
    scene = Scene("n", "b", LAYOUT, facts, ProcessTable(), (), Names(DisplaySettings()))
    numbering = Numbering()
    numbers = np.frombuffer(scene.numbers(numbering, Numbering())[0], np.int64)
    assert [bool(key.type) for key in numbering.keys] == [False] + [True] * 7
    assert numbering.share.tolist() == pytest.approx([1.0] + [1 / 8] * 7)
    assert numbering.share.tolist() == shares_of(facts.devices).tolist()
    writer = BatchWriter()
    for number, at in enumerate(range(0, 3601, 10)):
        values = np.full((8, len(DEVICE_METRICS)), np.nan)
        values[0, POWER] = 300.0  # slices do not know
        samples = Samples(
            keys=tuple(numbering.keys),
            subject=np.arange(8, dtype=np.int32),
            time=np.full(8, MIDNIGHT + at),
            values=values,
            state=np.array([FREE, BUSY, BUSY, *[FREE] * 5], np.uint8),
            memory_total=numbering.memory_total,
            numbering=numbering,
            numbers=numbers,
            share=numbering.share,
        )
        batch = Batch(written_at=MIDNIGHT + at, devices=samples)
        record = read_record(writer.write(batch, number))
        if not number:
            names = record.names
        herd.sink.take(BatchReader(names).read(record), herd.file)  # as after a new start
    capacity = herd.reader.capacity(MIDNIGHT, MIDNIGHT + HOUR)
    assert capacity.seen_hours == pytest.approx(7 / 8)
    assert capacity.free_hours == pytest.approx(5 / 8)
    told = herd.reader.series(MIDNIGHT, MIDNIGHT + HOUR)
    assert told.devices["busy"] == pytest.approx(
        [2.0] * len(told.times)
    )  # what one can have, as in the live view
    assert told.devices["free"] == pytest.approx([5.0] * len(told.times))
    assert told.power_watts == pytest.approx([300.0] * len(told.times))
    assert told.types == ("A100 80GB 1g.10gb",)
