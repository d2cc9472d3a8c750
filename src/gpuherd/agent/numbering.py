"""Readings to numbered frames: facts and table when they changed, a sample always."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import msgspec

from gpuherd.agent.exchange import Reading
from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import ProcessSample, ProcessTable, UseSample
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample, fewer_problems
from gpuherd.model.text import clip
from gpuherd.wire.codec import MAX_FRAME_BYTES as LARGEST_MESSAGE_BYTES
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import FactsFrame, SampleFrame, TableFrame
from gpuherd.wire.reports import sample_from_frame, sample_to_frame

__all__ = ["Entry", "FrameKind", "Numbering"]

SHORT_COMMAND_LENGTH = 80
MOST_PROBLEMS = 64
MAX_FRAME_BYTES = LARGEST_MESSAGE_BYTES - 1024
"""Ours are a little smaller than allowed, so that each fits into a frame of past ones."""


class FrameKind(IntEnum):
    """What an entry holds; facts and table are needed to understand the samples after them."""

    FACTS = 0
    TABLE = 1
    SAMPLE = 2


class Entry(NamedTuple):
    """An encoded frame on its way to the hub."""

    seq: int
    kind: FrameKind
    message: bytes


class Numbering:
    """Numbers a run's frames from 0 and its revisions from 1."""

    def __init__(self) -> None:
        self.next_seq = 0
        self._facts: NodeFacts | None = None
        self._table: ProcessTable | None = None
        self._facts_revision = 0
        self._table_revision = 0
        self._has_begun = False

    def begin_run(self) -> None:
        """Number a new run from 0; its first frames will be the facts and table in force."""
        self.next_seq = self._facts_revision = self._table_revision = 0
        self._has_begun = False

    def entries(self, reading: Reading) -> list[Entry]:
        """Make the frames of one reading. The first reading of a run must bring facts and table."""
        entries = []
        facts = self._facts if reading.facts is None else reading.facts
        table = self._table if reading.table is None else reading.table
        if facts is None or table is None:
            raise ValueError("a run must begin with facts and a process table")
        facts_changed = not self._has_begun or (facts is not self._facts and facts != self._facts)
        self._has_begun = True
        if facts_changed:
            self._facts = facts
            self._facts_revision += 1
            frame = FactsFrame(seq=self._take_seq(), revision=self._facts_revision, facts=facts)
            entries.append(Entry(frame.seq, FrameKind.FACTS, encode(frame)))
        # The table points into the facts' device list: new facts need the table again.
        if facts_changed or (table is not self._table and table != self._table):
            self._table = table
            self._table_revision += 1
            entries.append(self._table_entry(table))
        sample = msgspec.structs.replace(
            reading.sample,
            seq=self._take_seq(),
            facts_revision=self._facts_revision,
            table_revision=self._table_revision,
        )
        entries.append(Entry(sample.seq, FrameKind.SAMPLE, _sample_message(sample)))
        return entries

    def unknown(self, problems: tuple[Problem, ...], *, node_time: float, hostname: str) -> Reading:
        """Make a reading that says: this node is there, but nothing can be read, because of these problems."""
        facts = self._facts or NodeFacts(host=HostFacts(hostname=hostname))
        table = self._table or ProcessTable()
        sample = Sample(
            time=node_time,
            disks_used_bytes=(None,) * len(facts.host.disks),
            devices=(DeviceSample(),) * len(facts.devices),
            processes=(ProcessSample(),) * len(table.processes),
            uses=(UseSample(),) * len(table.uses),
            problems=problems,
        )
        frame = sample_to_frame(sample, seq=0, facts_revision=0, table_revision=0)
        return Reading(facts=facts, table=table, sample=frame)

    def report(self, reading: Reading) -> Report:
        """Give a reading back as a report, with the facts and table in force; after its ``entries``."""
        if self._facts is None or self._table is None:
            raise ValueError("a run must begin with facts and a process table")
        sample = sample_from_frame(reading.sample, self._facts, self._table)
        return Report(facts=self._facts, table=self._table, sample=sample)

    def _take_seq(self) -> int:
        seq = self.next_seq
        self.next_seq += 1
        return seq

    def _table_entry(self, table: ProcessTable) -> Entry:
        seq = self._take_seq()
        message = b""
        # A frame has a size cap: a table too long for it loses the length of its command lines, then the lines.
        for command_length in (None, SHORT_COMMAND_LENGTH, 0):
            shortened = table if command_length is None else _with_commands(table, command_length)
            message = encode(
                TableFrame(
                    seq=seq,
                    revision=self._table_revision,
                    facts_revision=self._facts_revision,
                    table=shortened,
                )
            )
            if len(message) <= MAX_FRAME_BYTES:
                break
        return Entry(seq, FrameKind.TABLE, message)


def _with_commands(table: ProcessTable, length: int) -> ProcessTable:
    processes = tuple(
        msgspec.structs.replace(
            process,
            command=clip(process.command, length) if length and process.command is not None else None,
        )
        for process in table.processes
    )
    return msgspec.structs.replace(table, processes=processes)


def _sample_message(sample: SampleFrame) -> bytes:
    message = encode(sample)
    if len(message) > MAX_FRAME_BYTES:
        problems = tuple(fewer_problems(sample.problems, MOST_PROBLEMS))
        message = encode(msgspec.structs.replace(sample, problems=problems))
    return message
