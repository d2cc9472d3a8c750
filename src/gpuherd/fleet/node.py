"""One node as the hub knows it: its current facts, table and last sample, its runs of numbered frames."""

from __future__ import annotations

import logging
import math
from collections import Counter
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from gpuherd.fleet.clock import Clock
from gpuherd.fleet.device_ids import DeviceIds
from gpuherd.fleet.hygiene import clean_facts, clean_table
from gpuherd.fleet.names import Names
from gpuherd.fleet.scene import Scene
from gpuherd.model.device_memory import KnownDevice
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.errors import Refused
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Problem
from gpuherd.model.targets import NodeWay
from gpuherd.wire.codec import UnknownFrame, encode
from gpuherd.wire.frames import FactsFrame, Hello, Layout, SampleFrame, TableFrame
from gpuherd.wire.matrix import CELL_BYTES, LAYOUT

__all__ = ["LiveSink", "Node", "NodeHealth", "Run"]

log = logging.getLogger(__name__)

MAX_RUNS = 8
"""Runs whose highest number is remembered per node: the spool of an agent holds few."""


class NodeHealth(Struct, frozen=True, kw_only=True):
    """Statistics of a node's frames since the hub started."""

    node_id: str
    accepted: int
    backfilled: int
    duplicates: int
    missed: int
    """Numbers that never came: the agent dropped them while the hub was away."""
    dropped_by_agent: int
    unknown_frames: int
    values_refused: int
    lost_samples: Annotated[
        int,
        Meta(description="Samples that were lost because the disk was full, and that cannot be sent again."),
    ] = 0
    refused: dict[str, int]
    last_error: str | None
    last_error_at: float | None


class Node:
    """Bookkeeping of one node; the numbers themselves are in the rows."""

    def __init__(self, node_id: str, name: str, row: int) -> None:
        self.id = node_id
        self.name = name
        self.way: NodeWay = "push"
        self.list_position: int | None = None
        self.row = row
        self.facts: NodeFacts | None = None
        self.missing: tuple[KnownDevice, ...] = ()
        """Whole GPUs that it has reported before and no longer does."""
        self.expected_gpus: int | None = None
        """How many it has according to a list; None: no list says."""
        self.table = ProcessTable()
        self.owners: tuple[str | None, ...] = ()
        """The users of the table's processes as the node calls them; the table has the names that are shown."""
        self.problems: tuple[Problem, ...] = ()
        self.raw_problems: tuple[Problem, ...] = ()
        """The problems as sent, to see at a glance that they are still the same."""
        self.notes: dict[str, Problem] = {}
        """What the hub itself has to say of the node, by subject; ``contact`` goes away with the next sample."""
        self.start = 0
        self.count = 0
        self.disks = b""
        self.processes = b""
        self.uses = b""
        self.neighbours: dict[int, tuple[int, ...]] = {}
        """By position, the other slices that share a slice's memory."""
        self.has_explained_memory = False
        """Memory may be in use on a device without holding it."""
        self.layout = LAYOUT
        self.is_native = True
        """Its matrices have exactly our columns."""
        self.run: Run | None = None
        """The run whose facts, table and layout these are."""
        self.hello_message = b""
        self.facts_message: bytes | None = None
        self.table_message: bytes | None = None
        self.sample_message: bytes | None = None
        self.sample_time = -math.inf
        """By the node's clock, of the last sample that was taken."""
        self.report_time = -math.inf
        """By the node's clock, of the last report that came without a number, taken or not."""
        self.received_wall: float | None = None
        self.states = b""
        """The devices' states as last kept, and when (monotonic): they are packed anew only now and then."""
        self.states_at = -math.inf
        self.runs: dict[str, int] = {}
        self.device_ids = DeviceIds()
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.dropped_by_agent = 0
        self._dropped_in_run: dict[str, int] = {}
        self.last_error: str | None = None
        self.last_error_at: float | None = None

    @property
    def hostname(self) -> str | None:
        """Host name of the machine."""
        return None if self.facts is None else self.facts.host.hostname

    @property
    def devices(self) -> tuple[DeviceFacts, ...]:
        """The node's devices, in the order of their rows: those it reports, then those that are missing."""
        if self.facts is None:
            return ()
        if not self.missing:
            return self.facts.devices
        return (*self.facts.devices, *(device.facts for device in self.missing))

    @property
    def reported_count(self) -> int:
        """How many devices the node reports."""
        return self.count - len(self.missing)

    def missing_since(self, position: int) -> float | None:
        """Give since when a device has been missing, by wall clock; None if it is reported."""
        place = position - self.reported_count
        return None if place < 0 else self.missing[place].missing_since

    def row_of(self, uuid: str) -> int | None:
        """Give the row of a device; None if the node does not have it."""
        return next((row for row, device in enumerate(self.devices, self.start) if device.uuid == uuid), None)

    def advance(self, time: float) -> bool:
        """Whether a report of this time, by the node's clock, is newer than the last one.

        After a clock that was set back, the second report is.
        """
        before = self.sample_time if math.isinf(self.report_time) else self.report_time
        self.report_time = time
        return time > before

    def note_run(self, boot_id: str, seq: int) -> None:
        """Remember the highest number taken of a run, newest runs last, a bounded number of them."""
        self.runs.pop(boot_id, None)
        self.runs[boot_id] = seq
        while len(self.runs) > MAX_RUNS:
            del self.runs[next(iter(self.runs))]

    def note_dropped(self, boot_id: str, frames: int) -> int:
        """Count the dropped frames in a run's hello, and return how many of them are new.

        Every hello of a run gives the total so far.
        """
        new = max(0, frames - self._dropped_in_run.get(boot_id, 0))
        self.dropped_by_agent += new
        self._dropped_in_run[boot_id] = frames
        for run in self._dropped_in_run.keys() - self.runs.keys():
            del self._dropped_in_run[run]
        return new

    def refuse(self, error: Refused, wall: float) -> None:
        """Count something of this node that could not be taken."""
        self.refused[error.code] += 1
        self.last_error = str(error)
        self.last_error_at = wall

    def health(self) -> NodeHealth:
        """Tell how this node's frames fared."""
        return NodeHealth(
            node_id=self.id,
            accepted=self.counts["accepted"],
            backfilled=self.counts["backfilled"],
            duplicates=self.counts["duplicates"],
            missed=self.counts["missed"],
            dropped_by_agent=self.dropped_by_agent,
            unknown_frames=self.counts["unknown"],
            values_refused=self.counts["values_refused"],
            lost_samples=self.counts["lost"],
            refused=dict(self.refused),
            last_error=self.last_error,
            last_error_at=self.last_error_at,
        )


