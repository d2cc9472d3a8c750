"""Samples as matrices: what goes in comes out, also between versions that know different columns."""

from __future__ import annotations

import math
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.model.columns import COLUMNS
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Refused
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.wire.codec import agent_decoder, encode
from gpuherd.wire.frames import Layout, SampleFrame
from gpuherd.wire.matrix import LAYOUT, pack, pack_numbers, unpack, unpack_numbers
from gpuherd.wire.reports import sample_from_frame, sample_to_frame
from support.wire_strategies import reports, samples_of

DEVICE_COLUMNS = COLUMNS["devices"]
FACTS = NodeFacts(
    host=HostFacts(hostname="n"),
    devices=tuple(DeviceFacts(uuid=f"GPU-{n}", index=n, name="n") for n in range(2)),
)


def doubles(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


@given(reports())
def test_a_sample_survives_the_way(report: Report) -> None:
    assert report.mismatch() is None
    frame = sample_to_frame(report.sample, seq=7, facts_revision=3, table_revision=4)
    received = agent_decoder().decode(encode(frame))
    assert isinstance(received, SampleFrame)
    assert (received.seq, received.facts_revision, received.table_revision) == (7, 3, 4)
    assert sample_from_frame(received, report.facts, report.table) == report.sample


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_numbers_and_unknowns_survive(values: list[float | None]) -> None:
    assert unpack_numbers(pack_numbers(values)) == values


def test_what_is_not_a_number_is_unknown() -> None:
    assert unpack_numbers(doubles(math.nan, math.inf, -math.inf, 0.0)) == [None, None, None, 0.0]


@given(st.data(), st.lists(st.text(max_size=5), max_size=5), st.integers(0, 5))
def test_any_matrix_unpacks_or_is_refused(source: st.DataObject, names: list[str], rows: int) -> None:
    size = rows * len(names) * 8
    data = source.draw(st.binary(max_size=200) | st.binary(min_size=size, max_size=size))
    if len(data) == rows * len(names) * 8:
        assert len(unpack(data, names, DeviceSample, DEVICE_COLUMNS, rows)) == rows
        return
    with pytest.raises(Refused) as caught:
        unpack(data, names, DeviceSample, DEVICE_COLUMNS, rows)
    assert caught.value.code == "matrix_misshapen"


@given(st.binary(max_size=400).map(lambda data: data[: len(data) // 152 * 152]))
def test_any_numbers_stay_within_their_bounds(data: bytes) -> None:
    """A sentinel or a lie in a cell makes that cell unknown; the rest of the row is taken."""
    names = LAYOUT.devices
    assert len(names) * 8 == 152, "the slicing above fits the columns"
    for sample in unpack(data, names, DeviceSample, DEVICE_COLUMNS, len(data) // 152):
        # Decoding checks every bound that the struct declares.
        assert msgspec.convert(msgspec.to_builtins(sample), DeviceSample) == sample


@given(st.lists(samples_of("devices", DeviceSample), min_size=2, max_size=2), st.permutations(LAYOUT.devices))
def test_columns_may_come_in_any_order(samples: list[Any], order: list[str]) -> None:
    rows = pack_numbers([getattr(sample, name) for sample in samples for name in order])
    assert unpack(rows, order, DeviceSample, DEVICE_COLUMNS, 2) == tuple(samples)


@given(samples_of("devices", DeviceSample), st.sets(st.sampled_from(LAYOUT.devices)))
def test_an_older_sender_lacks_columns(sample: Any, lacking: set[str]) -> None:
    names = [name for name in LAYOUT.devices if name not in lacking]
    (received,) = unpack(
        pack_numbers([getattr(sample, name) for name in names]), names, DeviceSample, DEVICE_COLUMNS, 1
    )
    for name in LAYOUT.devices:
        assert getattr(received, name) == (None if name in lacking else getattr(sample, name))


@given(samples_of("devices", DeviceSample))
def test_a_newer_sender_has_more_columns(sample: Any) -> None:
    names = ["tensor_ratio", *LAYOUT.devices, "coolant_litres"]
    values = [0.5, *msgspec.structs.astuple(sample), 3.0]
    assert unpack(pack_numbers(values), names, DeviceSample, DEVICE_COLUMNS, 1) == (sample,)


def test_a_column_named_twice_counts_once() -> None:
    names = ["power_watts", "power_watts"]
    (received,) = unpack(doubles(1.0, 2.0), names, DeviceSample, DEVICE_COLUMNS, 1)
    assert received == DeviceSample(power_watts=1.0)


def test_a_sender_without_device_columns_still_has_its_rows() -> None:
    layout = Layout(host=LAYOUT.host, devices=(), processes=(), uses=())
    frame = msgspec.structs.replace(_frame(), devices=b"")
    sample = sample_from_frame(frame, FACTS, ProcessTable(), layout)
    assert sample.devices == (DeviceSample(), DeviceSample())


def _frame() -> SampleFrame:
    sample = Sample(time=1.0, devices=(DeviceSample(), DeviceSample()))
    return sample_to_frame(sample, seq=0, facts_revision=1, table_revision=1)


@pytest.mark.parametrize("part", ["host", "devices", "processes", "uses", "disks"])
@pytest.mark.parametrize("extra", [doubles(1.0), b"\0"])
def test_matrices_that_do_not_fit_are_refused(part: str, extra: bytes) -> None:
    frame = _frame()
    wrong = msgspec.structs.replace(frame, **{part: getattr(frame, part) + extra})
    with pytest.raises(Refused) as caught:
        sample_from_frame(wrong, FACTS, ProcessTable())
    assert caught.value.code == "matrix_misshapen"


def test_a_matrix_is_rows_of_little_endian_doubles() -> None:
    """The layout as docs/protocol.md tells it, for agents in other languages."""
    packed = pack((DeviceSample(utilization_gpu=0.5), DeviceSample()))
    assert len(packed) == 2 * len(LAYOUT.devices) * 8
    assert packed[:8] == struct.pack("<d", 0.5)
    assert math.isnan(struct.unpack("<d", packed[8:16])[0])
