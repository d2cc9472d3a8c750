"""What comes late for many days is brought into files a few days at a time, and can be asked for all the while."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gpuherd.history.embedded.kinds import DEVICES, SHAPES
from gpuherd.history.embedded.store import DAYS_AT_ONCE, EmbeddedStore
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SeriesQuery
from gpuherd.history.tables.tables import Tables
from support.past import batch_of, device_keys

NOON = datetime(2026, 10, 1, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
DAYS = 3 * DAYS_AT_ONCE - 2


def test_one_round_does_not_write_a_file_for_each_of_many_days(tmp_path: Path) -> None:
    (key,) = device_keys(1)
    tables = Tables(tmp_path, SHAPES, threads=1)
    store = EmbeddedStore(tables, HistorySettings(raw_days=365), clock=lambda: NOON)
    times = [NOON - number * DAY for number in range(1, DAYS + 1)]
    store.take(batch_of([(key, time, {"power_watts": 100.0}, 0) for time in times]), 1)
    query = SeriesQuery(
        subjects=(key,), metrics=("power_watts",), start=NOON - 40 * DAY, end=NOON, max_points=2000
    )
    files = []
    for turn in range(4):
        store.tend(NOON + 2 * turn, 2)
        files.append(len(tables.segments(DEVICES.raw.name)))
        # The journal keeps what is not in files yet.
        assert store.settled == (2 if files[-1] == DAYS else 1)
        (told,) = store.read(query).subjects
        assert np.count_nonzero(~np.isnan(told.mean)) == DAYS
    assert files == [DAYS_AT_ONCE, 2 * DAYS_AT_ONCE, DAYS, DAYS]
    tables.close()
