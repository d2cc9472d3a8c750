"""What was counted is kept: over restarts at any moment, in files and in memory, once."""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.tables import Part
from gpuherd.history.usage.asking import UseFilter
from gpuherd.history.usage.upkeep import HOURS_LEVEL, NAMELESS_LEVEL
from gpuherd.model.devices import DeviceFacts
from support.reckoner import Sums
from support.running import PATIENCE_SECONDS
from support.soak import SOAK
from support.used_herd import GIB, START, Frame, device_row, frame, made_up_herd, reckon, scene
from support.used_hub import UsedHub

DAY = 86_400.0
GPU = DeviceFacts(uuid="g0", index=0, name="X1", memory_total_bytes=8 * 2**30)


@pytest.fixture
def hub_at(tmp_path: Path) -> Iterator[Callable[..., UsedHub]]:
    hubs: list[UsedHub] = []

    def make(**settings: float) -> UsedHub:
        hub = UsedHub(tmp_path / "history", HistorySettings(min_free_bytes=0, **settings))  # type: ignore[arg-type]
        hubs.append(hub)
        return hub

    yield make
    for hub in hubs:
        hub.close()


def assert_same(found: Sums, expected: Sums) -> None:
    assert found.keys() == expected.keys()
    for key, measures in expected.items():
        assert found[key] == pytest.approx(measures, rel=1e-9, abs=1e-6, nan_ok=True), key


def some_use(
    user: str | None, start: float, seconds: int, node: str = "n", job: str | None = "7"
) -> list[Frame]:
    here = scene(node, [GPU], (0, user, None, job, "compute"))
    row = [device_row(0.5, GIB, 100.0)]
    return [frame(here, start + at, row, [GIB], 60.0) for at in range(0, seconds + 1, 60)]


