"""The frames themselves: readable names, one tag each, every string and list capped."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Problem
from gpuherd.model.text import Identifier, Label, Sentence
from gpuherd.model.units import Seconds, Timestamp

__all__ = [
    "PACE_MINOR",
    "PAST_MINOR",
    "PROTOCOL_MINOR",
    "SUBPROTOCOL",
    "Ack",
    "FactsFrame",
    "FromAgent",
    "FromHub",
    "Hello",
    "Layout",
    "Notice",
    "Pace",
    "PastFrames",
    "SampleFrame",
    "TableFrame",
    "Welcome",
]

SUBPROTOCOL = "gpuherd.v1"
"""The major version, agreed in the WebSocket handshake: another major version is another subprotocol."""
PROTOCOL_MINOR = 3
"""Counts additions that an older peer may ignore: new frame types, new fields, new columns. Where absent, it is 0.

1: ``past`` frames, and ``boot_id`` in acks. 2: ``pace`` frames.
3: in facts ``boot_id``, ``serial``, ``gpu_instance``, ``health_checks``; in problems ``xid`` and ``columns``;
in samples ``interval_seconds``.
"""
PACE_MINOR = 2
"""Agents of this minor version or later obey ``pace`` frames."""
PAST_MINOR = 1
"""A hub of this minor version or later takes ``past`` frames."""

Seq = Annotated[int, Meta(ge=0, le=2**62)]
Revision = Annotated[int, Meta(ge=0, le=2**62)]
Matrix = Annotated[bytes, Meta(max_length=524_288)]
"""Rows of little-endian float64 in the order of the layout's columns; NaN is unknown."""
ColumnNames = Annotated[tuple[Label, ...], Meta(max_length=128)]


class Layout(Struct, frozen=True, kw_only=True):
    """Which columns the sender's matrices have; the receiver takes those it knows and ignores the rest."""

    host: ColumnNames
    devices: ColumnNames
    processes: ColumnNames
    uses: ColumnNames


class Hello(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="hello", tag_field="type"):
    """Opens a run of numbered frames. Sent first, and again when the agent turns to another run's frames.

    ``boot_id`` names the agent's run that numbered the frames: (node, boot_id, seq) names a frame for ever.
    Frames numbered below ``live_from_seq`` waited in the spool: they are history and never shown as live.
    """

    boot_id: Identifier
    layout: Layout
    time: Timestamp
    interval_seconds: Annotated[float, Meta(gt=0, le=3600)]
    live_from_seq: Seq = 0
    dropped_frames: Annotated[int, Meta(ge=0, le=2**62)] = 0
    protocol_minor: Annotated[int, Meta(ge=0, le=2**31)] = 0
    agent_version: Label | None = None


class FactsFrame(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="facts", tag_field="type"):
    """What the node is; sent before the first sample and on change."""

    seq: Seq
    revision: Revision
    facts: NodeFacts


class TableFrame(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="table", tag_field="type"):
    """Which processes use which devices of facts ``facts_revision``; sent on change."""

    seq: Seq
    revision: Revision
    facts_revision: Revision
    table: ProcessTable


class SampleFrame(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="sample", tag_field="type"):
    """What the node does now, as matrices whose rows are those of the named facts and table revisions."""

    seq: Seq
    time: Timestamp
    facts_revision: Revision
    table_revision: Revision
    host: Matrix
    devices: Matrix = b""
    processes: Matrix = b""
    uses: Matrix = b""
    disks: Matrix = b""
    problems: Annotated[tuple[Problem, ...], Meta(max_length=1024)] = ()
    interval_seconds: Annotated[float, Meta(gt=0, le=3600)] | None = None
    """Time between samples now, where a slow driver makes it longer than the hello's."""


class PastFrames(Struct, frozen=True, kw_only=True, tag="past", tag_field="type"):
    """Frames of an older run, beside the current one: whole messages, a hello before the run's first.

    Whatever they say, they are history.
    """

    frames: Annotated[tuple[bytes, ...], Meta(min_length=1, max_length=1024)]


class Welcome(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="welcome", tag_field="type"):
    """The hub's answer to hello: who the node is to it, and what it already has of this run.

    Up to ``resume_after_seq`` all is safely kept. Up to ``received_seq`` the hub has it, but not yet safely: it need
    not come again as long as this hub lives, and must not be forgotten.
    """

    node_id: Identifier
    resume_after_seq: Annotated[int, Meta(ge=-1, le=2**62)] = -1
    received_seq: Annotated[int, Meta(ge=-1, le=2**62)] = -1
    interval_seconds: Seconds | None = None
    protocol_minor: Annotated[int, Meta(ge=0, le=2**31)] = 0


class Ack(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="ack", tag_field="type"):
    """Every frame of a run up to ``seq`` is safely kept; the agent may forget them.

    ``boot_id`` names the run if it came in ``past`` frames; without it the current one is meant.
    """

    seq: Seq
    boot_id: Identifier | None = None


class Notice(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="notice", tag_field="type"):
    """Something was wrong with a frame. ``is_final``: the hub closes the link and the remedy is the node's."""

    code: Label
    message: Sentence
    seq: Seq | None = None
    is_final: bool = False


class Pace(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="pace", tag_field="type"):
    """The hub is overloaded: take samples at most every ``interval_seconds``; None: at the usual interval again.

    Valid until the next such frame, or until the connection ends.
    """

    interval_seconds: Annotated[float, Meta(gt=0, le=3600)] | None = None


FromAgent = Hello | FactsFrame | TableFrame | SampleFrame | PastFrames
FromHub = Welcome | Ack | Notice | Pace
