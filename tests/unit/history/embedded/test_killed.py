"""Killed while it appends, seals, rolls up and merges: what was acknowledged is there, once."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from gpuherd.history.store import SeriesQuery
from gpuherd.history.tables.parts import Part
from support.past import Kept
from support.past_writer import EVERY_SECONDS, KEYS, LATE, START, Memoir, PastWriter, rows_of
from support.soak import SOAK

METRICS = ("power_watts", "memory_used_bytes")


def verify(folder: Path, safe: int) -> None:
    memoir = Memoir(folder)
    try:
        assert memoir.number >= safe
        kept = Kept()
        for number in range(memoir.number + 1):
            kept.add(rows_of(number))
        memoir.historian.tend()
        for points in (2000, 700, 60):
            query = SeriesQuery(
                subjects=(*KEYS, LATE), metrics=METRICS, start=START, end=memoir.now, max_points=points
            )
            answer = memoir.store.read(query)
            assert answer.missing == ()
            for told in answer.subjects:
                for place, metric in enumerate(METRICS):
                    expected = kept.expected(told.key, metric, answer.times, answer.step_seconds)
                    for got, wanted in zip((told.mean, told.low, told.high), expected, strict=True):
                        np.testing.assert_allclose(got[:, place], wanted, atol=0.6)
        raw = memoir.tables.query(
            "SELECT count(*) AS all_rows, count(DISTINCT (uuid, time)) AS moments FROM {raw}",
            {"raw": Part("devices_raw")},
        )
        assert raw.columns["moments"][0] <= sum(map(len, kept.rows.values()))
        # Sums are exact but for the moments around each start, where nobody knows what was before.
        seen = memoir.reader.capacity(START - 900, memoir.now, type="H100").seen_hours
        assert seen is not None
        hours = (memoir.number + 1) * EVERY_SECONDS / 3600
        assert hours - 23 * SOAK * EVERY_SECONDS / 3600 <= seen <= hours + 23 * SOAK * EVERY_SECONDS / 3600
    finally:
        memoir.close()


@pytest.mark.soak
def test_killed_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(SOAK)  # noqa: S311 - moments, not secrets
    safe = -1
    for kill in range(15 * SOAK):
        writer = PastWriter(tmp_path)
        # Not a wait for anything: the moment is what is tried.
        now_safe = writer.run(chance.randrange(1, 40), chance.uniform(0.0, 0.15))
        assert now_safe > safe
        safe = now_safe
        if kill % 15 == 14:
            verify(tmp_path, safe)
