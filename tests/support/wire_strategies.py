"""Hypothesis strategies for everything that travels, built from the same declarations as the code."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from gpuherd.model.columns import COLUMNS, Column
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import Address, Disk, HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample
from gpuherd.wire.frames import Ack, FactsFrame, Hello, Notice, PastFrames, SampleFrame, TableFrame, Welcome
from gpuherd.wire.matrix import LAYOUT

__all__ = ["from_agent", "from_hub", "reports", "samples_of"]

_text = st.text(st.characters(codec="utf-8"), max_size=20)
_identifier = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
_seq = st.integers(0, 2**62)
_time = st.floats(0, 1e11)
_matrix = st.binary(max_size=64)
_bytes = st.integers(0, 2**53)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _number(column: Column) -> st.SearchStrategy[Any]:
    if column.is_integer:
        return _maybe(st.integers(int(column.low), int(column.high)))
    return _maybe(st.floats(column.low, column.high))


def samples_of(part: str, kind: type[Struct]) -> st.SearchStrategy[Any]:
    """Sample structs whose numbers lie within their columns' bounds."""
    return st.builds(kind, **{column.name: _number(column) for column in COLUMNS[part]})


_problem = st.builds(
    Problem,
    code=_text,
    message=_text,
    device_uuid=_maybe(_identifier),
    is_fault=st.booleans(),
    since=_maybe(_time),
)
_device = st.builds(
    DeviceFacts,
    uuid=_identifier,
    index=st.integers(0, 4096),
    name=_text,
    kind=st.sampled_from(["gpu", "slice"]),
    parent_uuid=_maybe(_identifier),
    memory_total_bytes=_maybe(_bytes),
)
_host = st.builds(
    HostFacts,
    hostname=_text,
    os=_maybe(_text),
    cpu_count=_maybe(_bytes),
    addresses=st.lists(st.builds(Address, interface=_text, ip=_text), max_size=2).map(tuple),
    disks=st.lists(st.builds(Disk, mount=_text, total_bytes=_bytes), max_size=2).map(tuple),
)
_facts = st.builds(NodeFacts, host=_host, devices=st.lists(_device, max_size=3).map(tuple))
_process = st.builds(
    Process, pid=st.integers(0, 2**32), started_at=_maybe(_time), user=_maybe(_text), command=_maybe(_text)
)
_table = st.builds(
    ProcessTable,
    processes=st.lists(_process, max_size=3).map(tuple),
    uses=st.lists(
        st.builds(ProcessUse, process=st.integers(0, 65_535), device=st.integers(0, 65_535)), max_size=3
    ).map(tuple),
    omitted=st.integers(0, 2**32),
)

from_agent = st.one_of(
    st.builds(
        Hello,
        boot_id=_identifier,
        layout=st.just(LAYOUT),
        time=_time,
        interval_seconds=st.floats(0.001, 3600),
        live_from_seq=_seq,
        dropped_frames=_seq,
        agent_version=_maybe(_text),
    ),
    st.builds(FactsFrame, seq=_seq, revision=_seq, facts=_facts),
    st.builds(TableFrame, seq=_seq, revision=_seq, facts_revision=_seq, table=_table),
    st.builds(
        SampleFrame,
        seq=_seq,
        time=_time,
        facts_revision=_seq,
        table_revision=_seq,
        host=_matrix,
        devices=_matrix,
        processes=_matrix,
        uses=_matrix,
        disks=_matrix,
        problems=st.lists(_problem, max_size=2).map(tuple),
    ),
    st.builds(PastFrames, frames=st.lists(st.binary(max_size=40), min_size=1, max_size=3).map(tuple)),
)
from_hub = st.one_of(
    st.builds(
        Welcome,
        node_id=_identifier,
        resume_after_seq=st.integers(-1, 2**62),
        received_seq=st.integers(-1, 2**62),
        interval_seconds=_maybe(st.floats(0, 1e10)),
    ),
    st.builds(Ack, seq=_seq, boot_id=_maybe(_identifier)),
    st.builds(Notice, code=_text, message=_text, seq=_maybe(_seq), is_final=st.booleans()),
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Reports whose parts fit together."""
    facts = draw(_facts)
    processes = draw(st.lists(_process, max_size=3).map(tuple))
    can_use = bool(processes and facts.devices)
    place = st.builds(
        ProcessUse,
        process=st.integers(0, max(len(processes) - 1, 0)),
        device=st.integers(0, max(len(facts.devices) - 1, 0)),
    )
    table = ProcessTable(
        processes=processes, uses=tuple(draw(st.lists(place, max_size=3))) if can_use else ()
    )

    def rows(part: str, kind: type[Struct], count: int) -> tuple[Any, ...]:
        return tuple(draw(samples_of(part, kind)) for _ in range(count))

    return Report(
        facts=facts,
        table=table,
        sample=Sample(
            time=draw(_time),
            host=draw(samples_of("host", HostSample)),
            disks_used_bytes=tuple(draw(_maybe(_bytes)) for _ in facts.host.disks),
            devices=rows("devices", DeviceSample, len(facts.devices)),
            processes=rows("processes", ProcessSample, len(processes)),
            uses=rows("uses", UseSample, len(table.uses)),
            problems=tuple(draw(st.lists(_problem, max_size=2))),
        ),
    )
