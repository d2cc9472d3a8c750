"""Killed at any moment: what was committed is there once, and nothing else."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from gpuherd.history.tables.parts import Part
from gpuherd.history.tables.tables import Tables
from support.soak import SOAK
from support.table_writer import KEPT_NUMBERS, ROWS, ROWS_PER_NUMBER, SUMS, TableWriter, append


def verify(folder: Path, committed: int, *, kept: int = KEPT_NUMBERS) -> None:
    tables = Tables(folder, [ROWS, SUMS], threads=1)
    try:
        settled = tables.catalogue.settled("test")
        assert settled >= committed
        rows = tables.query("SELECT value FROM {rows} ORDER BY value", {"rows": Part("rows")})
        sums = tables.query("SELECT time, total FROM {sums} ORDER BY time", {"sums": Part("sums")})
        assert rows.missing == sums.missing == ()
        values, numbers = rows.columns["value"], sums.columns["time"]
        # All of the numbers that are settled, from some that were forgotten on; each once, and each with its sum.
        for found, per_number in ((values, ROWS_PER_NUMBER), (numbers, 1)):
            if settled:
                assert found[-1] == settled * per_number - 1
                assert found[0] <= max(settled - kept, 0) * per_number
                assert (np.diff(found) == 1).all()
            else:
                assert len(found) == 0
        expected = [sum(range(int(n) * ROWS_PER_NUMBER, (int(n) + 1) * ROWS_PER_NUMBER)) for n in numbers]
        assert sums.columns["total"].tolist() == expected
        on_disk = {f"{path.parent.name}/{path.name}" for path in folder.glob("*s/*.parquet")}
        assert on_disk == {segment.file for table in ("rows", "sums") for segment in tables.segments(table)}
        assert not list((folder / "writing").iterdir())
    finally:
        tables.close()


@pytest.mark.soak
def test_killed_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(SOAK)  # noqa: S311 - moments, not secrets
    committed = told = 0
    for kill in range(24 * SOAK):
        writer = TableWriter(tmp_path, seed=kill)
        assert writer.committed >= committed
        told += (count := chance.randrange(4))
        writer.wait_for(count)
        time.sleep(chance.uniform(0.0, 0.04))  # not a wait for anything: the moment is what is tried
        committed = writer.kill()
        if kill % 4 == 0 or SOAK > 1:
            verify(tmp_path, committed)
    verify(tmp_path, committed)
    assert committed >= told > 24 * SOAK


@pytest.mark.soak
def test_killed_before_every_step(tmp_path: Path) -> None:
    """Systematically: a step is a file opened, renamed or deleted on the way of an append, a merge and a deletion."""
    template = tmp_path / "template"
    writer = TableWriter(template, to_step=10_000)
    assert writer.wait_for_end()
    writer.kill()
    tables = Tables(template, [ROWS, SUMS], threads=1)
    for number in range(1, 4):
        append(tables, number)
    tables.close()
    stride = 4 if SOAK == 1 else 1
    for step in range(0, 1000, stride):
        folder = tmp_path / f"step-{step}"
        shutil.copytree(template, folder)
        writer = TableWriter(folder, to_step=step)
        is_over = writer.wait_for_end()
        verify(folder, writer.kill(), kept=3)
        if is_over:
            break
    assert 40 < step < 999
