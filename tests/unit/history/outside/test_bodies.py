"""What is sent, to the byte."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.history.batch import DEVICE_METRICS, NOT_JUDGED, SeriesKey
from gpuherd.history.outside.names import regex_of, said, string_of
from gpuherd.history.outside.remote_write_body import literal_snappy, series_head, varint
from gpuherd.history.victoriametrics import LineEncoder
from support.history_stores import device_samples

KEY = SeriesKey("node a", "GPU-1", "H100=80GB")


def unpacked(block: bytes) -> bytes:
    """Read a snappy block of literals."""
    length = shift = place = 0
    while True:
        byte = block[place]
        length |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            break
    out = b""
    while place < len(block):
        assert block[place] == 0xF4  # a literal whose length has two bytes
        (size,) = struct.unpack_from("<H", block, place + 1)
        out += block[place + 3 : place + 4 + size]
        place += 4 + size
    assert len(out) == length
    return out


@given(st.binary(max_size=200), st.integers(0, 2000))
def test_snappy_of_literals(content: bytes, times: int) -> None:
    assert unpacked(literal_snappy([content] * times)) == content * times


@pytest.mark.parametrize(("number", "written"), [(0, b"\0"), (127, b"\x7f"), (300, b"\xac\x02")])
def test_varint(number: int, written: bytes) -> None:
    assert varint(number) == written


def test_a_series_is_as_long_as_it_says() -> None:
    time_ms = 1_790_812_800_123
    assert len(varint(time_ms)) == 6
    series = (
        series_head("gpuherd_device_power_watts", KEY) + struct.pack("<d", 1.5) + b"\x10" + varint(time_ms)
    )
    assert series[:2] == bytes([0x0A, len(series) - 2])
    assert (
        series.index(b"__name__") < series.index(b"node_id") < series.index(b"type") < series.index(b"uuid")
    )


def test_a_line_has_every_number_that_is_known() -> None:
    batch = device_samples(
        KEY,
        np.array([1000.0, 1001.2344]),
        state=[1, NOT_JUDGED],
        power_watts=np.array([1.5, 2.5]),
        fan_ratio=0.25,
    )
    batch.devices.values[1, DEVICE_METRICS.index("fan_ratio")] = np.inf
    subject = "gpuherd_device,node_id=node\\ a,type=H100\\=80GB,uuid=GPU-1"
    assert LineEncoder("gpuherd_device", DEVICE_METRICS).lines(batch.devices) == [
        f"{subject} power_watts=1.5,fan_ratio=0.25,state=1.0 1000000\n",
        f"{subject} power_watts=2.5 1001234\n",
    ]


def test_a_row_without_numbers_is_no_line() -> None:
    batch = device_samples(KEY, np.array([1000.0]), state=NOT_JUDGED, power_watts=np.nan)
    assert LineEncoder("gpuherd_device", DEVICE_METRICS).lines(batch.devices) == []


@given(st.text(), st.text())
def test_names_are_on_one_line_and_stay_apart(one: str, other: str) -> None:
    assert "\n" not in said(one)
    said(one).encode()
    if one != other:
        assert said(one) != said(other)


def test_names_in_questions() -> None:
    assert string_of('a"b\\c') == '"a\\"b\\\\c"'
    assert regex_of({"a.b", "c|d"}) == '"a\\\\.b|c\\\\|d"'
