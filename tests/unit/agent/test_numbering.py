"""Readings become numbered frames; facts and table travel only when they changed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.agent.exchange import Reading
from gpuherd.agent.numbering import Entry, FrameKind, Numbering
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessTable
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample
from gpuherd.wire.codec import MAX_FRAME_BYTES, agent_decoder
from gpuherd.wire.frames import FactsFrame, SampleFrame, TableFrame
from gpuherd.wire.reports import sample_from_frame, sample_to_frame
from support.wire_strategies import reports


def reading_of(report: Report) -> Reading:
    sample = sample_to_frame(report.sample, seq=0, facts_revision=0, table_revision=0)
    return Reading(facts=report.facts, table=report.table, sample=sample)


def frames_of(entries: list[Entry]) -> list[object]:
    decoder = agent_decoder()
    return [decoder.decode(entry.message) for entry in entries]


EMPTY = Report(facts=NodeFacts(host=HostFacts(hostname="n")), sample=Sample(time=1.0))


@given(st.lists(reports(), min_size=1, max_size=4), st.integers(1, 3))
def test_a_receiver_that_follows_the_revisions_gets_every_report(made: list[Report], repeats: int) -> None:
    numbering = Numbering()
    facts: dict[int, NodeFacts] = {}
    tables: dict[int, TableFrame] = {}
    seqs = []
    for report in [report for report in made for _ in range(repeats)]:
        for frame in frames_of(numbering.entries(reading_of(report))):
            assert isinstance(frame, FactsFrame | TableFrame | SampleFrame)
            seqs.append(frame.seq)
            if isinstance(frame, FactsFrame):
                facts[frame.revision] = frame.facts
            elif isinstance(frame, TableFrame):
                tables[frame.revision] = frame
            else:
                table = tables[frame.table_revision]
                assert table.facts_revision == frame.facts_revision, "a table is of the facts in force"
                received = sample_from_frame(frame, facts[frame.facts_revision], table.table)
                assert received == report.sample
        assert numbering.report(reading_of(report)) == report
    assert seqs == list(range(len(seqs)))


def test_what_did_not_change_is_not_sent() -> None:
    numbering = Numbering()
    kinds = [[entry.kind for entry in numbering.entries(reading_of(EMPTY))] for _ in range(3)]
    assert kinds == [
        [FrameKind.FACTS, FrameKind.TABLE, FrameKind.SAMPLE],
        [FrameKind.SAMPLE],
        [FrameKind.SAMPLE],
    ]


def test_a_sample_alone_continues_with_what_is_in_force() -> None:
    numbering = Numbering()
    first = reading_of(EMPTY)
    numbering.entries(first)
    (sample,) = frames_of(numbering.entries(Reading(sample=first.sample)))
    assert isinstance(sample, SampleFrame)
    assert (sample.seq, sample.facts_revision, sample.table_revision) == (3, 1, 1)


def test_a_run_cannot_begin_with_a_sample() -> None:
    with pytest.raises(ValueError, match="must begin with facts"):
        Numbering().entries(Reading(sample=reading_of(EMPTY).sample))


@given(reports())
def test_when_nothing_can_be_read_the_rows_stay_and_are_unknown(report: Report) -> None:
    numbering = Numbering()
    numbering.entries(reading_of(report))
    trouble = (Problem(code="host_failed", message="m", is_fault=True),)
    blind = numbering.unknown(trouble, node_time=9.0, hostname="other")
    (sample,) = frames_of(numbering.entries(blind))
    assert isinstance(sample, SampleFrame)
    told = numbering.report(blind)
    assert told.mismatch() is None
    assert told.facts == report.facts
    assert told.sample.problems == trouble
    assert set(told.sample.devices) <= {DeviceSample()}
    # The next reading of a probe that has nothing new to say still fits.
    numbering.entries(Reading(sample=reading_of(report).sample))
    assert numbering.report(Reading(sample=reading_of(report).sample)) == report


def test_a_node_that_was_never_read_still_says_so() -> None:
    numbering = Numbering()
    blind = numbering.unknown((), node_time=9.0, hostname="this-host")
    assert len(numbering.entries(blind)) == 3
    assert numbering.report(blind).facts.host.hostname == "this-host"


def test_a_table_over_the_frame_cap_loses_command_lines_not_processes() -> None:
    processes = tuple(Process(pid=pid, user="user01", command="x" * 512) for pid in range(4096))
    report = msgspec.structs.replace(EMPTY, table=ProcessTable(processes=processes))
    entries = Numbering().entries(reading_of(report))
    table = frames_of(entries)[1]
    assert isinstance(table, TableFrame)
    assert len(entries[1].message) <= MAX_FRAME_BYTES
    assert [process.pid for process in table.table.processes] == list(range(4096))
    assert table.table.processes[0].command == "x" * 79 + "…"


def test_problems_over_the_frame_cap_are_cut() -> None:
    problems = tuple(Problem(code="c" * 128, message="€" * 512, device_uuid="€" * 96) for _ in range(1024))
    devices = tuple(DeviceFacts(uuid=str(index), index=index, name="n") for index in range(8))
    report = Report(
        facts=NodeFacts(host=HostFacts(hostname="n"), devices=devices),
        sample=Sample(time=1.0, devices=(DeviceSample(),) * 8, problems=problems),
    )
    *_, sample = Numbering().entries(reading_of(report))
    assert len(sample.message) <= MAX_FRAME_BYTES
    (frame,) = frames_of([sample])
    assert isinstance(frame, SampleFrame)
    assert len(frame.problems) == 64
