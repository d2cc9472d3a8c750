"""The probe: a process of its own in which the driver is called, because a driver may hang or crash its caller.

Started by the agent through ``probe_main.py``. It answers one question at a
time and ends when the channel closes or the agent dies. Kept thin: no event loop, no network.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from gpuherd.agent.exchange import (
    LENGTH,
    MAX_MESSAGE_BYTES,
    FromProbe,
    Orders,
    Read,
    Reading,
    Started,
    Trouble,
    prefixed,
)
from gpuherd.agent.keep import with_kept
from gpuherd.agent.marker import Marker
from gpuherd.agent.spec import CollectorSpec, NodeReader, resolve
from gpuherd.collect.reading import GpuCollector, GpuReading
from gpuherd.model.errors import GpuherdError, Misconfigured
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts
from gpuherd.wire.reports import sample_to_frame

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


class WatchedCollector:
    """A GPU collector that notes in the marker when it is at work and when it is not."""

    def __init__(self, spec: CollectorSpec, marker: Marker, skipped: frozenset[int]) -> None:
        self.name = spec.name
        self._note = marker.progress_of(spec.name)
        self._note_host = marker.progress_of("")
        self._collector: GpuCollector = _made(spec.target, progress=self._note, **spec.options)
        if skipped:
            self._collector.skip(skipped)

    def open(self) -> None:
        """Open the driver."""
        with self._at_work("open"):
            self._collector.open()

    def read(self) -> GpuReading:
        """Read all GPUs."""
        with self._at_work("read"):
            return self._collector.read()

    def skip(self, devices: frozenset[int]) -> None:
        """Leave these GPUs alone."""
        self._collector.skip(devices)

    def close(self) -> None:
        """Close the driver."""
        with self._at_work("close"):
            self._collector.close()

    @contextmanager
    def _at_work(self, call: str) -> Iterator[None]:
        self._note(-1, call)
        try:
            yield
        finally:
            self._note_host(-1, "host")


class Channel:
    """The probe's end of the socket pair; plain descriptors, as the socket module would cost a megabyte."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def receive(self) -> bytes | None:
        """Wait for one message; ``None`` when the parent has closed."""
        head = self._exactly(LENGTH.size)
        if head is None:
            return None
        (length,) = LENGTH.unpack(head)
        return self._exactly(min(length, MAX_MESSAGE_BYTES))

    def send(self, message: FromProbe) -> None:
        """Write one message."""
        rest = memoryview(prefixed(message))
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def _exactly(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            chunk = os.read(self._fd, count - len(data))
            if not chunk:
                return None
            data += chunk
        return data


class Session:
    """Answers with readings, sending facts and table only when they are not what was sent last."""

    def __init__(self, orders: Orders, marker: Marker) -> None:
        self._orders = orders
        self._problems = orders.problems
        self._note_host = marker.progress_of("")
        self._facts: NodeFacts | None = None
        self._table: ProcessTable | None = None
        skipped: dict[str, set[int]] = {}
        for skip in orders.skips:
            skipped.setdefault(skip.collector, set()).add(skip.device)
        collectors = [
            WatchedCollector(spec, marker, frozenset(skipped.get(spec.name, ())))
            for spec in orders.spec.collectors
        ]
        self._node: NodeReader = _made(orders.spec.node, collectors, **orders.spec.node_options)

    def read(self, request: Read) -> Reading | Trouble:
        """Make one reading."""
        if request.problems is not None:
            self._problems = request.problems
        self._note_host(-1, "host")
        report = self._node.read()
        self._note_host(-1, "idle")
        report = with_kept(report, self._orders.kept, self._orders.remembered, self._problems)
        if (mismatch := report.mismatch()) is not None:
            return Trouble(message=f"the report is inconsistent: {mismatch}")
        facts = None if report.facts == self._facts else report.facts
        table = None if report.table == self._table else report.table
        self._facts, self._table = report.facts, report.table
        sample = sample_to_frame(report.sample, seq=0, facts_revision=0, table_revision=0)
        return Reading(facts=facts, table=table, sample=sample)

    def close(self) -> None:
        """Close the node reader and with it the driver."""
        self._node.close()


def _made(target: str, *arguments: Any, **options: Any) -> Any:
    factory = resolve(target)
    try:
        return factory(*arguments, **options)
    except TypeError as error:
        raise Misconfigured(
            f"{target} cannot be created with the options {sorted(options)}: {error}"
        ) from error


def _die_with_parent(parent_pid: int) -> None:
    """Have the kernel end this process with its parent, even while it is stuck in a call."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(0)  # it died before the line above


def _serve(channel: Channel, marker: Marker) -> int:
    first = channel.receive()
    if first is None:
        return 0
    try:
        session = Session(msgspec.msgpack.decode(first, type=Orders), marker)
    except Misconfigured as error:
        channel.send(Trouble(message=str(error), is_final=True))
        return 1
    channel.send(Started())
    while (request := channel.receive()) is not None:
        answer: FromProbe
        try:
            answer = session.read(msgspec.msgpack.decode(request, type=Read))
        except GpuherdError as error:
            answer = Trouble(message=str(error))
        except Exception as error:  # noqa: BLE001 - a bug in a collector must reach the log, not end the probe
            answer = Trouble(message=f"{type(error).__name__}: {error}")
            sys.excepthook(type(error), error, error.__traceback__)
        channel.send(answer)
    session.close()
    return 0


def main(argv: Sequence[str]) -> int:
    """Serve until the channel closes; returns the exit code."""
    channel_fd, marker_fd, parent_pid = (int(argument) for argument in argv[1:4])
    _die_with_parent(parent_pid)
    for fd in (channel_fd, marker_fd):
        os.set_inheritable(fd, False)
    # Libraries that print must not end up in somebody's JSON: --once and --print own standard output.
    os.dup2(2, 1)
    try:
        return _serve(Channel(channel_fd), Marker(marker_fd))
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the agent no longer wants the answer
