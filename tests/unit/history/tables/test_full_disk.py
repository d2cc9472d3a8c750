"""A disk without room: nothing that was kept is lost, forgetting works, and it heals by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from gpuherd.history.tables.compaction import merge
from gpuherd.history.tables.disk import DiskFull
from gpuherd.history.tables.retention import forget
from gpuherd.history.tables.tables import Tables
from gpuherd.model.errors import Failed
from support.rows import kept, open_rows, put


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "gpuherd-test", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder / "history"
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def stuff(folder: Path) -> Path:
    """Take all room that is left."""
    path = folder.parent / "someone-elses"
    with path.open("ab", buffering=0) as opened, suppress(OSError):
        while True:
            opened.write(bytes(4096))
    return path


def noise(tables: Tables) -> dict[str, np.ndarray]:
    return {"time": np.arange(20_000) / 7, "value": np.random.default_rng(1).random(20_000)}


def test_forgetting_makes_room(small_disk: Path) -> None:
    tables = open_rows(small_disk)
    old = put(tables, [(1.0, "a", 1.0)])
    put(tables, [(100.0, "a", 2.0)], partition=60)
    assert tables.catalogue.ballast.is_held
    stuff(small_disk)
    with pytest.raises(DiskFull):
        tables.write("rows", noise(tables), partition=0)
    assert not list((small_disk / "writing").iterdir())
    # The step itself needs room: it takes the ballast's.
    assert forget(tables, {"rows": 50.0}, now=100.0) == (old,)
    assert kept(tables) == [(100.0, "a", 2.0)]
    assert not tables.catalogue.ballast.is_held
    tables.close()
    tables = open_rows(small_disk)
    assert kept(tables) == [(100.0, "a", 2.0)]
    tables.close()


def test_nothing_is_lost_and_it_heals(small_disk: Path) -> None:
    tables = open_rows(small_disk)
    segments = [put(tables, [(float(n), "a", float(n))]) for n in range(3)]
    before = kept(tables)
    stuffing = stuff(small_disk)
    tables.catalogue.ballast.release()
    stuff(small_disk)
    for attempt in range(3):
        with pytest.raises(Failed):
            tables.write("rows", noise(tables), partition=0)
        with pytest.raises(Failed):
            merge(tables, segments)
        with pytest.raises(DiskFull):
            tables.commit(remove=segments[:1], settled={"usage": attempt + 1})
        assert kept(tables) == before
        tables.tend(0.0)
        assert not tables.catalogue.ballast.is_held
    tables.close()
    tables = open_rows(small_disk)  # a start on a full disk
    assert kept(tables) == before
    assert tables.catalogue.settled("usage") == 0
    stuffing.unlink()
    tables.tend(0.0)
    assert tables.catalogue.ballast.is_held
    merge(tables, segments)
    assert kept(tables) == before
    tables.close()
