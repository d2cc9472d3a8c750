"""Killed at any moment, with a full disk, with files that may not grow: nothing confirmed is lost, nothing doubled."""

from __future__ import annotations

import dataclasses
import random
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.history.tables.disk import DiskFull
from gpuherd.model.errors import Failed
from support.batches import START
from support.journal_writer import JournalWriter, numbered_batch, open_history
from support.soak import SOAK
from support.tally import Tally

KILLS = 30 if SOAK == 1 else 200


@pytest.mark.soak
@pytest.mark.chaos
@pytest.mark.promise("journal-loses-nothing")
def test_killed_again_and_again_it_loses_and_doubles_nothing(tmp_path: Path, tally: Tally) -> None:
    chance = random.Random(7)  # noqa: S311 - moments, not secrets
    confirmed, held = -1, 0
    for kill in range(KILLS):
        writer = JournalWriter(tmp_path)
        numbers = writer.wait_for(chance.randint(1, 12))
        time.sleep(chance.random() * 0.01)  # not waiting for anything: anywhere within the next writes
        numbers += writer.kill()
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        # It goes on after the last one confirmed, or after one more that was written and not confirmed.
        held += kill > 0 and numbers[0] - confirmed in (1, 2)
        confirmed = numbers[-1]
    historian, shelf = open_history(tmp_path)
    found = shelf.all_numbers()
    historian.close()
    held += found == list(range(len(found))) and len(found) - 1 - confirmed in (0, 1)
    tally.add(
        "writer of history killed -9",
        tries=KILLS,
        held=held,
        lost=len(set(range(confirmed + 1)) - set(found)),
        doubled=len(found) - len(set(found)),
        figure=f"{len(found)} batches",
    )
    assert found == list(range(len(found)))
    assert held == KILLS
    assert historian.journal_health().damaged_records == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounting.returncode != 0:
        pytest.skip("mounting a file system of its own needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_on_a_full_disk_it_stops_and_goes_on_by_itself_when_there_is_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * 1_000_000)
    historian, _ = open_history(small_disk)
    number, batch = 0, numbered_batch(0)
    try:
        while True:
            number += 1
            historian.append(batch := numbered_batch(7 * number))
    except DiskFull:
        pass
    for _ in range(3):
        with pytest.raises(DiskFull):
            historian.append(batch)
    assert historian.journal_health().state == "failing"
    filler.unlink()
    historian.append(batch)
    assert historian.journal_health().state == "ok"
    historian.close()
    again, shelf = open_history(small_disk)
    assert shelf.all_numbers() == [7 * n for n in range(1, number + 1)]
    assert (again.journal_health().damaged_records, again.journal_health().torn_bytes) == (0, 0)
    again.close()


def test_a_file_that_may_not_grow_any_more_is_followed_by_another(tmp_path: Path) -> None:
    historian, _ = open_history(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
    failures = 0
    try:
        for number in range(1, 12):
            batch = dataclasses.replace(numbered_batch(7 * number), written_at=START)
            try:
                historian.append(batch)
            except Failed:
                failures += 1
                historian.append(batch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert failures > 0
    historian.close()
    again, shelf = open_history(tmp_path)
    assert shelf.all_numbers() == [7 * number for number in range(1, 12)]
    again.close()


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    historian, _ = open_history(tmp_path)
    folder = tmp_path / "journal"
    folder.rmdir()
    with pytest.raises(Failed, match="cannot write"):
        historian.append(numbered_batch(1))
    folder.mkdir()
    historian.append(numbered_batch(1))
    historian.close()
