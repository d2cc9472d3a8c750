"""Whose the time was: the fast way against the plain one, however samples come and are cut."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.history.batch import USE_MEASURES, Batch, SessionKey, Uses
from gpuherd.history.usage.accountant import Accountant
from gpuherd.history.usage.notes import read_notes
from gpuherd.history.usage.register import Register
from gpuherd.history.usage.standing import Standing
from gpuherd.model.devices import DeviceFacts
from support.reckoner import Reckoner, Sums, who_of
from support.soak import SOAK
from support.used_herd import (
    GIB,
    START,
    Frame,
    batch_of,
    device_row,
    device_rows,
    frame,
    made_up_herd,
    reckon,
    scene,
)

GPU = DeviceFacts(uuid="g0", index=0, name="X1", memory_total_bytes=8 * 2**30)
SEEDS = st.integers(0, 2**32)


class EmptyLedger:
    """Nothing was counted before."""

    def __init__(self) -> None:
        self.register = Register()
        self.taken = 0

    def standing(self) -> Standing:
        return Standing()

    def apply_erasures(self) -> bool:
        return False

    def release(self, in_use: Collection[int]) -> None:
        keys = enumerate(self.register.keys)
        self.register.retire([n for n, key in keys if key is not None and n not in set(in_use)])


def counted(frames: Sequence[Frame], cuts: Iterable[int] = ()) -> list[Batch]:
    accountant = Accountant(EmptyLedger())
    bounds = sorted({0, len(frames), *cuts})
    batches = []
    for start, end in pairwise(bounds):
        flush = frames[start:end]
        batches.append(batch_of(flush, accountant.take([each.sample for each in flush], device_rows(flush))))
    return batches


def sums_of(parts: Iterable[Uses]) -> Sums:
    sums: Sums = {}
    for uses in parts:
        for row in range(len(uses)):
            who = who_of(uses.keys[uses.session[row]])
            Reckoner._add(_Sums(sums), who, int(uses.slot[row]), uses.measures[row].tolist())  # type: ignore[arg-type]
    return sums


class _Sums:
    def __init__(self, sums: Sums) -> None:
        self.sums = sums


def assert_same(found: Sums, expected: Sums) -> None:
    assert found.keys() == expected.keys()
    for key, measures in expected.items():
        assert found[key] == pytest.approx(measures, rel=1e-9, abs=1e-6, nan_ok=True), key


def rows_of(uses: Uses) -> list[tuple[str | None, dict[str, float]]]:
    return [
        (uses.keys[stay].user, dict(zip(USE_MEASURES, measures, strict=True)))
        for stay, measures in zip(uses.session.tolist(), uses.measures.tolist(), strict=True)
    ]


@pytest.mark.soak
@given(SEEDS)
@settings(max_examples=50 * SOAK, deadline=None)
def test_it_agrees_with_a_plain_count(seed: int) -> None:
    frames = made_up_herd(seed)
    assert_same(sums_of(batch.uses for batch in counted(frames)), reckon(frames).sums)


@pytest.mark.soak
@given(SEEDS)
@settings(max_examples=20 * SOAK, deadline=None)
def test_how_samples_are_cut_into_flushes_makes_no_difference(seed: int) -> None:
    frames = made_up_herd(seed)
    draw = Random(seed)  # noqa: S311
    cuts = [draw.randrange(len(frames)) for _ in range(draw.randint(1, 20))]
    whole, cut = counted(frames), counted(frames, cuts)
    assert_same(sums_of(b.uses for b in cut), sums_of(b.uses for b in whole))
    assert {key for b in cut for key in b.uses.keys} == {key for b in whole for key in b.uses.keys}


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_stays_end_when_nobody_was_seen_for_long(seed: int) -> None:
    frames = made_up_herd(seed, with_late=False)
    opened = {(*who, start) for who, stays in reckon(frames).opened.items() for start, _ in stays}
    keys = {key for batch in counted(frames, range(0, len(frames), 3)) for key in batch.uses.keys}
    assert {(*who_of(key), key.opened_at) for key in keys} == opened


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_the_time_of_a_device_is_handed_out_once(seed: int) -> None:
    """Whoever shares a device, their shares are the time that anyone was on it."""
    frames = made_up_herd(seed)
    weight = {
        device.uuid: 1.0
        for each in frames
        for device in each.sample.scene.devices
        if device.parent_uuid is None
    }
    total: dict[tuple[str, int], float] = {}
    for (who, slot), measures in sums_of(b.uses for b in counted(frames)).items():
        total[who[1], slot] = total.get((who[1], slot), 0.0) + measures[USE_MEASURES.index("gpu_seconds")]
    assert all(seconds <= 900 + 1e-6 for (uuid, _), seconds in total.items() if uuid in weight)


def test_who_came_counts_from_the_first_sample_that_shows_it() -> None:
    alone, both = (
        scene("n", [GPU], (0, "ada", None, None, "compute")),
        scene("n", [GPU], (0, "ada", None, None, "compute"), (0, "ben", None, None, "compute")),
    )
    row = [device_row(0.5, GIB, 100.0)]
    frames = [
        frame(alone, START, row, [GIB]),
        frame(both, START + 2, row, [GIB, GIB]),
        frame(both, START + 4, row, [GIB, 3 * GIB]),
    ]
    first, second, third = (batch.uses for batch in counted(frames, range(3)))
    assert rows_of(first)[0][1]["held_seconds"] == 0
    assert [(user, row["gpu_seconds"]) for user, row in rows_of(second)] == [("ada", 2.0), ("ben", 0.0)]
    assert [(user, row["gpu_seconds"]) for user, row in rows_of(third)] == [("ada", 0.5), ("ben", 1.5)]
    assert [row["joules"] for _, row in rows_of(third)] == [50.0, 150.0]


def test_a_long_silence_is_nobodys_and_the_stay_goes_on() -> None:
    here = scene("n", [GPU], (0, "ada", None, None, "compute"))
    row = [device_row(0.5, GIB, 100.0)]
    frames = [frame(here, START + seconds, row, [GIB]) for seconds in (0, 2, 20, 22, 400)]
    batches = counted(frames)
    assert sum(row["held_seconds"] for _, row in rows_of(batches[0].uses)) == 4.0
    assert {key.opened_at for key in batches[0].uses.keys} == {START, START + 400}


def test_memory_without_a_process_is_an_unknown_users() -> None:
    empty = scene("n", [GPU])
    frames = [frame(empty, START + 2 * n, [device_row(0.0, GIB * n)], []) for n in range(4)]
    (batch,) = counted(frames)
    ((key,),) = (batch.uses.keys,)
    assert (key.user, key.opened_at) == (None, START + 2)
    assert rows_of(batch.uses)[0][1] == {
        "held_seconds": 4.0,
        "gpu_seconds": 4.0,
        "busy_seconds": 0.0,
        "unknown_seconds": 0.0,
        "work_seconds": 0.0,
        "memory_byte_seconds": 2 * 2 * GIB + 2 * 3 * GIB,
        "joules": pytest.approx(math.nan, nan_ok=True),
    }


def test_energy_is_what_the_counter_says_unless_it_was_set() -> None:
    here = scene("n", [GPU], (0, "ada", None, None, "compute"))
    told = [1000.0, 1500.0, 200.0, 1e9, 1e9 + 100, math.nan]
    frames = [
        frame(here, START + 2 * n, [device_row(1.0, GIB, 50.0, energy)], [GIB])
        for n, energy in enumerate(told)
    ]
    batches = counted(frames, range(len(frames)))
    joules = [rows_of(batch.uses)[0][1]["joules"] for batch in batches[1:]]
    assert joules == [500.0, 100.0, 100.0, 100.0, 100.0]


def test_a_slice_weighs_as_its_share_of_the_gpu() -> None:
    whole = DeviceFacts(uuid="g", index=0, name="X", memory_total_bytes=8 * 2**30, is_partitioned=True)
    part = DeviceFacts(
        uuid="s", index=0, name="X", kind="slice", parent_uuid="g", memory_total_bytes=2 * 2**30
    )
    here = scene("n", [whole, part], (1, "ada", None, None, "compute"), (0, "ada", None, None, "compute"))
    rows = [device_row(math.nan, 0.0, 400.0), device_row()]
    (batch,) = counted([frame(here, START + 2 * n, rows, [GIB, GIB]) for n in range(2)])
    ((user, row),) = rows_of(batch.uses)
    assert user == "ada"
    assert (row["held_seconds"], row["gpu_seconds"], row["unknown_seconds"], row["joules"]) == (
        2,
        0.5,
        0.5,
        200,
    )


def test_the_command_of_the_largest_process_is_told_once() -> None:
    here = scene("n", [GPU], (0, "ada", None, None, "compute"), (0, "ada", None, None, "compute"))
    row = [device_row(0.5, GIB)]
    batches = counted([frame(here, START + n, row, [GIB, 2 * GIB]) for n in range(3)], range(3))
    assert [batch.uses.commands for batch in batches] == [("run 2",), (None,), (None,)]


def test_a_node_that_makes_up_users_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.history.usage.accountant.MAX_OPENED", 40)
    ledger = EmptyLedger()
    accountant = Accountant(ledger)
    row = [device_row(0.5, GIB)]
    for number in range(120):
        here = scene("n", [GPU], (0, f"u{number}", None, None, "compute"))
        each = frame(here, START + 0.1 * number, row, [GIB])
        uses = accountant.take([each.sample], device_rows([each])).uses
    assert len(ledger.register) == 41
    assert [key.user for key in uses.keys] == [None]


def test_a_node_that_tells_of_many_slots_at_once_opens_no_more_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.history.usage.accountant.MAX_OPENED", 40)
    ledger, now = EmptyLedger(), [0.0]
    accountant = Accountant(ledger, monotonic=lambda: now[0])

    def show(number: int) -> None:
        here = scene("n", [GPU], *[(0, f"u{number}-{each}", None, None, "compute") for each in range(30)])
        one = frame(here, START + 900 * number, [device_row(0.5, GIB)], [GIB] * 30)
        accountant.take([one.sample], device_rows([one]))

    for number in range(10):
        show(number)
    named = [key for key in ledger.register.keys if key is not None and key.user is not None]
    assert len(named) == 40
    now[0] = 900.0
    show(10)
    named = [key for key in ledger.register.keys if key is not None and key.user is not None]
    assert len(named) == 70


def test_who_was_beside_a_hole_is_forgotten_after_some_days_and_the_hole_is_not() -> None:
    row = [device_row(0.5, GIB)]
    for days, is_known in ((2, True), (4, False)):
        ledger = EmptyLedger()
        accountant = Accountant(ledger)

        def take(user: str, at: float, ledger: EmptyLedger = ledger, its: Accountant = accountant) -> bytes:
            one = frame(scene("n", [GPU], (0, user, None, None, "compute")), START + at, row, [GIB], 60.0)
            accounts = its.take([one.sample], device_rows([one]))
            ledger.taken += len(accounts.uses) > 0
            return accounts.notes

        take("anna", 0.0)
        take("bob", 7200.0)
        take("bob", days * 86_400.0)
        notes = take("bob", days * 86_400.0 + 1200.0)
        assert (b"anna" in notes) is is_known
        (holes,) = read_notes(notes).values()
        assert START in {hole.at for hole in holes}


def test_numbers_are_used_again_when_stays_are_over() -> None:
    ledger = EmptyLedger()
    accountant = Accountant(ledger)
    row = [device_row(0.5, GIB)]
    for number in range(200):
        here = scene("n", [GPU], (0, f"u{number}", None, None, "compute"))
        each = frame(here, START + 60.0 * number, row, [GIB], 60.0)
        uses = accountant.take([each.sample], device_rows([each])).uses
        ledger.taken += 1
        assert uses.keys[-1].user in {f"u{number}", f"u{number - 1}"}
        assert uses.numbers is not None
        assert [ledger.register.key(n) for n in uses.numbers.tolist()] == list(uses.keys)
    assert ledger.register.capacity < 40


def test_ids_of_stays_are_their_own() -> None:
    key = SessionKey("n", "g", "X", "ada", None, None, START)
    others = {key._replace(user=None).id, key._replace(container="ada").id, key._replace(opened_at=0.0).id}
    assert key.id not in others
    assert len(others) == 3
    assert np.unique([key.id, SessionKey(*key).id]).size == 1
