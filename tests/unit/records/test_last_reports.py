"""The last states' file: durable, all or nothing, and never in the way of a start."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.records.last_reports import SHELF_NODES, LastReport, LastReports
from support.soak import SOAK
from support.tally import Tally

HEADER_BYTES = 100
"""Of an SQLite database."""
KEPT = LastReport(
    node_id="a",
    received_at=5.5,
    hello=b"hello",
    facts=b"facts",
    table=None,
    sample=b"sample",
    runs={"boot": 7},
    states=b"states",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def store(file: Path) -> Iterator[LastReports]:
    store = LastReports(file)
    yield store
    store.close()


def reopened(file: Path) -> list[LastReport]:
    store = LastReports(file)
    try:
        return sorted(store.load_all(), key=lambda kept: kept.node_id)
    finally:
        store.close()


@pytest.mark.parametrize("is_there", [True, False])
def test_only_the_owner_can_read_it(file: Path, is_there: bool) -> None:
    if is_there:
        file.touch(mode=0o644)
        file.chmod(0o644)
    store = LastReports(file)
    try:
        store.save([KEPT])
        rights = {part.name: part.stat().st_mode & 0o777 for part in file.parent.iterdir()}
    finally:
        store.close()
    assert rights == {"state.sqlite": 0o600, "state.sqlite-wal": 0o600, "state.sqlite-shm": 0o600}


def test_what_is_saved_comes_back(store: LastReports, file: Path) -> None:
    other = structs.replace(KEPT, node_id="b", facts=None, sample=None, runs={})
    store.save([KEPT, other])
    assert reopened(file) == [KEPT, other]


def test_only_the_newest_state_is_kept_and_every_part_of_it(store: LastReports, file: Path) -> None:
    store.save([KEPT])
    newer = structs.replace(KEPT, sample=b"newer", runs={"boot": 8, "next": 1}, received_at=6.5)
    store.save([newer])
    assert reopened(file) == [newer]
    with_table = structs.replace(newer, table=b"table", facts=b"other facts")
    store.save([with_table])
    assert reopened(file) == [with_table]


def test_a_forgotten_node_is_gone_and_may_come_back(store: LastReports, file: Path) -> None:
    store.save([KEPT])
    store.forget("a")
    store.forget("never there")
    assert reopened(file) == []
    store.save([KEPT])
    assert reopened(file) == [KEPT]


def test_a_batch_is_saved_whole_or_not_at_all_and_a_full_disk_heals(store: LastReports, file: Path) -> None:
    store.save([KEPT])
    (pages,) = store._opened().execute("PRAGMA page_count").fetchone()
    store._opened().execute(f"PRAGMA max_page_count = {pages}")
    batch = [structs.replace(KEPT, sample=b"newer")] + [
        structs.replace(KEPT, node_id=f"n{number}", sample=b"x" * 9000) for number in range(20)
    ]
    with pytest.raises(Failed, match="free some space"):
        store.save(batch)
    assert reopened(file) == [KEPT]
    store._opened().execute("PRAGMA max_page_count = 100000")
    store.save(batch)
    assert len(reopened(file)) == 21


@pytest.mark.parametrize("damage", [b"this is no database" * 100, b""])
def test_a_damaged_file_is_set_aside_and_does_not_stop_the_start(file: Path, damage: bytes) -> None:
    file.write_bytes(damage)
    assert reopened(file) == []
    assert file.with_name("state.sqlite.damaged").exists() == bool(damage)


def test_another_versions_state_is_begun_anew(store: LastReports, file: Path) -> None:
    store.save([KEPT])
    store.close()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert reopened(file) == []


def test_an_unreadable_shelf_is_left_out(store: LastReports, file: Path) -> None:
    names = [f"n{number}" for number in range(SHELF_NODES + 5)]
    store.save([structs.replace(KEPT, node_id=name) for name in names])
    store._opened().execute("UPDATE shelves SET content = x'c1' WHERE number = 0")
    assert [kept.node_id for kept in reopened(file)] == names[SHELF_NODES - 1 :]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="state_dir"):
        LastReports(tmp_path / "missing" / "state.sqlite")


@pytest.mark.chaos
@pytest.mark.promise("damaged-state-set-aside")
def test_damage_anywhere_is_said_or_costs_nothing(tmp_path: Path, tally: Tally) -> None:
    chance, original = random.Random(5), tmp_path / "state.sqlite"  # noqa: S311 - the same places each time
    store = LastReports(original)
    store.save(
        [structs.replace(KEPT, node_id=f"n{n}", facts=b"f" * 900, sample=b"s" * 200) for n in range(300)]
    )
    store.close()
    before, content = reopened(original), original.read_bytes()
    header = [(byte, bit) for byte in range(HEADER_BYTES) for bit in range(2 if SOAK == 1 else 8)]
    flips = [(chance.randrange(len(content)), chance.randrange(8)) for _ in range(20 if SOAK == 1 else 400)]
    noise = [
        (chance.randrange(len(content) - 512), chance.randbytes(512)) for _ in range(20 if SOAK == 1 else 400)
    ]
    damages = [(at, bytes([content[at] ^ 1 << bit])) for at, bit in header + flips] + noise
    tries, silent, damaged = len(damages), 0, tmp_path / "damaged"
    for at, new in damages:
        damaged.mkdir()
        (damaged / "state.sqlite").write_bytes(content[:at] + new + content[at + len(new) :])
        store = LastReports(damaged / "state.sqlite")
        found = sorted(store.load_all(), key=lambda kept: kept.node_id)
        silent += found != before and store.damage is None
        store.save([KEPT])  # and it is written on
        store.close()
        shutil.rmtree(damaged)
    tally.add("state.sqlite: noise or a flipped bit", tries=tries, held=tries - silent)
    assert silent == 0


def test_a_file_of_the_last_release_is_read_on(file: Path) -> None:
    store = LastReports(file)
    store.save([KEPT])
    store.close()
    connection = sqlite3.connect(file)
    connection.executescript(
        "ALTER TABLE inventories DROP COLUMN checksum; ALTER TABLE shelves DROP COLUMN checksum;"
        "PRAGMA user_version = 2"
    )
    connection.close()
    assert reopened(file) == [KEPT]
    store = LastReports(file)
    newer = structs.replace(KEPT, sample=b"newer")
    store.save([newer])
    store.close()
    assert reopened(file) == [newer]


def test_a_start_writes_nothing_into_a_file_that_is_as_it_should_be(file: Path) -> None:
    LastReports(file).close()
    before = file.read_bytes()
    LastReports(file).close()
    assert file.read_bytes() == before