@pytest.mark.soak
@given(st.integers(0, 2**32))
@settings(max_examples=6 * SOAK, deadline=None)
def test_a_restart_at_any_moment_neither_loses_nor_doubles(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    draw = Random(seed)  # noqa: S311
    frames = made_up_herd(seed, samples=25)
    hub = UsedHub(tmp_path_factory.mktemp("history"), HistorySettings(min_free_bytes=0))
    restarts, place = [], 0
    try:
        while place < len(frames):
            flush = frames[place : place + draw.randint(1, 8)]
            hub.take(flush)
            place += len(flush)
            if draw.random() < 0.3:
                hub.now += 3600.0
            if draw.random() < 0.3:
                hub.tend()
            if draw.random() < 0.25:
                hub.restart()
                restarts.append(place)
        assert_same(hub.sums(), reckon(frames, restarts).sums)
        hub.restart()
        assert_same(hub.sums(), reckon(frames, restarts).sums)
    finally:
        hub.close()


def test_a_stay_goes_on_over_a_restart(hub_at: Callable[..., UsedHub]) -> None:
    hub = hub_at()
    frames = some_use("ada", START, 3600)
    hub.take(frames[:20])
    hub.now += 3600
    hub.tend()
    assert hub.book.settled > 1
    hub.restart()
    hub.take(frames[20:])
    (stay,) = hub.reader.stays(START, START + DAY).stays
    assert (stay.key.opened_at, stay.sums.held_seconds, stay.is_open) == (START, 3600.0, True)
    assert stay.command == "run 1"
    hub.take(some_use("ben", START + 3660, 600))
    (stay,) = hub.reader.stays(START, START + DAY, where=UseFilter(users=frozenset({"ada"}))).stays
    assert not stay.is_open


def test_old_slots_become_hours_and_the_sums_stay(hub_at: Callable[..., UsedHub]) -> None:
    hub = hub_at()
    hub.take(some_use("ada", START, 7200))
    before = hub.reader.figures("user", START, START + DAY)
    hub.now = START + 12 * DAY
    hub.tend()
    hub.tend()
    (segment,) = hub.tables.segments("usage")
    assert segment.level == HOURS_LEVEL
    rows = hub.tables.query("SELECT DISTINCT slot_seconds FROM {u}", {"u": Part("usage")}).columns
    assert rows["slot_seconds"].tolist() == [3600]
    after = hub.reader.figures("user", START, START + DAY)
    assert after.rows[0].sums.gpu_seconds == pytest.approx(before.rows[0].sums.gpu_seconds)
    assert after.totals.sums.joules == pytest.approx(before.totals.sums.joules)
    assert after.totals.sessions == before.totals.sessions == 1
    part = hub.reader.figures("user", START + 1800, START + 1801)
    assert (part.start % 3600, part.end % 3600) == (0, 0)


def test_names_become_pseudonyms_for_good(hub_at: Callable[..., UsedHub], tmp_path: Path) -> None:
    hub = hub_at(pseudonymise_after_days=30.0)
    hub.take(some_use("ada", START, 3600))
    old = hub.reader.stays(START, START + DAY).stays[0].id
    hub.now = START + 40 * DAY
    for _ in range(4):
        hub.tend()
    assert {segment.level for segment in hub.tables.segments("usage")} == {NAMELESS_LEVEL}
    (stay,) = hub.reader.stays(START, START + DAY).stays
    assert (stay.key.user, stay.key.job, stay.command) == ("~ada", None, None)
    assert stay.id != old
    assert stay.sums.gpu_seconds == 3600
    # What comes later still from that time gets the same pseudonym.
    hub.take(some_use("ada", START + 7200, 600))
    hub.now += 3600
    hub.tend()
    hub.tend()
    users = {row.key for row in hub.reader.figures("user", START, START + DAY).rows}
    assert users == {"~ada"}
    assert hub.reader.export(["ada"])
    for path in (tmp_path / "history").rglob("*.parquet"):
        if "standing" not in path.parent.name:
            assert b"run 1" not in path.read_bytes()


def test_a_pseudonym_is_not_tied_to_a_name_by_when_a_stay_began(hub_at: Callable[..., UsedHub]) -> None:
    hub = hub_at(pseudonymise_after_days=30.0)
    midnight = (START // DAY + 1) * DAY
    opened_at = midnight - 3 * 3600 + 754
    hub.now = opened_at
    hub.take(some_use("ada", opened_at, 6 * 3600))
    # The day before midnight is old enough, the one after is not.
    hub.now = midnight + 30 * DAY + 3600
    for _ in range(6):
        hub.tend()
        hub.now += 10
    named, nameless = hub.reader.stays(midnight - DAY, midnight + DAY).stays
    assert (named.key.user, nameless.key.user) == ("ada", "~ada")
    assert nameless.key.opened_at == nameless.first == midnight - 3 * 3600
    assert nameless.last == midnight
    for table in ("usage", "usage_days"):
        rows = hub.tables.query(
            "SELECT * FROM {t} WHERE starts_with(\"user\", '~')", {"t": Part(table)}
        ).columns
        for name in ("opened_at", "first", "last"):
            assert {time % 3600 for time in rows[name].tolist()} == {0.0}
    assert nameless.sums.held_seconds + named.sums.held_seconds == pytest.approx(6 * 3600)
    # A day later it is one stay again, from when on is told by the day.
    hub.now += DAY
    for _ in range(6):
        hub.tend()
        hub.now += 10
    (stay,) = hub.reader.stays(midnight - DAY, midnight + DAY).stays
    assert (stay.id, stay.key.opened_at) == (nameless.id, midnight - 3 * 3600)


def test_what_is_too_old_is_forgotten(hub_at: Callable[..., UsedHub]) -> None:
    hub = hub_at(usage_days=200.0)
    hub.take(some_use("ada", START, 3600))
    hub.now = START + 220 * DAY
    hub.tend()
    hub.now += 3600
    hub.tend()
    assert not hub.tables.segments("usage")
    assert hub.reader.figures("user", START, START + DAY).rows == ()


@pytest.mark.parametrize("is_sealed", [False, True])
def test_someone_is_forgotten_and_the_herds_sums_stay(
    hub_at: Callable[..., UsedHub], *, is_sealed: bool
) -> None:
    hub = hub_at()
    hub.take(some_use("ada", START, 3600) + some_use("ben", START, 3600, "m"))
    if is_sealed:
        hub.now += 3600
        hub.tend()
    hub.book.erase(["ada"])
    for _ in range(2):
        table = hub.reader.figures("user", START, START + DAY)
        assert {row.key: row.sums.gpu_seconds for row in table.rows} == {None: 3600.0, "ben": 3600.0}
        jobs = {row.key for row in hub.reader.figures("job", START, START + DAY).rows}
        assert jobs == {None, "7"}
        stays = hub.reader.stays(START, START + DAY).stays
        assert {(stay.key.user, stay.command) for stay in stays} == {(None, None), ("ben", "run 1")}
        hub.restart()
    hub.now += 7200
    hub.tend()
    assert {row.key for row in hub.reader.figures("user", START, START + DAY).rows} == {None, "ben"}
    # What they do from now on is theirs again.
    hub.take(some_use("ada", START + 3660, 600))
    assert "ada" in {row.key for row in hub.reader.figures("user", START, START + DAY).rows}


def texts(folder: Path) -> bytes:
    """Give all that files of use say, as it can be read."""
    found = b""
    for path in folder.rglob("*.parquet"):
        rows: list[tuple[Any, ...]] = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        for row in rows:
            found += repr(row).encode()
            if "standing" in path.parent.name:
                found += b"".join(b64decode(cell) for cell in row[2:3] if cell is not None)
    return found


def away_for_a_day(hub: UsedHub) -> None:
    """Leave a hole with one user at its start and others after it, in files."""
    hub.take(some_use("anna", START, 600))
    hub.take(some_use("bob", START + DAY, 600))
    hub.now = START + DAY + 600
    for _ in range(4):
        hub.now += 3600
        hub.tend()


def test_whoever_is_erased_is_nowhere_in_where_counting_stands(
    hub_at: Callable[..., UsedHub], tmp_path: Path
) -> None:
    hub = hub_at()
    away_for_a_day(hub)
    assert b"anna" in texts(tmp_path)
    hub.book.erase(["anna"])
    hub.take(some_use("bob", START + DAY + 660, 60))
    hub.take(some_use("bob", START + 2 * DAY, 60))
    hub.now = START + 2 * DAY + 60
    for _ in range(4):
        hub.now += 3600
        hub.tend()
    assert b"anna" not in texts(tmp_path)
    # What comes late still fills the hole, and others' stays go on.
    hub.take(some_use("bob", START + 660, 600))
    stays = hub.reader.stays(START, START + 3 * DAY).stays
    assert {stay.key.user for stay in stays} == {None, "bob"}
    assert len(stays) == 4
    hub.restart()
    assert b"anna" not in texts(tmp_path)


def test_a_stay_that_is_open_when_its_user_is_erased_ends(
    hub_at: Callable[..., UsedHub], tmp_path: Path
) -> None:
    hub = hub_at()
    frames = some_use("ada", START, 1800)
    hub.take(frames[:10])
    hub.book.erase(["ada"])
    hub.take(frames[10:])
    before, after = sorted(hub.reader.stays(START, START + DAY).stays, key=lambda stay: stay.first)
    assert (before.key.user, after.key.user) == (None, "ada")
    assert before.last == START + 9 * 60
    assert after.key.opened_at == after.first == START + 10 * 60
    assert not any(key.user == "ada" and key.opened_at == START for key in hub.book.standing().stays)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_names_beside_holes_and_of_nodes_that_are_gone_are_not_kept(
    hub_at: Callable[..., UsedHub], tmp_path: Path, *, is_restarted: bool
) -> None:
    hub = hub_at(pseudonymise_after_days=30.0)
    hub.take(some_use("gone", START, 600, "gone"))
    away_for_a_day(hub)
    if is_restarted:
        hub.restart()
    hub.now = START + 60 * DAY
    for _ in range(8):
        hub.now += 3600
        hub.tend()
    rest = texts(tmp_path).replace(b"~anna", b"").replace(b"~gone", b"").replace(b"'gone', 'g0'", b"")
    assert b"anna" not in rest
    assert b"'gone', 'X1'" not in rest
    assert not hub.book.standing().stays
    # That there is a hole is still known.
    assert len(hub.book.standing().holes["n"]) == 2


def test_files_are_few(hub_at: Callable[..., UsedHub]) -> None:
    hub = hub_at()
    for number in range(20):
        hub.take(some_use("ada", START + number * 600, 540))
        hub.now = START + number * 3600
        hub.tend()
    hub.now += 3600
    hub.tend()
    assert len(hub.tables.segments("usage")) < 10
    (row,) = hub.reader.figures("user", START, START + DAY).rows
    assert row.sums.held_seconds == pytest.approx(20 * 600 - 60)
    assert row.sessions == 1


def test_health_tells_what_is_kept(hub_at: Callable[..., UsedHub]) -> None:
    hub = hub_at()
    hub.take(some_use("ada", START, 3600))
    assert hub.book.health().waiting_batches == 1
    hub.now += 3600
    hub.tend()
    health = hub.book.health()
    assert (health.state, health.waiting_batches, health.oldest) == ("ok", 0, START // 900 * 900)
    assert health.size_bytes


def test_a_slow_disk_keeps_neither_the_writer_nor_health_nor_questions_waiting(
    hub_at: Callable[..., UsedHub], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = hub_at()
    first, later = some_use("ada", START, 3600), some_use("ada", START + 3660, 600)
    hub.take(first)
    hub.now += 7200
    has_begun, may_end, is_listed, may_go = (threading.Event() for _ in range(4))
    commit = hub.tables.commit

    def slow_commit(**changes: Any) -> None:
        has_begun.set()
        assert may_end.wait(PATIENCE_SECONDS)
        commit(**changes)
        is_listed.set()
        assert may_go.wait(PATIENCE_SECONDS)

    def held_seconds() -> float:
        use = hub.book.open_use()
        with hub.tables.catalogue.hold():
            found = hub.tables.query(
                "SELECT sum(held_seconds) AS held FROM {rows}", {"rows": Part("usage", segments=use.segments)}
            ).columns["held"]
        return float(np.nansum(found)) + float(use.rows.measures[:, 0].sum())

    monkeypatch.setattr(hub.tables, "commit", slow_commit)
    with ThreadPoolExecutor(3) as threads:
        tending = threads.submit(hub.tend)
        try:
            assert has_begun.wait(PATIENCE_SECONDS)
            assert threads.submit(hub.book.health).result(PATIENCE_SECONDS).waiting_batches == 1
            assert threads.submit(held_seconds).result(PATIENCE_SECONDS) == pytest.approx(3600)
            threads.submit(hub.take, later).result(PATIENCE_SECONDS)
            may_end.set()
            assert is_listed.wait(PATIENCE_SECONDS)
            # In files, and still in memory: it counts once.
            assert threads.submit(held_seconds).result(PATIENCE_SECONDS) == pytest.approx(4260)
        finally:
            may_end.set()
            may_go.set()
        tending.result(PATIENCE_SECONDS)
    assert held_seconds() == pytest.approx(4260)
    assert_same(hub.sums(), reckon([*first, *later]).sums)
