"""Questions about use against a plain count, over files, days and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gpuherd.history.batch import USE_MEASURES, Floats
from gpuherd.history.settings import HistorySettings
from gpuherd.history.usage.asking import BookedSpan, UsageReader, UseFilter, UseSums, moving_mean
from gpuherd.history.usage.booked import booked_use
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.errors import Failed
from gpuherd.model.history import UsageKey
from support.reckoner import Sums, Who
from support.used_herd import GIB, START, device_row, frame, made_up_herd, reckon, scene
from support.used_hub import UsedHub

DAY = 86_400.0
GPU = DeviceFacts(uuid="g0", index=0, name="X1", memory_total_bytes=8 * 2**30)
BY: tuple[UsageKey, ...] = ("user", "group", "node", "device", "job")
GROUPS = {"ada": ("red", "blue"), "ben": ("blue",), "eve": ()}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[UsedHub]:
    made = UsedHub(tmp_path / "history", HistorySettings(min_free_bytes=0))
    yield made
    made.close()


def groups_of(user: str | None) -> Sequence[str | None]:
    return (None,) if user is None else GROUPS[user]


def fill(hub: UsedHub, seed: int) -> Sums:
    """Let a herd be counted, part of it in files, part by days, part in memory."""
    frames = made_up_herd(seed, samples=50)
    third = len(frames) // 3
    hub.take(frames[:third])
    hub.now = START + 3 * DAY
    for _ in range(4):
        hub.tend()
    hub.take(frames[third : 2 * third])
    hub.now += 3600
    hub.tend()
    hub.take(frames[2 * third :])
    return reckon(frames).sums


def whole(sums: Sums) -> tuple[float, float]:
    return float(min(slot for _, slot in sums)), float(max(slot for _, slot in sums) + 900)


def added(parts: Sequence[Sequence[float]]) -> UseSums:
    total = UseSums()
    for part in parts:
        total += UseSums.of(part)
    return total


def assert_sums(found: UseSums, expected: UseSums) -> None:
    for name in USE_MEASURES:
        wanted = getattr(expected, name)
        is_same = wanted if wanted is None else pytest.approx(wanted, rel=1e-9, abs=1e-3)
        assert getattr(found, name) == is_same, name


def keyed(by: str, who: Who) -> list[object]:
    node_id, uuid, user, _, job = who
    keys: dict[str, list[object]] = {
        "user": [user],
        "group": list(groups_of(user)),
        "node": [node_id],
        "device": [(node_id, uuid)],
        "job": [job],
    }
    return keys[by]


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_those_of_a_plain_count(hub: UsedHub, seed: int) -> None:
    sums = fill(hub, seed)
    start, end = whole(sums)
    draw = Random(seed)  # noqa: S311
    ranges = [(start, end), (math.floor(start / DAY) * DAY, math.ceil(end / DAY) * DAY)]
    ranges.append((start + draw.randrange(4) * 900, start + (5 + draw.randrange(40)) * 900))
    for first, last in ranges:
        inside = {key: measures for key, measures in sums.items() if first <= key[1] < last}
        for by in BY:
            table = hub.reader.figures(by, first, last, keys_of=groups_of if by == "group" else None)
            expected: dict[object, list[list[float]]] = {}
            for (who, _), measures in inside.items():
                for key in keyed(by, who):
                    expected.setdefault(key, []).append(measures)
            assert {row.key for row in table.rows} == expected.keys()
            for row in table.rows:
                assert_sums(row.sums, added(expected[row.key]))
                users = {who for who, _ in inside if row.key in keyed(by, who)}
                assert (row.users, row.devices) == (len({w[2] for w in users}), len({w[:2] for w in users}))
                assert sum(one.gpu_seconds for one in row.by_type.values()) == pytest.approx(
                    row.sums.gpu_seconds
                )
            assert_sums(table.totals.sums, added(list(inside.values())))
            assert table.totals.devices == len({who[:2] for who, _ in inside})
            assert (table.start, table.end) == (first, last)
            short = hub.reader.figures(by, first, last, keys_of=groups_of if by == "group" else None, limit=1)
            assert short.omitted_rows == max(0, len(table.rows) - 1)
            assert [row.sums.gpu_seconds for row in short.rows] == pytest.approx(
                [row.sums.gpu_seconds for row in table.rows[:1]]
            )
            assert_sums(short.totals.sums, table.totals.sums)
        assert [row.sums.gpu_seconds for row in table.rows] == sorted(
            (row.sums.gpu_seconds for row in table.rows), reverse=True
        )


def test_steps_are_those_of_a_plain_count(hub: UsedHub) -> None:
    sums = fill(hub, 7)
    start, end = whole(sums)
    edges = np.array([start, start + 900, start + 1350, start + 7200, end + 450])
    found = hub.reader.over_time("user", edges)
    for place, user in enumerate(found.keys):
        for step in range(len(edges) - 1):
            held = 0.0
            for (who, slot), measures in sums.items():
                inside = min(slot + 900, edges[step + 1]) - max(slot, edges[step])
                if who[2] == user and inside > 0:
                    held += measures[1] * inside / 900
            assert found.measures[place, step, 1] == pytest.approx(held, abs=1e-6)
    assert found.totals[:, 1].sum() == pytest.approx(sum(measures[1] for measures in sums.values()))
    by_group = hub.reader.over_time("group", edges, keys_of=groups_of)
    blue = found.measures[[place for place, user in enumerate(found.keys) if user in ("ada", "ben")], :, 1]
    assert by_group.measures[by_group.keys.index("blue"), :, 1] == pytest.approx(blue.sum(axis=0))
    assert by_group.totals == pytest.approx(found.totals, nan_ok=True)


def test_of_users_without_number_the_largest_are_told_and_all_are_counted(
    hub: UsedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = START // 900 * 900
    for number, user in enumerate(["ada", "ben", "eve", "fay"]):
        some_use(hub, user, base, base + 600 * (number + 1), node=user)
    whole_table = hub.reader.figures("user", base, base + DAY)
    monkeypatch.setattr("gpuherd.history.usage.asking.MAX_USERS", 2)
    asked: list[str | None] = []

    def keys_of(user: str | None) -> Sequence[str | None]:
        asked.append(user)
        return (user, "everyone")

    table = hub.reader.figures("user", base, base + DAY, keys_of=keys_of)
    assert asked == ["fay", "eve"]
    assert {row.key: row.sums.held_seconds for row in table.rows} == {
        "everyone": 4200.0,
        "fay": 2400.0,
        "eve": 1800.0,
    }
    assert table.omitted_rows == 2
    assert table.totals == whole_table.totals
    steps = hub.reader.over_time("user", [base, base + 900, base + 3600], keys_of=keys_of)
    assert (len(asked), {*steps.keys}) == (4, {"everyone", "fay", "eve"})
    assert steps.totals[:, 0].sum() == pytest.approx(6000.0)


def test_steps_of_a_few_do_not_bring_everyones(hub: UsedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    base = START // 900 * 900
    for number in range(12):
        some_use(hub, f"user{number}", base, base + 1800, node=f"n{number}")
    ask, rows = hub.reader._view.ask, list[int]()

    def counted(*args: Any, **kwargs: Any) -> Any:
        answers, span = ask(*args, **kwargs)
        rows.extend(len(answer.columns["step"]) for answer in answers if "step" in answer.columns)
        return answers, span

    monkeypatch.setattr(hub.reader._view, "ask", counted)
    edges = [base, base + 900, base + 1800]
    steps = hub.reader.over_time("user", edges, keys_of=lambda user: ("one",) if user == "user3" else ())
    assert (steps.keys, sum(rows)) == (("one",), 4)
    assert steps.measures[0, :, 0].sum() == pytest.approx(1800.0)
    assert steps.totals[:, 0].sum() == pytest.approx(12 * 1800.0)
    nobody = hub.reader.over_time("user", edges, keys_of=lambda _: ())
    assert (nobody.keys, nobody.measures.shape) == ((), (0, 2, len(USE_MEASURES)))


def test_an_export_has_everything_or_fails(hub: UsedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        some_use(hub, "ada", START + 3600 * number, START + 3600 * number + 600)
    assert len(hub.reader.export(["ada"])) == 3
    monkeypatch.setattr("gpuherd.history.usage.asking.MAX_STAYS", 2)
    with pytest.raises(Failed, match="more than 2 sessions"):
        hub.reader.export(["ada"])
    assert not hub.reader.stays(START, START + DAY, limit=10).is_complete


def test_filters_leave_out_what_is_not_asked_about(hub: UsedHub) -> None:
    sums = fill(hub, 3)
    start, end = whole(sums)
    chosen: list[tuple[UseFilter, Callable[[Who], bool]]] = [
        (UseFilter(users=frozenset({"ada", None})), lambda who: who[2] in ("ada", None)),
        (UseFilter(nodes=frozenset({"n0"})), lambda who: who[0] == "n0"),
        (
            UseFilter(jobs=frozenset({None}), users=frozenset({"ben"})),
            lambda who: who[4] is None and who[2] == "ben",
        ),
        (UseFilter(devices=frozenset({("n0", "n0-0")})), lambda who: who[:2] == ("n0", "n0-0")),
        (UseFilter(containers=frozenset({"c1"})), lambda who: who[3] == "c1"),
        (UseFilter(users=frozenset()), lambda _: False),
        (UseFilter(users=frozenset({"' OR 1=1 --"})), lambda _: False),
    ]
    for where, is_meant in chosen:
        found = hub.reader.figures("user", start, end, where=where).totals
        assert_sums(found.sums, added([m for (who, _), m in sums.items() if is_meant(who)]))


def test_stays_come_latest_first_and_tell_if_there_are_more(hub: UsedHub) -> None:
    sums = fill(hub, 4)
    start, end = whole(sums)
    every = hub.reader.stays(start, end, limit=10_000)
    assert every.is_complete
    assert [stay.last for stay in every.stays] == sorted((stay.last for stay in every.stays), reverse=True)
    assert sum(stay.sums.held_seconds for stay in every.stays) == pytest.approx(
        sum(measures[0] for measures in sums.values())
    )
    some = hub.reader.stays(start, end, limit=2)
    assert (len(some.stays), some.is_complete) == (2, False)
    assert some.stays == every.stays[:2]
    (one,) = hub.reader.stays(start, end, ids={every.stays[-1].id}).stays
    assert one == every.stays[-1]


def some_use(hub: UsedHub, user: str | None, start: float, end: float, node: str = "n") -> None:
    here = scene(node, [GPU], (0, user, None, None, "compute"))
    row = [device_row(0.5, GIB, 100.0)]
    times = np.arange(start, end + 1, 60.0).tolist()
    hub.take([frame(here, time, row, [GIB], 60.0) for time in times])


def test_who_was_on_a_device_when(hub: UsedHub) -> None:
    base = START // 3600 * 3600
    some_use(hub, "ada", base, base + 3000)
    some_use(hub, "ben", base + 7200, base + 7800)
    spans = hub.reader.spans([("n", "g0")], base, base + DAY)
    assert [(span.user, span.start, span.end) for span in spans] == [
        ("ada", base, base + 3000),
        ("ben", base + 7200, base + 7800),
    ]
    assert spans[0].gpu_seconds == pytest.approx(3000)
    assert hub.reader.spans([("n", "other")], base, base + DAY) == ()
    assert [span.user for span in hub.reader.spans([("n", "g0")], base + 7300, base + 7400)] == ["ben"]


def test_bookings_are_compared_with_use(hub: UsedHub) -> None:
    base = START // 3600 * 3600
    some_use(hub, "ada", base, base + 1800)
    some_use(hub, "ben", base + 3600, base + 4500)
    booked = BookedSpan(7, frozenset({"ada"}), "n", "g0", base + 900, base + 900 + 4500)
    (use,) = hub.reader.booked([booked])
    assert (use.booked_seconds, use.used_seconds, use.others_seconds) == (4500, 900, 900)
    assert use.unused_seconds == pytest.approx(4500 - 1800)
    (other,) = hub.reader.booked([BookedSpan(8, frozenset({"eve"}), "n", "none", base, base + 60)])
    assert other.unused_seconds == 60


def test_of_several_who_are_on_a_booked_device_together_the_time_is_that_of_one() -> None:
    def of(users: str, *rows: tuple[str, float, float]) -> tuple[float, float, float]:
        span = BookedSpan(1, frozenset(users.split()), "n", "g0", 0.0, 3600.0)
        told = booked_use(span, [(user, 0, 3600, first, last, last - first) for user, first, last in rows])
        return told.used_seconds, told.others_seconds, told.unused_seconds

    assert of("ann bob", ("ann", 0, 1800), ("bob", 0, 1800)) == (1800, 0, 1800)
    assert of("ann", ("ann", 0, 1800), ("eve", 0, 1800)) == (1800, 0, 1800)
    assert of("ann", ("eve", 600, 2400), ("ann", 0, 1200), ("eve", 3000, 3300)) == (1200, 1500, 900)
    assert of("ann bob", ("ann", 0, 600), ("bob", 300, 400), ("ann", 3000, 9000)) == (1200, 0, 2400)


def test_a_booking_is_used_by_its_holder_however_the_name_is_written() -> None:
    """Names of a comments.json are compared as the older page does: without capitals and plus signs."""

    def of(holder: str, user: str | None) -> tuple[float, float]:
        span = BookedSpan(1, frozenset({holder}), "n", "g0", 0.0, 3600.0)
        told = booked_use(span, [(user, 0, 3600, 0, 3600, 3600)])
        return told.used_seconds, told.others_seconds

    assert of("Carol+", "carol") == of("carol", "CAROL") == (3600, 0)
    assert of("Carol", "caro") == of("carol", None) == (0, 3600)


def test_who_was_away_in_between_was_there_for_a_part_of_a_slot() -> None:
    span = BookedSpan(1, frozenset({"ann"}), "n", "g0", 0.0, 450.0)
    told = booked_use(span, [("ann", 0, 900, 0, 900, 300), ("eve", 0, 900, 0, 225, 225)])
    assert (told.used_seconds, told.others_seconds, told.unused_seconds) == pytest.approx((150, 150, 150))


def test_averages_fade(hub: UsedHub) -> None:
    base = START // 3600 * 3600
    some_use(hub, "eve", base - 10 * DAY, base - 10 * DAY + 60, node="old")
    some_use(hub, "ada", base, base + 14_400)
    now = base + 14_400
    means = {row.key: row for row in hub.reader.averages(now)}
    assert means["ada"].now_gpus == pytest.approx(1.0)
    assert means["ada"].now_busy_gpus == pytest.approx(1.0)
    assert means["ada"].mean_2h == pytest.approx(1 - math.exp(-2), abs=1e-6)
    assert means["ada"].mean_24h == pytest.approx(
        (1 - math.exp(-1 / 6)) / (1 - math.exp(-10 - 1 / 6)), rel=1e-3
    )
    assert means["eve"].now_gpus == 0
    later = {row.key: row for row in hub.reader.averages(now + 7200)}
    assert later["ada"].now_gpus == 0
    assert later["ada"].mean_2h == pytest.approx(means["ada"].mean_2h * math.exp(-1), rel=1e-3)
    assert hub.reader.total_averages(now).mean_2h == pytest.approx(sum(row.mean_2h for row in means.values()))


def test_a_stay_is_over_when_its_node_is_not_heard_of_any_more(hub: UsedHub) -> None:
    base = START // 3600 * 3600
    some_use(hub, "ada", base, base + 600)
    for silent_seconds, is_open in ((250.0, True), (400.0, False), (30 * DAY, False)):
        hub.now = base + 600 + silent_seconds
        (stay,) = hub.reader.stays(base, base + DAY).stays
        assert (stay.last, stay.is_open) == (base + 600, is_open), silent_seconds


def test_a_node_that_is_sampled_seldom_says_longer_who_is_there(hub: UsedHub) -> None:
    base = START // 3600 * 3600
    here = scene("n", [GPU], (0, "ada", None, None, "compute"))
    for at in (0, 1200, 2400, 90_000, 91_200):  # far apart once: that is no interval
        hub.take([frame(here, base + at, [device_row(0.5, GIB, 100.0)], [GIB], 1200.0)])
    for silent_seconds, is_there in ((1300.0, True), (3500.0, True), (3700.0, False)):
        hub.now = base + 91_200 + silent_seconds
        assert hub.reader.stays(base, base + 2 * DAY).stays[0].is_open == is_there, silent_seconds
        assert hub.reader.total_averages(hub.now).now_gpus == pytest.approx(float(is_there)), silent_seconds


class WatchedHerd:
    """Was watched from a time on, but for a while in between."""

    def __init__(self, start: float, away: tuple[float, float] = (0.0, 0.0)) -> None:
        self._start = start
        self._away = away

    def begins_at(self) -> float:
        return self._start

    def watched(self, edges: Sequence[float]) -> Floats:
        return np.array([900.0 * (not self._away[0] <= edge < self._away[1]) for edge in edges[:-1]])


def test_averages_count_the_time_in_which_nobody_was_there_to_be_seen(hub: UsedHub) -> None:
    base = START // 3600 * 3600
    some_use(hub, "ada", base, base + 900)
    now = base + 900
    (alone,) = hub.reader.averages(now)
    assert alone.mean_1w == pytest.approx(1.0)
    (idle_before,) = UsageReader(hub.book, herd=WatchedHerd(base - 7 * DAY)).averages(now)
    assert idle_before.mean_2h == pytest.approx(1 - math.exp(-1 / 8), rel=1e-3)
    assert idle_before.mean_24h == pytest.approx(0.0104, rel=0.01)
    assert idle_before.mean_1w == pytest.approx(0.00149 / (1 - math.exp(-1)), rel=0.01)
    # The hub was off for all but a quarter of an hour before: of the rest nothing is known.
    off = WatchedHerd(base - 7 * DAY, away=(base - 7 * DAY, base - 900))
    (mostly_off,) = UsageReader(hub.book, herd=off).averages(now)
    assert mostly_off.mean_1w == pytest.approx(0.5, rel=0.01)
    table = UsageReader(hub.book, herd=off).figures("user", base - DAY, now)
    assert table.begins_at == base - 7 * DAY


def test_a_moving_mean_takes_only_what_is_known() -> None:
    assert moving_mean([0, 1, 2], [math.nan, 4.0], 2.0, 10.0) == pytest.approx(4.0)
    assert moving_mean([0, 1], [math.nan], 2.0, 10.0) is None
    assert moving_mean([-1e9, 0.0], [1.0], math.log(2), 1.0) == pytest.approx(1.0)
    grown = moving_mean([-1e9, 0.0, math.log(2)], [0.0, 1.0], math.log(2), 1.0)
    assert grown == pytest.approx(0.5)


def test_nothing_is_an_answer(hub: UsedHub) -> None:
    table = hub.reader.figures("user", START, START + DAY)
    assert (table.rows, table.begins_at, table.totals.sessions) == ((), None, 0)
    assert hub.reader.over_time("node", [START, START + DAY]).keys == ()
    assert hub.reader.stays(START, START + DAY).stays == ()
    assert hub.reader.averages(START) == ()
    assert hub.reader.booked([]) == ()
    assert hub.reader.export(["ada"]) == ()
