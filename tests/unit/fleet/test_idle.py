"""The rolling window that tells work from a blip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.fleet.idle import note_work
from gpuherd.fleet.rows import WORK_BUCKETS, DeviceRows

WINDOW = 600.0
BUCKET = WINDOW / WORK_BUCKETS


def test_time_that_nobody_judged_counts_a_bucket_at_most() -> None:
    rows = DeviceRows(2)
    works = np.array([True, False])
    assert note_work(rows, works, 1000.0, WINDOW).tolist() == [0.0, 0.0]
    share = note_work(rows, works, 21_000.0, WINDOW)
    assert share.tolist() == pytest.approx([BUCKET / WINDOW, 0.0])


@given(st.lists(st.tuples(st.floats(0.1, 20.0), st.booleans()), min_size=1, max_size=200))
def test_the_share_is_that_of_the_window_give_or_take_a_bucket(moments: list[tuple[float, bool]]) -> None:
    rows = DeviceRows(1)
    now = 50_000.0
    note_work(rows, np.array([False]), now, WINDOW)
    stretches = []
    share = 0.0
    for passed, works in moments:
        if works:
            stretches.append((now, now + passed))
        now += passed
        share = float(note_work(rows, np.array([works]), now, WINDOW)[0])

    def worked_since(start: float) -> float:
        return sum(max(0.0, end - max(start, begin)) for begin, end in stretches)

    longest = worked_since(now - WINDOW - 20.0)  # a stretch counts in the bucket in which it ends
    shortest = worked_since(now - WINDOW + BUCKET)
    assert shortest / WINDOW - 1e-3 <= share <= longest / WINDOW + 1e-3
