"""From frames to history: a few appends per frame here, all arithmetic once per write in the writer's thread.

While nothing can be written, what was gathered waits up to a bound. Beyond it all of it is given up and nothing more is
gathered: agents still have it, because it was not acknowledged, and send it again when there is room.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gpuherd.fleet.bounds import is_lie
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.names import Names
from gpuherd.fleet.node import Run
from gpuherd.fleet.node_time import TOLERANCE_SECONDS, NodeTime
from gpuherd.fleet.rows import Codes, Floats
from gpuherd.fleet.scene import Scene
from gpuherd.history.batch import NOT_JUDGED, Batch, FrameMark, Numbering, Samples, no_uses
from gpuherd.history.usage.samples import Accounts, NodeSample
from gpuherd.model.columns import COLUMNS
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wire.frames import SampleFrame

__all__ = ["Accountant", "Gathered", "Intake"]

log = logging.getLogger(__name__)

MAX_NUMBERED = 2**20
"""Devices and hosts that have a number at a time, those that are gone included."""
MAX_WAITING_BYTES = 64 * 2**20
PAUSE_FROM_SHARE = 0.25
"""Of what may wait: from there on, history is read more slowly."""
LONGEST_PAUSE_SECONDS = 1.0
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

    def reset(self) -> None:
        """Count on from what was last written down."""


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
        self._wrong_clocks: dict[str, NodeTime] = {}
        self._heard: set[str] = set()
        self._clock_base = math.inf
        self._devices, self._hosts = Numbering(), Numbering()
        self.too_old_samples = 0
        self.uncounted_samples = 0

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

    @property
    def pause_seconds(self) -> float:
        """How long those who send history should wait: there must be room left for what is live."""
        share = 1.0 if self.is_closed else self.waiting_bytes / self._max_waiting_bytes
        return LONGEST_PAUSE_SECONDS * max(0.0, share - PAUSE_FROM_SHARE) / (1.0 - PAUSE_FROM_SHARE)

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
        self._wrong_clocks.pop(node_id, None)
        self._heard.discard(node_id)

    def batch(self, gathered: Gathered) -> Batch:
        """Make what is written from what came. Each gathered thing once, in order: use is counted here."""
        taken, times = self._timed(gathered)
        if not taken:
            return Batch(written_at=gathered.wall, marks=tuple(gathered.marks))
        if len(self._devices) + len(self._hosts) > MAX_NUMBERED:
            self._devices, self._hosts = Numbering(), Numbering()
        numbers = [entry.scene.numbers(self._devices, self._hosts) for entry in taken]
        moments = np.array(times)
        seen: dict[str, float] = {}
        devices = _matrix([entry.scene.devices(entry.frame.devices) for entry in taken], "devices")
        hosts = _matrix([entry.scene.host(entry.frame.host) for entry in taken], "host")
        accounts = Accounts(no_uses(), b"")
        if self._accountant is not None:
            samples = [
                NodeSample(
                    entry.scene.account,
                    time,
                    entry.scene.interval_seconds,
                    entry.scene.uses(entry.frame.uses),
                )
                for entry, time in zip(taken, times, strict=True)
            ]
            try:
                accounts = self._accountant.take(samples, devices)
            except Exception:
                # A mistake of ours must not keep samples from being kept.
                log.exception("use could not be counted; samples are kept without it")
                self.uncounted_samples += len(samples)
                self._accountant.reset()
        for entry, time in zip(taken, times, strict=True):
            if time > seen.get(entry.scene.node_id, -math.inf):
                seen[entry.scene.node_id] = time
        self._heard.update(seen)
        return Batch(
            written_at=gathered.wall,
            devices=_samples(
                self._devices,
                b"".join([devices for devices, _ in numbers]),
                np.repeat(moments, [entry.scene.device_count for entry in taken]),
                devices,
                _states(taken),
            ),
            hosts=_samples(
                self._hosts,
                b"".join([host for _, host in numbers]),
                moments,
                hosts,
                np.full(len(hosts), NOT_JUDGED, np.uint8),
            ),
            uses=accounts.uses,
            notes=accounts.notes,
            marks=tuple(gathered.marks),
            seen=tuple(seen.items()),
        )

    def _timed(self, gathered: Gathered) -> tuple[list[_Taken], list[float]]:
        """Give the samples that are not too old, and their times by the hub's clock.

        Most nodes' clocks are right: only those that are not, or are in doubt, are looked at more closely.
        """
        taken: list[_Taken] = []
        times: list[float] = []
        oldest, wrong = gathered.wall - self._oldest_seconds, self._wrong_clocks
        for entry in gathered.taken:
            if isinstance(entry, _Greeting):
                self._look_at_hub_clock(entry.received - entry.monotonic, taken)
                self._heard.add(entry.node_id)
                if entry.node_id in wrong or abs(entry.received - entry.time) > TOLERANCE_SECONDS:
                    node = wrong.setdefault(entry.node_id, NodeTime())
                    node.greet(entry.time, entry.received)
                    self._put_right(entry.node_id, node)
                continue
            scene, frame, received, monotonic, states, _ = entry
            time, latest, is_off = frame.time, gathered.wall, False
            if states is not None:
                latest = received
                if not -CLOCK_STEP_SECONDS <= received - monotonic - self._clock_base <= CLOCK_STEP_SECONDS:
                    self._look_at_hub_clock(received - monotonic, taken)
                is_off = not -TOLERANCE_SECONDS <= received - time <= TOLERANCE_SECONDS
            if is_off or scene.node_id in wrong:
                time = self._corrected(entry, gathered.wall)
            elif time > latest:
                time = latest
            scene.last_time = frame.time
            if time < oldest:
                self.too_old_samples += 1
            else:
                taken.append(entry)
                times.append(time)
        return taken, times

    def _corrected(self, entry: _Taken, now: float) -> float:
        scene, frame, received, monotonic, states, age_seconds = entry
        node = self._wrong_clocks.get(scene.node_id)
        if node is None:
            node = self._wrong_clocks[scene.node_id] = NodeTime(scene.last_time)
        if states is None:
            return node.past(frame.time, now)
        time = node.live(frame.time, received, monotonic, scene.interval_seconds, age_seconds)
        self._put_right(scene.node_id, node)
        return time

    def _put_right(self, node_id: str, node: NodeTime) -> None:
        if node.is_right:
            del self._wrong_clocks[node_id]

    def _look_at_hub_clock(self, base: float, taken: list[_Taken]) -> None:
        """See that the hub's wall clock was set: then it is apart from all nodes' clocks by that much more.

        ``taken``: what came before in this batch.
        """
        moved = base - self._clock_base
        if -CLOCK_STEP_SECONDS <= moved <= CLOCK_STEP_SECONDS:
            return
        is_first, self._clock_base = math.isinf(self._clock_base), base
        if is_first:
            return
        self._heard.update(entry.scene.node_id for entry in taken)
        for node_id in self._heard:
            node = self._wrong_clocks.setdefault(node_id, NodeTime())
            node.hub_moved(moved)
            self._put_right(node_id, node)


def _matrix(parts: list[bytes], kind: str) -> Floats:
    """Give rows × columns, with what cannot be as unknown."""
    values = np.frombuffer(b"".join(parts), dtype="<f8").astype(np.float64).reshape(-1, len(COLUMNS[kind]))
    lies = is_lie(values, kind)
    if lies.any():
        values[lies] = np.nan
    return values


def _states(taken: list[_Taken]) -> Codes:
    unjudged = bytes([NOT_JUDGED])
    states = np.frombuffer(
        b"".join(
            [unjudged * entry.scene.device_count if entry.states is None else entry.states for entry in taken]
        ),
        np.uint8,
    )
    return np.where(_UNSEEN[states], NOT_JUDGED, states).astype(np.uint8)


def _samples(numbering: Numbering, content: bytes, times: Floats, values: Floats, states: Codes) -> Samples:
    """Put rows together; ``content``: of each row, the number of its subject."""
    numbers = np.frombuffer(content, np.int64)
    is_there = np.zeros(len(numbering), np.bool_)
    is_there[numbers] = True
    chosen = np.flatnonzero(is_there)
    places = np.cumsum(is_there, dtype=np.int32) - 1
    return Samples(
        keys=tuple(map(numbering.keys.__getitem__, chosen.tolist())),
        subject=places[numbers].astype(np.int32),
        time=times,
        values=values,
        state=states,
        memory_total=numbering.memory_total[chosen],
        numbering=numbering,
        numbers=chosen,
    )