def _row_bytes(layout: Layout) -> tuple[int, int, int, int]:
    parts = (layout.host, layout.devices, layout.processes, layout.uses)
    host, devices, processes, uses = (len(names) * CELL_BYTES for names in parts)
    return host, devices, processes, uses


class LiveSink(Protocol):
    """Who takes what a run lets through: the fleet."""

    names: Names

    def take_live(self, run: Run, frame: SampleFrame, message: bytes) -> None:
        """Take a sample of right now."""

    def take_past(self, run: Run, frame: SampleFrame | None = None) -> None:
        """Take a frame that changes nothing live: its number is to be kept, and if it is a sample, that too."""

    def note(self, node_id: str, subject: str, problem: Problem | None) -> None:
        """Show a note of the hub on the node; None removes it."""

    def interval_changed(self, run: Run) -> None:
        """Use another interval from now on to judge whether the run's samples are overdue."""


class Run:
    """One run of numbered frames of one node, as opened by a hello.

    A frame that was taken before is ignored; one that refers to unknown facts or has the wrong shape is refused
    and the run goes on. Facts and table are kept per run and become the node's with its next live sample.
    """

    def __init__(self, node: Node, hello: Hello, sink: LiveSink, clock: Clock) -> None:
        self.node = node
        self.node_id = node.id
        self.boot_id = hello.boot_id
        self.hello = hello
        self.hello_message = encode(hello)
        self.interval_seconds = hello.interval_seconds
        """Time between samples, as they come now."""
        self.next_interval_seconds: float | None = None
        """The interval from the next live sample on."""
        self.slow_interval_seconds: float | None = None
        """Time between samples that a slow driver makes longer than the usual interval, as the last sample says."""
        self.received_seq = node.runs.get(hello.boot_id, -1)
        self.resume_after_seq = self.received_seq
        self.facts: NodeFacts | None = None
        self.facts_revision = -1
        self.facts_message: bytes | None = None
        self.table = ProcessTable()
        self.owners: tuple[str | None, ...] = ()
        self.table_revision = -1
        self.table_message: bytes | None = None
        self.scene: Scene | None = None
        """What the next sample's numbers are about, made when it is needed."""
        self.sample_age_seconds = 0.0
        """How old a sample may be when it comes, because it was not sent but fetched from somewhere."""
        self._sink = sink
        self._clock = clock
        self._host_bytes, self._device_bytes, self._process_bytes, self._use_bytes = _row_bytes(hello.layout)

    def accept(self, frame: FactsFrame | TableFrame | SampleFrame | UnknownFrame, message: bytes) -> None:
        """Take one frame; ``message`` is the bytes it came in. Raises ``Refused``; the run stays usable."""
        try:
            if isinstance(frame, SampleFrame):
                self._take_sample(frame, message)
            elif isinstance(frame, FactsFrame):
                self._take_facts(frame, message)
            elif isinstance(frame, TableFrame):
                self._take_table(frame, message)
            else:
                self.node.counts["unknown"] += 1
                if frame.seq is not None and self._is_new(frame.seq):
                    self._sink.take_past(self)
        except Refused as error:
            self.refuse(error)
            # Its number is used up all the same: sent again, it would be refused again, and hold up what follows.
            self._sink.take_past(self)
            raise
        except Exception as error:
            # A mistake of ours. It must not end the node's link again and again: the node would never be seen.
            refusal = Refused(
                "hub_error", "the hub could not process this because of an internal error; see its log"
            )
            if not self.node.refused[refusal.code]:
                log.exception("cannot process a report of node %s; skipping it", self.node_id)
            self.refuse(refusal)
            self._sink.take_past(self)
            raise refusal from error

    def refuse(self, error: Refused) -> None:
        """Count a frame that could not be taken, also one that did not even decode."""
        self.node.refuse(error, self._clock.wall())

    def expect_every(self, interval_seconds: float) -> None:
        """Expect samples at another interval, because the node was asked for it.

        A longer interval applies at once. A shorter one applies from the next sample on, which may still be far off.
        """
        if interval_seconds < self.interval_seconds:
            self.next_interval_seconds = interval_seconds
        else:
            self.interval_seconds, self.next_interval_seconds = interval_seconds, None
            self._sink.interval_changed(self)

    def _is_new(self, seq: int) -> bool:
        last = self.received_seq
        if seq <= last:
            self.node.counts["duplicates"] += 1
            return False
        if seq != last + 1 and last >= 0:
            self.node.counts["missed"] += seq - last - 1
        self.received_seq = seq
        self.node.runs[self.boot_id] = seq
        return True

    def _take_facts(self, frame: FactsFrame, message: bytes) -> None:
        is_new = self._is_new(frame.seq)
        if frame.revision != self.facts_revision:
            facts = clean_facts(frame.facts)
            self._count_devices(facts)
            if self.facts is None or [d.uuid for d in facts.devices] != [d.uuid for d in self.facts.devices]:
                self.table, self.table_revision, self.table_message = ProcessTable(), -1, None
                self.owners = ()
            self.facts, self.facts_revision, self.facts_message = facts, frame.revision, message
            self.scene = None
        if is_new:
            self._sink.take_past(self)

    def _count_devices(self, facts: NodeFacts) -> None:
        try:
            self.node.device_ids.take([device.uuid for device in facts.devices], self._clock.monotonic())
        except Refused as refusal:
            problem = Problem(code=refusal.code, message=str(refusal))
            self._sink.note(self.node_id, "devices", problem)
            raise
        self._sink.note(self.node_id, "devices", None)

    def _take_table(self, frame: TableFrame, message: bytes) -> None:
        is_new = self._is_new(frame.seq)
        if self.facts is None:
            raise Refused("unknown_facts", "a process table came before any facts; send the facts first")
        if frame.revision != self.table_revision:
            table = clean_table(frame.table, len(self.facts.devices))
            self.owners = tuple(process.user for process in table.processes)
            self.table = self._sink.names.table(table)
            self.table_revision, self.table_message = frame.revision, message
            self.scene = None
        if is_new:
            self._sink.take_past(self)

    def _take_sample(self, frame: SampleFrame, message: bytes) -> None:
        if not self._is_new(frame.seq):
            return
        self._check(frame)
        self.node.counts["accepted"] += 1
        if frame.seq < self.hello.live_from_seq:
            self.node.counts["backfilled"] += 1
            self._sink.take_past(self, frame)
        else:
            self._sink.take_live(self, frame, message)

    def _check(self, frame: SampleFrame) -> None:
        facts = self.facts
        if facts is None or frame.facts_revision != self.facts_revision:
            raise Refused(
                "unknown_facts",
                f"the sample refers to facts revision {frame.facts_revision}, "
                f"the last one sent is {self.facts_revision}; send the facts first",
            )
        if frame.table_revision != self.table_revision:
            raise Refused(
                "unknown_table",
                f"the sample refers to table revision {frame.table_revision}, "
                f"the last one sent is {self.table_revision}; send the table first",
            )
        table = self.table
        if (
            len(frame.host) != self._host_bytes
            or len(frame.devices) != len(facts.devices) * self._device_bytes
            or len(frame.processes) != len(table.processes) * self._process_bytes
            or len(frame.uses) != len(table.uses) * self._use_bytes
            or len(frame.disks) != len(facts.host.disks) * CELL_BYTES
        ):
            raise Refused(
                "matrix_misshapen",
                f"the sample's matrices do not fit {len(facts.devices)} devices, {len(table.processes)} processes, "
                f"{len(table.uses)} uses and {len(facts.host.disks)} disks of the announced layout",
            )
