"""Batches that are summed up together come to what they come to one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.history.batch import NOT_JUDGED, SeriesKey
from gpuherd.history.herd.tally import Sums, Tally, added
from support.past import Row, batch_of
from support.summed_herd import BUSY, FREE, HELD, MIDNIGHT

KEYS = (SeriesKey("n1", "GPU-1", "H100"), SeriesKey("n1", "GPU-2", "L40S"), SeriesKey("n2", "GPU-3", ""))
rows = st.lists(
    st.builds(
        lambda key, second, work, state: (
            key,
            MIDNIGHT + second,
            {"utilization_gpu": work, "power_watts": 300.0 * work, "memory_used_bytes": 2.0**30},
            state,
        ),
        st.sampled_from(KEYS),
        st.one_of(st.integers(0, 12).map(lambda number: 10.0 * number), st.integers(0, 20_000).map(float)),
        st.integers(0, 100).map(lambda percent: percent / 100),
        st.sampled_from([BUSY, FREE, HELD, NOT_JUDGED]),
    ),
    min_size=1,
    max_size=6,
)


def as_cells(sums: Sums) -> dict[tuple[int, int], np.ndarray]:
    whole = added([sums])
    cells = zip(whole.minute.tolist(), whole.type.tolist(), whole.values, strict=True)
    return {(minute, kind): values for minute, kind, values in cells if values.any()}


@settings(max_examples=30)
@given(st.lists(rows, min_size=1, max_size=8), st.data())
def test_any_number_at_once(batches: list[list[Row]], data: st.DataObject) -> None:
    samples = [batch_of(each).devices for each in batches]
    one_by_one = Tally()
    expected = as_cells(added([one_by_one.add(each) for each in samples]))
    together, pieces = Tally(), []
    while samples:
        count = data.draw(st.integers(1, len(samples)))
        pieces.append(together.add(*samples[:count]))
        del samples[:count]
    found = as_cells(added(pieces))
    assert found.keys() == expected.keys()
    assert together.types == one_by_one.types
    for cell, values in found.items():
        np.testing.assert_allclose(values, expected[cell], rtol=1e-9, atol=1e-6)
