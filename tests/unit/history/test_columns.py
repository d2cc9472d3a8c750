"""Columns lose no bit, whatever is in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.history.columns import UNITS, pack, pack_codes, pack_runs, unpack, unpack_codes

numbers = st.one_of(
    st.floats(allow_infinity=True, allow_nan=True),
    st.integers(0, 100).map(lambda percent: percent / 100),
    st.integers(0, 2**53).map(float),
    st.sampled_from([0.0, 255.0, 254.0, 65_535.0, 65_534.0, 2.0**32 - 1, 1755e6, -1.0]),
)


@given(st.lists(numbers, max_size=40), st.sampled_from([(), *UNITS.values()]))
def test_numbers_come_back_as_they_were(values: list[float], units: tuple[float, ...]) -> None:
    column = np.array(values, dtype=np.float64)
    for packed in (pack(column, units), pack_runs(column)):
        np.testing.assert_array_equal(unpack(packed, len(column)), column)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40))
def test_codes_come_back_as_they_were(values: list[int]) -> None:
    codes = np.array(values, dtype=np.int64)
    np.testing.assert_array_equal(unpack_codes(pack_codes(codes), len(codes)), codes)


@pytest.mark.parametrize(
    ("unit", "values", "size"),
    [
        ("ratio", [0.0, 0.37, 1.0, np.nan], 1),
        ("watts", [250.125, 699.999, 0.0, np.nan], 4),
        ("hertz", [1755e6, 1980e6, 210e6, np.nan], 2),
        ("bytes", [80.0 * 2**30, 2.0**20, 0.0, np.nan], 4),
        ("ratio", [1 / 3, 0.1, 0.2, np.nan], 8),
    ],
)
def test_usual_numbers_take_few_bytes(unit: str, values: list[float], size: int) -> None:
    assert len(pack(np.array(values), UNITS[unit])[2]) == size * len(values)


@pytest.mark.parametrize("length", [0, 1, 3, 5, 100])
def test_another_number_of_numbers_is_refused(length: int) -> None:
    for column in (
        np.array([1.0, 2.5, 3.25, np.nan]),
        np.array([1.0, 2.0, 3.0, 0.0]),
        np.repeat([1.5, 2.5], [1, 3]),
    ):
        for packed in (pack(column, (1.0,)), pack_runs(column)):
            with pytest.raises(ValueError, match=r"."):
                unpack(packed, length)
