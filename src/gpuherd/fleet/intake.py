"""From frames to history: a few appends per frame here, all arithmetic once per write in the writer's thread.

While nothing can be written, what was gathered waits up to a bound. Beyond it all of it is given up and nothing more is
gathered: agents still have it, because it was not acknowledged, and send it again when there is room.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gpuherd.fleet.bounds import is_lie
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.names import Names
from gpuherd.fleet.node import Run
from gpuherd.fleet.node_time import NodeTime
from gpuherd.fleet.rows import Floats
from gpuherd.fleet.scene import Scene
from gpuherd.history.batch import (
    DEVICE_METRICS,
    HOST_METRICS,
    NOT_JUDGED,
    Batch,
    FrameMark,
    Samples,
    SeriesKey,
    no_uses,
)
from gpuherd.history.usage.samples import Accounts, NodeSample
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wire.frames import SampleFrame

__all__ = ["Accountant", "Gathered", "Intake"]

MAX_WAITING_BYTES = 64 * 2**20
FRAME_BYTES = 600
"""What a gathered frame takes beside its matrices."""
TABLE_BLOWUP = 4
"""How much larger facts and tables are as objects than as messages."""
CLOCK_STEP_SECONDS = 1.0
"""The hub's wall clock has been set if it moved this much against the monotonic one."""

_UNSEEN = np.isin(np.arange(256), [DEVICE_STATES.index("stale"), DEVICE_STATES.index("offline")])
"""States that say that nothing was heard: a sample that was heard is not one of them, only not judged yet."""


class Accountant(Protocol):
    """Who counts use."""

    def take(self, samples: list[NodeSample], devices: Floats) -> Accounts:
        """Count samples; ``devices``: the rows of all their devices, in order."""


class _Taken(NamedTuple):
    """A frame as it was taken."""

    scene: Scene
    frame: SampleFrame
    received: float
    """Wall clock."""
    monotonic: float
    states: bytes | None
    """Of the devices as last judged; none of a sample that is history."""
    age_seconds: float


class _Greeting(NamedTuple):
    """A hello: what time it was on the node."""

    node_id: str
    time: float
    received: float
    monotonic: float


@dataclass
class Gathered:
    """What came between two writes."""

    taken: list[_Taken | _Greeting] = field(default_factory=list)
    marks: list[FrameMark] = field(default_factory=list)
    wall: float = 0.0
    monotonic: float = 0.0


