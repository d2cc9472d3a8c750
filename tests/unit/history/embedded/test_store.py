"""The store of samples against a computation that takes the long way."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuherd.history.batch import NOT_JUDGED, SeriesKey
from gpuherd.history.embedded.asking import add_rollups
from gpuherd.history.embedded.grid import Grid
from gpuherd.history.embedded.kinds import DEVICES, SHAPES
from gpuherd.history.embedded.store import EmbeddedStore
from gpuherd.history.journal import Reading
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SeriesAnswer, SeriesQuery
from gpuherd.history.tables.disk import DiskFull
from gpuherd.history.tables.tables import Answer, Part, Tables
from support.past import Kept, Row, batch_of, device_keys

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
HOUR, DAY = 3600, 86_400
TOLERANCE = {"utilization_gpu": 2e-4, "power_watts": 0.02, "memory_used_bytes": 1.0, "cpu_ratio": 2e-4}
METRICS = ("utilization_gpu", "power_watts", "memory_used_bytes")


class Past:
    """A store over one folder, beside a memory of all that it was given."""

    def __init__(self, folder: Path, wishes: HistorySettings | None = None) -> None:
        self.folder = folder
        self.wishes = wishes or HistorySettings()
        self.now = MIDNIGHT
        self.file = 1
        self.kept = Kept()
        self.journal: list[tuple[int, Sequence[Row]]] = []
        self.open()

    def open(self) -> None:
        self.tables = Tables(self.folder, SHAPES, threads=1)
        self.store = EmbeddedStore(self.tables, self.wishes, clock=lambda: self.now)
        for file, rows in self.journal:
            if file >= self.store.settled:
                self.store.take(batch_of(rows), file)

    def read(self, number: int) -> Reading:
        """Give what the journal holds, as its files do."""
        return Reading(
            batches=[(n, batch_of(rows)) for n, (f, rows) in enumerate(self.journal) if f == number]
        )

    def start_anew(self) -> None:
        self.tables.close()
        self.open()

    def take(self, rows: Sequence[Row]) -> None:
        self.journal.append((self.file, rows))
        self.kept.add(rows)
        self.store.take(batch_of(rows), self.file)

    def tend(self, now: float | None = None) -> None:
        self.now = self.now if now is None else now
        self.file += 1
        self.store.tend(self.now, self.file)

    def ask(
        self,
        key: SeriesKey,
        start: float,
        end: float,
        points: int = 500,
        metrics: tuple[str, ...] = METRICS,
        with_states: bool = False,
    ) -> SeriesAnswer:
        return self.store.read(
            SeriesQuery(
                subjects=(key,),
                metrics=metrics,
                start=start,
                end=end,
                max_points=points,
                with_states=with_states,
            )
        )

    def check(self, key: SeriesKey, start: float, end: float, points: int = 500) -> SeriesAnswer:
        """Ask, and compare with what it was given."""
        answer = self.ask(key, start, end, points)
        (told,) = answer.subjects
        for place, metric in enumerate(METRICS):
            expected = self.kept.expected(key, metric, answer.times, answer.step_seconds)
            for got, wanted in zip((told.mean, told.low, told.high), expected, strict=True):
                np.testing.assert_allclose(got[:, place], wanted, atol=TOLERANCE[metric], rtol=1e-6)
        return answer


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    past = Past(tmp_path)
    yield past
    past.tables.close()


def random_rows(
    keys: Sequence[SeriesKey], start: float, seconds: float, *, every: float = 10.0, seed: int = 0
) -> list[Row]:
    random = np.random.default_rng((seed, int(start)))
    return [
        (
            key,
            round(start + at + 0.01 * number, 3),
            {
                "utilization_gpu": round(float(random.random()), 2),
                "power_watts": round(float(random.random() * 500), 1),
                "memory_used_bytes": float(random.integers(2**36)),
            },
            int(random.integers(3)),
        )
        for at in np.arange(0, seconds, every)
        for number, key in enumerate(keys)
    ]


def live(past: Past, keys: Sequence[SeriesKey], start: float, seconds: float, every: float = 10.0) -> None:
    """Take samples as they come, and tend now and then."""
    for at in range(0, int(seconds), HOUR):
        length = min(HOUR, seconds - at)
        past.take(random_rows(keys, start + at, length / 2, every=every))
        past.take(random_rows(keys, start + at + length / 2, length / 2, every=every))
        past.tend(start + at + length + 61)


def test_memory_raw_and_rollups_join_without_a_seam(past: Past) -> None:
    keys = device_keys(3)
    live(past, keys, MIDNIGHT, 2.5 * HOUR)
    for points, step, resolution in ((2000, 10, "raw"), (150, 60, "minute"), (9, 1800, "quarter_hour")):
        answer = past.check(keys[1], MIDNIGHT, MIDNIGHT + 2.5 * HOUR, points)
        assert (answer.step_seconds, answer.resolution) == (step, resolution)
        assert not np.isnan(answer.subjects[0].mean).any()


def test_a_day_becomes_one_file_and_is_told_the_same(past: Past) -> None:
    keys = device_keys(2)
    for hour in (0, 1, 7, 14, 22, 25, 26):
        live(past, keys, MIDNIGHT + hour * HOUR, HOUR, every=60.0)
    files = {
        shape.name: [s.level for s in past.tables.segments(shape.name, MIDNIGHT, MIDNIGHT + DAY - 1)]
        for shape in SHAPES
    }
    assert files["devices_raw"] == [1]
    assert len(files["devices_minute"]) == 1
    for points in (2000, 300, 40):
        past.check(keys[0], MIDNIGHT, MIDNIGHT + 27 * HOUR, points)
    past.start_anew()
    past.check(keys[0], MIDNIGHT, MIDNIGHT + 27 * HOUR, 300)


def test_states_last_until_the_next_sample(past: Past) -> None:
    (key,) = device_keys(1)
    rows = [row for row in random_rows((key,), MIDNIGHT, 2.2 * HOUR) if not 1000 < row[1] - MIDNIGHT < 1600]
    past.take(rows)
    past.tend(MIDNIGHT + 2.2 * HOUR)
    for points, step in ((1000, 10), (140, 60), (9, 900)):
        answer = past.ask(key, MIDNIGHT, MIDNIGHT + 2.2 * HOUR, points, with_states=True)
        states = answer.subjects[0].states
        assert states is not None
        assert answer.step_seconds == step
        expected = past.kept.state_seconds(key, answer.times, step, 10.0, past.now)
        np.testing.assert_allclose(states, expected, atol=0.002)


def test_what_was_not_judged_has_no_state(past: Past) -> None:
    (key,) = device_keys(1)
    past.take([(key, MIDNIGHT + at, {"power_watts": 1.0}, NOT_JUDGED) for at in range(0, 600, 10)])
    past.now = MIDNIGHT + 600
    states = past.ask(key, MIDNIGHT, MIDNIGHT + 600, with_states=True).subjects[0].states
    assert states is not None
    assert states.sum() == 0


def test_a_gap_stays_a_gap(past: Past) -> None:
    (key,) = device_keys(1)
    past.take(random_rows((key,), MIDNIGHT, 600) + random_rows((key,), MIDNIGHT + 1800, 600))
    past.now = MIDNIGHT + 2400
    answer = past.check(key, MIDNIGHT, MIDNIGHT + 2400)
    means = answer.subjects[0].mean[:, 0]
    assert np.isnan(means[60:180]).all()
    assert not np.isnan(means[:60]).any()
    assert not np.isnan(means[180:]).any()


def test_late_samples_land_in_their_place_once(past: Past) -> None:
    keys = device_keys(2)
    live(past, keys[:1], MIDNIGHT, 3 * HOUR)
    late = random_rows(keys[1:], MIDNIGHT + 300, 2 * HOUR)
    past.take(late[::-1])  # out of order, too
    past.check(keys[1], MIDNIGHT, MIDNIGHT + 3 * HOUR, 180)  # from memory, beside rollups that lack it
    past.tend(MIDNIGHT + 3 * HOUR + 700)
    for _ in range(2):
        for points in (1080, 180, 12):
            past.check(keys[1], MIDNIGHT, MIDNIGHT + 3 * HOUR, points)
        past.check(keys[0], MIDNIGHT, MIDNIGHT + 3 * HOUR, 180)
        past.take(late[:500])  # and once more
        past.tend(past.now + 700)


def test_late_samples_of_days_whose_raw_samples_are_gone_are_added_to_the_rollups(tmp_path: Path) -> None:
    past = Past(tmp_path, HistorySettings(raw_days=1))
    keys = device_keys(2)
    live(past, keys, MIDNIGHT, 2 * HOUR)
    past.take(random_rows(keys, MIDNIGHT + 4 * DAY, 600))
    past.tend(MIDNIGHT + 4 * DAY + 600)
    past.tend(MIDNIGHT + 4 * DAY + 700)
    assert not past.tables.segments("devices_raw", MIDNIGHT, MIDNIGHT + DAY)
    past.take(random_rows(keys[:1], MIDNIGHT + 1000.5, HOUR, seed=5))
    past.check(keys[0], MIDNIGHT, MIDNIGHT + 2 * HOUR, 120)  # while they wait
    for again in range(3):
        past.tend(MIDNIGHT + 4 * DAY + (again + 1) * HOUR)
        for key in keys:
            past.check(key, MIDNIGHT, MIDNIGHT + 2 * HOUR, 120)
            past.check(key, MIDNIGHT, MIDNIGHT + 2 * HOUR, 8)
    assert not past.tables.segments("devices_raw", MIDNIGHT, MIDNIGHT + DAY)
    past.start_anew()
    past.tend(past.now + 700)
    past.check(keys[0], MIDNIGHT, MIDNIGHT + 2 * HOUR, 120)
    past.tables.close()


def test_the_same_moment_twice_counts_once_and_time_may_run_backwards(past: Past) -> None:
    (key,) = device_keys(1)
    for at in (0, 10, 20, 20, 10, 30, 25, 40):
        past.take([(key, MIDNIGHT + at, {"power_watts": float(at), "utilization_gpu": 0.5}, 1)])
    past.now = MIDNIGHT + 60
    answer = past.ask(key, MIDNIGHT, MIDNIGHT + 60, 1, metrics=("power_watts",))
    assert answer.subjects[0].mean[0, 0] == pytest.approx(np.mean([0, 10, 20, 25, 30, 40]))


def test_samples_from_the_future_do_not_hold_the_journal(past: Past) -> None:
    (key,) = device_keys(1)
    past.take(random_rows((key,), MIDNIGHT + 40 * DAY, 100))
    past.take(random_rows((key,), MIDNIGHT, 100))
    past.tend(MIDNIGHT + 2 * HOUR)
    assert past.store.settled == past.file
    past.check(key, MIDNIGHT + 40 * DAY, MIDNIGHT + 40 * DAY + 100)


def test_memory_is_bounded_by_sealing_early(tmp_path: Path) -> None:
    past = Past(tmp_path, HistorySettings(memory_bytes=2**17))
    keys = device_keys(10)
    for minute in range(30):
        past.take(random_rows(keys, MIDNIGHT + minute * 60, 60, every=1.0))
        past.tend(MIDNIGHT + minute * 60 + 60)
        assert past.store.size_in_memory <= 2**18
    assert past.tables.segments("devices_raw")
    past.check(keys[7], MIDNIGHT, MIDNIGHT + 1800, 60)
    past.tables.close()


def test_hosts_are_kept_like_devices(past: Past) -> None:
    host = SeriesKey("node-0")
    past.take(
        [(host, MIDNIGHT + at, {"cpu_ratio": at / 10_000}, NOT_JUDGED) for at in range(0, 2 * HOUR, 10)]
    )
    past.tend(MIDNIGHT + 2 * HOUR + 100)
    answer = past.ask(host, MIDNIGHT, MIDNIGHT + 2 * HOUR, 120, metrics=("cpu_ratio", "load_1m"))
    assert answer.subjects[0].mean[0, 0] == pytest.approx(0.0025, abs=2e-4)
    assert np.isnan(answer.subjects[0].mean[:, 1]).all()


def test_steps_are_not_finer_than_samples_are_apart(past: Past) -> None:
    keys = device_keys(2)
    past.take(
        random_rows(keys[:1], MIDNIGHT, 4 * HOUR, every=300.0)
        + random_rows(keys[1:], MIDNIGHT, HOUR, every=2.0)
    )
    past.now = MIDNIGHT + 4 * HOUR
    assert past.check(keys[0], MIDNIGHT, MIDNIGHT + HOUR).step_seconds == 300
    assert past.check(keys[1], MIDNIGHT, MIDNIGHT + 600).step_seconds == 2
    past.tend(MIDNIGHT + 5 * HOUR)
    assert past.check(keys[0], MIDNIGHT, MIDNIGHT + 4 * HOUR, 300).step_seconds == 300


def test_jitter_at_the_edge_of_steps_makes_no_gaps(past: Past) -> None:
    (key,) = device_keys(1)
    random = np.random.default_rng(1)
    past.take(
        [
            (key, MIDNIGHT + at + float(random.uniform(-0.01, 0.01)), {"power_watts": 5.0}, 1)
            for at in range(10, 900, 10)
        ]
    )
    past.now = MIDNIGHT + 900
    answer = past.ask(key, MIDNIGHT + 20, MIDNIGHT + 880)
    assert not np.isnan(answer.subjects[0].mean[:, 1]).any()


def test_ten_years_are_answered_coarsely(past: Past) -> None:
    keys = device_keys(4)
    live(past, keys, MIDNIGHT, 2 * HOUR)
    many = tuple(SeriesKey(f"n{n // 8}", f"g{n}") for n in range(8000))
    answer = past.store.read(
        SeriesQuery(subjects=(*keys, *many), metrics=METRICS, start=MIDNIGHT - 10 * 365 * DAY, end=past.now)
    )
    assert len(answer.times) * len(answer.subjects) * 9 <= 4_500_000
    assert not np.isnan(answer.subjects[0].mean[-1]).any()


def test_a_bad_file_costs_only_its_own_part(past: Past) -> None:
    (key,) = device_keys(1)
    live(past, (key,), MIDNIGHT, 3 * HOUR)
    segment = past.tables.segments("devices_raw")[1]
    path = past.folder / segment.file
    content = bytearray(path.read_bytes())
    content[100:-200] = bytes(len(content) - 300)
    path.write_bytes(content)
    past.start_anew()
    answer = past.ask(key, MIDNIGHT, MIDNIGHT + 3 * HOUR, 2000)
    assert [part.start for part in answer.missing] == [segment.start]
    known = ~np.isnan(answer.subjects[0].mean[:, 0])
    assert known[: HOUR // 10].all()
    assert not known[HOUR // 10 : 2 * HOUR // 10].any()
    assert known[2 * HOUR // 10 :].all()
    past.check(key, MIDNIGHT, MIDNIGHT + 3 * HOUR, 180)  # rollups still have it
    assert past.store.health().unreadable
    past.take(random_rows(device_keys(2)[1:], MIDNIGHT + HOUR + 300, 600))  # late, for the hour that was hurt
    past.tend(past.now + 700)
    past.tend(past.now + HOUR)
    past.check(key, MIDNIGHT, MIDNIGHT + 3 * HOUR, 180)
    past.check(device_keys(2)[1], MIDNIGHT, MIDNIGHT + 3 * HOUR, 180)


def test_retention_forgets_the_finest_first(tmp_path: Path) -> None:
    past = Past(tmp_path, HistorySettings(raw_days=1, minute_days=3, quarter_hour_days=10))
    (key,) = device_keys(1)
    live(past, (key,), MIDNIGHT, 2 * HOUR)
    for days, tables in ((2.5, {"devices_minute", "devices_quarter"}), (6, {"devices_quarter"}), (12, set())):
        past.tend(MIDNIGHT + days * DAY)
        past.tend(MIDNIGHT + days * DAY + 1)
        assert {shape.name for shape in SHAPES if past.tables.segments(shape.name)} == tables
        if tables:
            answer = past.check(key, MIDNIGHT, MIDNIGHT + 2 * HOUR)
            assert answer.resolution == ("minute" if "devices_minute" in tables else "quarter_hour")
    past.tables.close()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("live"), st.integers(100, 2500)),
            st.tuples(st.just("late"), st.integers(1, 20_000)),
            st.tuples(st.just("tend"), st.integers(0, 4000)),
            st.tuples(st.just("start anew"), st.just(0)),
        ),
        min_size=3,
        max_size=14,
    ),
    points=st.sampled_from([5, 60, 400, 2000]),
)
def test_whatever_comes_in_whatever_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], points: int
) -> None:
    past = Past(tmp_path_factory.mktemp("past"))
    keys = device_keys(2)
    past.now = MIDNIGHT + 6 * HOUR
    for number, (what, amount) in enumerate(steps):
        if what == "live":
            past.take(random_rows(keys, past.now, amount, every=20.0, seed=number))
            past.now += amount
        elif what == "late":
            past.take(random_rows(keys[:1], past.now - amount, 600, every=20.0, seed=number)[::-1])
        elif what == "tend":
            past.tend(past.now + amount)
        else:
            past.start_anew()
    for key in keys:
        past.check(key, MIDNIGHT, past.now, points)
    past.tables.close()


def test_without_room_in_memory_samples_wait_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = Past(tmp_path, HistorySettings(memory_bytes=2**12))
    past.store._journal = past
    keys = device_keys(4)

    def refuse(*args: object, **kwargs: object) -> None:
        raise DiskFull("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(past.tables, "write", refuse)
        for minute in range(64):
            past.take(random_rows(keys, MIDNIGHT + minute * 60, 60))
            with contextlib.suppress(DiskFull):
                past.tend(MIDNIGHT + minute * 60 + 60)
        assert past.store.size_in_memory < 2**16
        assert past.store.health().state == "failing"
    assert past.ask(keys[0], MIDNIGHT, past.now).missing
    for _ in range(200):
        past.tend()
        if past.store.health().state == "ok":
            break
    past.check(keys[0], MIDNIGHT, MIDNIGHT + 3840, 60)
    past.check(keys[3], MIDNIGHT, MIDNIGHT + 3840, 400)
    past.tables.close()


def test_a_bound_on_bytes_forgets_old_days_first(tmp_path: Path) -> None:
    past = Past(tmp_path, HistorySettings(max_bytes=1))
    (key,) = device_keys(1)
    live(past, (key,), MIDNIGHT, HOUR)
    live(past, (key,), MIDNIGHT + 3 * DAY, HOUR)
    assert not past.tables.segments("devices_raw", MIDNIGHT, MIDNIGHT + DAY)
    assert past.tables.segments("devices_raw", MIDNIGHT + 3 * DAY)
    past.check(key, MIDNIGHT + 3 * DAY, MIDNIGHT + 3 * DAY + HOUR)
    past.tables.close()


def test_a_clock_that_was_ahead_does_not_keep_hours_from_being_sealed(past: Past) -> None:
    (key,) = device_keys(1)
    past.tend(MIDNIGHT + 30 * DAY)
    live(past, (key,), MIDNIGHT, 3 * HOUR, 60.0)
    assert past.store.settled == past.file
    assert past.store.size_in_memory == 0
    past.check(key, MIDNIGHT, MIDNIGHT + 3 * HOUR)


def test_a_file_skipped_while_another_is_caught_up_with_is_not_forgotten(past: Past) -> None:
    store = past.store
    store._journal = past
    store._is_full = True
    taking = threading.Thread(target=store.take, args=(batch_of([]), 9))

    class Skipped(set[int]):
        def __sub__(self, other: AbstractSet[object]) -> set[int]:
            rest = set(self) - other
            store._is_full = True
            taking.start()
            taking.join(0.2)
            return rest

    store._skipped = Skipped({1})
    store._catch_up(2)
    taking.join()
    assert store._skipped == {9}


def test_rollups_made_again_while_they_are_asked_for_count_once(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = device_keys(1)
    live(past, keys, MIDNIGHT, HOUR, 60.0)
    tables = past.tables

    def samples() -> int:
        grid = Grid(1, int(MIDNIGHT * 1000), HOUR * 1000, 1, ("utilization_gpu",), len(DEVICES.states))
        add_rollups(grid, tables, DEVICES, DEVICES.minute, keys, grid.start, grid.start + HOUR * 1000)
        return int(grid.samples.sum())

    expected = samples()
    asked = tables.query
    again = iter(["once"])

    def ask(*args: object, **named: object) -> Answer:
        if next(again, None):  # between the look at the files and the question
            (old,) = tables.segments("devices_minute")
            part = Part("devices_minute", segments=(old,))
            made = tables.write_query(
                "devices_minute", "SELECT * FROM {part}", {"part": part}, partition=old.partition
            )
            tables.commit(add=[made])
        return asked(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "query", ask)
    assert samples() == expected


@pytest.mark.parametrize("is_disk_full", [False, True])
def test_made_up_devices_are_forgotten_and_nothing_that_was_told(
    past: Past, monkeypatch: pytest.MonkeyPatch, is_disk_full: bool
) -> None:
    most = 64
    monkeypatch.setattr("gpuherd.history.embedded.store.MOST_SUBJECTS", most)
    honest = device_keys(3)
    memory = past.store.memories[DEVICES.name]
    in_memory, frames = [], 36
    for frame in range(frames):
        start = MIDNIGHT + 120 * frame
        made_up = [SeriesKey("evil", f"GPU-{frame}-{number}", f"made up {frame}") for number in range(40)]
        past.take(random_rows(honest, start, 120, every=20) + random_rows(made_up, start, 10))
        if frame % 7 == 0:
            past.check(honest[1], MIDNIGHT, start + 120)
            past.check(made_up[-1], start, start + 120)
        if is_disk_full and 10 <= frame < 20:
            with monkeypatch.context() as broken:
                broken.setattr(past.tables, "write", _refuse)
                with contextlib.suppress(DiskFull):
                    past.tend(start + 120)
        else:
            past.tend(start + 120)
            in_memory.append(len(memory.subjects))
    assert max(in_memory) <= most + 43
    assert len(memory.subjects.keys) <= most + (11 if is_disk_full else 2) * 43
    for points in (60, 500):
        for key in (*honest, SeriesKey("evil", "GPU-0-0", "made up 0"), SeriesKey("evil", "GPU-27-39", "")):
            past.check(key, MIDNIGHT, MIDNIGHT + 120 * frames, points)
    past.start_anew()
    past.tend(MIDNIGHT + 3 * HOUR)
    past.check(honest[0], MIDNIGHT, MIDNIGHT + 120 * frames, 60)


def _refuse(*_: object, **__: object) -> None:
    raise DiskFull("history: the disk is full")
