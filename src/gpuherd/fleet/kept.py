"""What is kept of a node for the next start, and how it is played back."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import structs

from gpuherd.fleet.clock import Clock
from gpuherd.fleet.node import Node, Run
from gpuherd.fleet.rows import DeviceRows
from gpuherd.fleet.states import kept_states
from gpuherd.model.errors import Refused
from gpuherd.records.last_reports import LastReport
from gpuherd.wire.codec import UnknownFrame, agent_decoder
from gpuherd.wire.frames import Hello, PastFrames

__all__ = ["age_seconds", "last_report", "play_back"]

STATES_KEPT_EVERY_SECONDS = 30.0
CLOCK_STEP_SECONDS = 1.0
"""The wall clock may be set back by this much, as time services do, without raising doubts."""


def last_report(node: Node, rows: DeviceRows, clock: Clock) -> LastReport:
    """Give what is to be kept of a node; parts that have not changed are the same objects as last time."""
    now = clock.monotonic()
    if now - node.states_at >= STATES_KEPT_EVERY_SECONDS:
        node.states = msgspec.msgpack.encode(kept_states(node, rows, clock))
        node.states_at = now
    return LastReport(
        node_id=node.id,
        received_at=node.received_wall or 0.0,
        hello=node.hello_message,
        facts=node.facts_message,
        table=node.table_message,
        sample=node.sample_message,
        runs=dict(node.runs),
        states=node.states,
    )


def play_back(kept: LastReport, open_run: Callable[[Hello], Run]) -> None:
    """Let a node say again what was kept of it; ``Refused`` if that cannot be read."""
    decoder = agent_decoder()
    hello = decoder.decode(kept.hello)
    if not isinstance(hello, Hello):
        raise Refused("not_hello", "the kept hello is another frame")
    run = open_run(structs.replace(hello, live_from_seq=0))
    run.received_seq = -1
    for message in (kept.facts, kept.table, kept.sample):
        if message is None:
            continue
        frame = decoder.decode(message)
        if isinstance(frame, Hello | PastFrames | UnknownFrame):
            raise Refused("not_kept", "a kept frame is of another type")
        run.received_seq = frame.seq - 1
        run.accept(frame, message)


def age_seconds(kept: LastReport, clock: Clock, offline_after_seconds: float) -> float:
    """Say how old what was kept is now."""
    age = clock.wall() - kept.received_at
    if age < -CLOCK_STEP_SECONDS:
        # The clock was set back while we were away: nobody knows how old this is, so it is not called live.
        return offline_after_seconds + CLOCK_STEP_SECONDS
    return max(0.0, age)