class Intake:
    """Gathers on the event loop, works out in the writer's thread."""

    def __init__(
        self,
        *,
        clock: Clock,
        names: Names,
        accountant: Accountant | None,
        oldest_seconds: float,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        """``oldest_seconds``: the age from which on nothing is kept of a sample."""
        self._clock = clock
        self._names = names
        self._accountant = accountant
        self._oldest_seconds = oldest_seconds
        self._max_waiting_bytes = max_waiting_bytes
        # Of the event loop.
        self._taken: list[_Taken | _Greeting] = []
        self._runs: set[Run] = set()
        self.waiting_bytes = 0
        self.is_closed = False
        self._missed: dict[str, int] = {}
        # Of the writer's thread.
        self._times: dict[str, NodeTime] = {}
        self._clock_base: float | None = None
        self.too_old_samples = 0

    # -- gathering, on the event loop ---------------------------------------------------------------------------

    def greet(self, run: Run, time: float) -> None:
        """Hear what time it is on a node."""
        if not self.is_closed:
            greeting = _Greeting(run.node_id, time, self._clock.wall(), self._clock.monotonic())
            self._taken.append(greeting)
            self._count(FRAME_BYTES)

    def take_live(
        self, run: Run, frame: SampleFrame, received: float, monotonic: float, states: bytes
    ) -> None:
        """Take a sample of right now; ``states``: what its devices were last judged to be."""
        if self.is_closed:
            self._miss(run, 1)
            return
        self._runs.add(run)
        scene = run.scene or self._set_scene(run)
        self._taken.append(_Taken(scene, frame, received, monotonic, states, run.sample_age_seconds))
        self._count(
            len(frame.devices) + len(frame.uses) + len(frame.processes) + len(frame.host) + FRAME_BYTES
        )

    def take_past(self, run: Run, frame: SampleFrame | None) -> None:
        """Take a sample that is history, or only the number of a frame that is none."""
        if self.is_closed:
            self._miss(run, frame is not None)
            return
        self._runs.add(run)
        if frame is None:
            return
        scene = run.scene or self._set_scene(run)
        self._taken.append(_Taken(scene, frame, 0.0, 0.0, None, 0.0))
        self._count(
            len(frame.devices) + len(frame.uses) + len(frame.processes) + len(frame.host) + FRAME_BYTES
        )

    def _set_scene(self, run: Run) -> Scene:
        if run.facts is None:
            raise AssertionError("a sample is only taken after its facts")
        run.scene = Scene(
            run.node_id,
            run.boot_id,
            run.hello.interval_seconds,
            run.hello.layout,
            run.facts,
            run.table,
            run.owners,
            self._names,
        )
        self.waiting_bytes += TABLE_BLOWUP * (len(run.facts_message or b"") + len(run.table_message or b""))
        return run.scene

    def _count(self, size_bytes: int) -> None:
        self.waiting_bytes += size_bytes
        if self.waiting_bytes > self._max_waiting_bytes:
            self._close()

    def _close(self) -> None:
        self.is_closed = True
        for run in self._runs:
            self._miss(run, 0)
        for taken in self._taken:
            if isinstance(taken, _Taken):
                self._missed[taken.scene.node_id] = self._missed.get(taken.scene.node_id, 0) + 1
        self._taken, self._runs, self.waiting_bytes = [], set(), 0

    def _miss(self, run: Run, samples: int) -> None:
        self._missed[run.node_id] = self._missed.get(run.node_id, 0) + samples

    def reopen(self) -> dict[str, int]:
        """Gather again; gives the nodes of which frames were given up, and how many samples of each."""
        missed, self._missed = self._missed, {}
        self.is_closed = False
        return missed

    def gather(self) -> Gathered | None:
        """Give what came since the last call; none if that is nothing."""
        if not self._taken and not self._runs:
            return None
        gathered = Gathered(
            self._taken,
            [FrameMark(run.node_id, run.boot_id, run.received_seq) for run in self._runs],
            self._clock.wall(),
            self._clock.monotonic(),
        )
        self._taken, self._runs, self.waiting_bytes = [], set(), 0
        return gathered

    # -- working out, in the writer's thread ----------------------------------------------------------------------

    def forget(self, node_id: str) -> None:
        """Forget the clock of a node that was removed."""
        self._times.pop(node_id, None)

    def batch(self, gathered: Gathered) -> Batch:
        """Make what is written from what came. Each gathered thing once, in order: use is counted here."""
        taken, times = self._timed(gathered)
        if not taken:
            return Batch(written_at=gathered.wall, marks=tuple(gathered.marks))
        devices = _matrix(
            (entry.scene.devices(entry.frame.devices) for entry in taken), "devices", len(DEVICE_METRICS)
        )
        hosts = _matrix((entry.scene.host(entry.frame.host) for entry in taken), "host", len(HOST_METRICS))
        accounts = Accounts(no_uses(), b"")
        if self._accountant is not None:
            accounts = self._accountant.take(
                [
                    NodeSample(
                        entry.scene.account,
                        time,
                        entry.scene.interval_seconds,
                        entry.scene.uses(entry.frame.uses),
                    )
                    for entry, time in zip(taken, times, strict=True)
                ],
                devices,
            )
        moments = np.array(times)
        seen: dict[str, float] = {}
        for entry, time in zip(taken, times, strict=True):
            node_id = entry.scene.node_id
            seen[node_id] = max(time, seen.get(node_id, time))
        return Batch(
            written_at=gathered.wall,
            devices=_device_samples(taken, moments, devices),
            hosts=_host_samples(taken, moments, hosts),
            uses=accounts.uses,
            notes=accounts.notes,
            marks=tuple(gathered.marks),
            seen=tuple(seen.items()),
        )

    def _timed(self, gathered: Gathered) -> tuple[list[_Taken], list[float]]:
        """Give the samples that are not too old, and the times of them by the hub's clock."""
        taken: list[_Taken] = []
        times: list[float] = []
        oldest, nodes = gathered.wall - self._oldest_seconds, self._times
        for entry in gathered.taken:
            if isinstance(entry, _Greeting):
                self._look_at_hub_clock(entry.received - entry.monotonic)
                nodes.setdefault(entry.node_id, NodeTime()).greet(entry.time, entry.received)
                continue
            node = nodes.get(entry.scene.node_id)
            if node is None:
                node = nodes[entry.scene.node_id] = NodeTime()
            if entry.states is None:
                time = node.past(entry.frame.time, gathered.wall)
            else:
                self._look_at_hub_clock(entry.received - entry.monotonic)
                time = node.live(
                    entry.frame.time,
                    entry.received,
                    entry.monotonic,
                    entry.scene.interval_seconds,
                    entry.age_seconds,
                )
            if time < oldest:
                self.too_old_samples += 1
                continue
            taken.append(entry)
            times.append(time)
        return taken, times

    def _look_at_hub_clock(self, base: float) -> None:
        """See that the hub's wall clock was set: then it is apart from all nodes' clocks by that much more."""
        moved = 0.0 if self._clock_base is None else base - self._clock_base
        self._clock_base = base
        if abs(moved) > CLOCK_STEP_SECONDS:
            for node in self._times.values():
                node.hub_moved(moved)


def _matrix(parts: Iterable[bytes], kind: str, columns: int) -> Floats:
    values = np.frombuffer(b"".join(parts), dtype="<f8").astype(np.float64).reshape(-1, columns)
    lies = is_lie(values, kind)
    if lies.any():
        values[lies] = np.nan
    return values


def _device_samples(taken: list[_Taken], times: Floats, values: Floats) -> Samples:
    keys: dict[SeriesKey, int] = {}
    totals: dict[SeriesKey, float] = {}
    places: dict[Scene, list[int]] = {}
    for entry in taken:
        scene = entry.scene
        if scene not in places:
            places[scene] = [keys.setdefault(key, len(keys)) for key in scene.keys]
            totals.update(zip(scene.keys, scene.memory_total, strict=True))
    unjudged = bytes([NOT_JUDGED])
    state = np.frombuffer(
        b"".join(
            unjudged * len(entry.scene.keys) if entry.states is None else entry.states for entry in taken
        ),
        np.uint8,
    )
    return Samples(
        keys=tuple(keys),
        subject=np.fromiter(
            itertools.chain.from_iterable(places[entry.scene] for entry in taken), np.int32, len(values)
        ),
        time=np.repeat(times, [len(entry.scene.keys) for entry in taken]),
        values=values,
        state=np.where(_UNSEEN[state], NOT_JUDGED, state).astype(np.uint8),
        memory_total=np.array([totals[key] for key in keys], np.float64),
    )


def _host_samples(taken: list[_Taken], times: Floats, values: Floats) -> Samples:
    keys: dict[SeriesKey, int] = {}
    subject = [keys.setdefault(entry.scene.host_key, len(keys)) for entry in taken]
    return Samples(
        keys=tuple(keys),
        subject=np.array(subject, np.int32),
        time=times,
        values=values,
        state=np.full(len(values), NOT_JUDGED, np.uint8),
        memory_total=np.full(len(keys), np.nan),
    )
