"""From frames to history: a few appends per frame here, all arithmetic once per write in the writer's thread.

A live sample waits for the tick after it, which tells what its devices are, and with it all that its run says
meanwhile; what is history is not judged and does not wait.

While nothing can be written, what was gathered waits up to a bound. Beyond it, what nodes said that have more than
their share of it is given up, or all of it if none of them has; and nothing more of theirs is gathered: agents still
have it, because it was not acknowledged, and send it again when there is room.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from gpuherd.fleet.bounds import is_lie
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.names import Names
from gpuherd.fleet.node import Node, Run
from gpuherd.fleet.rows import Codes, Floats
from gpuherd.fleet.sample_times import SampleTimes
from gpuherd.fleet.scene import Scene
from gpuherd.fleet.taken import Gathered, Greeting, Taken
from gpuherd.history.batch import NOT_JUDGED, Batch, FrameMark, Numbering, Samples, no_uses
from gpuherd.history.usage.samples import Accounts, NodeSample
from gpuherd.model.columns import COLUMNS
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wire.frames import SampleFrame

__all__ = ["Accountant", "Intake"]

log = logging.getLogger(__name__)

MAX_NUMBERED = 2**20
"""Devices and hosts that have a number at a time, those that are gone included."""
MAX_WAITING_BYTES = 64 * 2**20
NODE_SHARE = 1 / 8
"""Of what may wait: so much is one node's own; who has more is the first to be given up."""
PAUSE_FROM_SHARE = 0.25
"""Of what may wait: from there on, history is read more slowly."""
LONGEST_PAUSE_SECONDS = 1.0
FRAME_BYTES = 600
"""What a gathered frame takes beside its matrices."""
TABLE_BLOWUP = 4
"""How much larger facts and tables are as objects than as messages."""
LONGEST_UNJUDGED_SECONDS = 1.5
"""A sample waits no longer than this for a tick, as its node waits for the acknowledgement; then it stays unjudged."""

_UNSEEN = np.isin(np.arange(256), [DEVICE_STATES.index("stale"), DEVICE_STATES.index("offline")])
"""States that say that nothing was heard: a sample that was heard is not one of them, only not judged."""


class Accountant(Protocol):
    """Who counts use."""

    def take(self, samples: list[NodeSample], devices: Floats) -> Accounts:
        """Count samples; ``devices``: the rows of all their devices, in order."""

    def reset(self) -> None:
        """Count on from what was last written down."""


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
        self._taken: list[Taken | Greeting] = []
        self._marks: dict[Run, int] = {}
        """The highest number of each run of which there is something new in what was taken."""
        self._unjudged: list[Taken | Greeting] = []
        self._held: dict[Run, bool] = {}
        """Runs whose words wait for the tick, lest they come out of order; false as long as that is only a hello."""
        self._held_since = math.inf
        self._held_bytes: dict[str, int] = {}
        """By node; of all that waits for the tick."""
        self._node_bytes: dict[str, int] = {}
        """By node; of all that waits."""
        self.waiting_bytes = 0
        self.is_closed = False
        """All of it was given up."""
        self._closed_nodes: set[str] = set()
        """Nodes of which nothing is gathered until it is reopened."""
        self._missed: dict[str, int] = {}
        # Of the writer's thread.
        self._times = SampleTimes()
        self._devices, self._hosts = Numbering(), Numbering()
        self.too_old_samples = 0
        self.uncounted_samples = 0

    # -- gathering, on the event loop ---------------------------------------------------------------------------

    def greet(self, run: Run, time: float) -> None:
        """Hear what time it is on a node."""
        if not self._is_closed_for(run):
            wall, monotonic = self._clock.wall(), self._clock.monotonic()
            self._hold(run, monotonic, has_frame=False)
            self._append(run, Greeting(run.node_id, time, wall, monotonic), FRAME_BYTES)

    def take_live(self, run: Run, frame: SampleFrame, received: float, monotonic: float) -> None:
        """Take a sample of right now, to be judged by the next tick."""
        if self._is_closed_for(run):
            self._miss(run, 1)
            return
        self._hold(run, monotonic, has_frame=True)
        self._take(run, frame, received, monotonic, is_live=True)

    def take_past(self, run: Run, frame: SampleFrame | None) -> None:
        """Take a sample that is history, or only the number of a frame that is none."""
        if self._is_closed_for(run):
            self._miss(run, frame is not None)
            return
        if run in self._held:
            self._held[run] = True
        else:
            self._marks[run] = run.received_seq
        if frame is not None:
            self._take(run, frame, 0.0, 0.0, is_live=False)

    def judge(self, nodes: Mapping[str, Node], states: Codes) -> None:
        """Give the samples that waited what the tick has found; ``states``: of all rows of devices."""
        if self._unjudged:
            content = states.tobytes()
            for entry in self._unjudged:
                if isinstance(entry, Taken) and entry.is_live:
                    node = nodes.get(entry.scene.node_id)
                    if node is not None:
                        entry.states = _states_of(entry.scene, node, content)
        self.release()

    def release(self) -> None:
        """Let go of all that waits for a tick: judged, or not to be."""
        self._taken += self._unjudged
        self._marks.update((run, run.received_seq) for run, has_frame in self._held.items() if has_frame)
        self._unjudged, self._held = [], {}
        self._held_since, self._held_bytes = math.inf, {}

    def _hold(self, run: Run, monotonic: float, *, has_frame: bool) -> None:
        if not self._held:
            self._held_since = monotonic
        self._held[run] = has_frame

    def _take(
        self, run: Run, frame: SampleFrame, received: float, monotonic: float, *, is_live: bool
    ) -> None:
        size_bytes = (
            len(frame.devices) + len(frame.uses) + len(frame.processes) + len(frame.host) + FRAME_BYTES
        )
        if run.scene is None:
            run.scene = self._scene_of(run)
            size_bytes += TABLE_BLOWUP * (len(run.facts_message or b"") + len(run.table_message or b""))
        entry = Taken(run.scene, frame, received, monotonic, run.sample_age_seconds, is_live)
        self._append(run, entry, size_bytes)

    def _scene_of(self, run: Run) -> Scene:
        if run.facts is None:
            raise AssertionError("a sample is only taken after its facts")
        return Scene(
            run.node_id,
            run.boot_id,
            run.hello.interval_seconds,
            run.hello.layout,
            run.facts,
            run.table,
            run.owners,
            self._names,
        )

    def _append(self, run: Run, entry: Taken | Greeting, size_bytes: int) -> None:
        node_id = run.node_id
        if run in self._held:
            self._unjudged.append(entry)
            self._held_bytes[node_id] = self._held_bytes.get(node_id, 0) + size_bytes
        else:
            self._taken.append(entry)
        self._node_bytes[node_id] = self._node_bytes.get(node_id, 0) + size_bytes
        self.waiting_bytes += size_bytes
        if self.waiting_bytes > self._max_waiting_bytes:
            share = NODE_SHARE * self._max_waiting_bytes
            greedy = {node_id for node_id, waiting in self._node_bytes.items() if waiting > share}
            if greedy and len(greedy) < len(self._node_bytes):
                self._give_up(greedy)
            else:
                self.is_closed = True
                self._give_up({*self._node_bytes, *(run.node_id for run in (*self._marks, *self._held))})

    def _is_closed_for(self, run: Run) -> bool:
        return self.is_closed or run.node_id in self._closed_nodes

    def _give_up(self, nodes: set[str]) -> None:
        """Forget what waits of some nodes, and take nothing more of theirs."""
        self._closed_nodes |= nodes
        for run in [run for run in (*self._marks, *self._held) if run.node_id in nodes]:
            self._miss(run, 0)
            self._marks.pop(run, None)
            self._held.pop(run, None)
        for entry in (*self._taken, *self._unjudged):
            if isinstance(entry, Taken) and entry.scene.node_id in nodes:
                self._missed[entry.scene.node_id] = self._missed.get(entry.scene.node_id, 0) + 1
        self._taken = [entry for entry in self._taken if _node_of(entry) not in nodes]
        self._unjudged = [entry for entry in self._unjudged if _node_of(entry) not in nodes]
        for node_id in nodes:
            self.waiting_bytes -= self._node_bytes.pop(node_id, 0)
            self._held_bytes.pop(node_id, None)

    def _miss(self, run: Run, samples: int) -> None:
        self._missed[run.node_id] = self._missed.get(run.node_id, 0) + samples

    @property
    def pause_seconds(self) -> float:
        """How long those who send history should wait: there must be room left for what is live."""
        share = 1.0 if self.is_closed else self.waiting_bytes / self._max_waiting_bytes
        return LONGEST_PAUSE_SECONDS * max(0.0, share - PAUSE_FROM_SHARE) / (1.0 - PAUSE_FROM_SHARE)

    @property
    def has_given_up(self) -> bool:
        """Whether there is anyone of whom nothing is gathered."""
        return self.is_closed or bool(self._closed_nodes)

    def reopen(self) -> dict[str, int]:
        """Gather again; gives the nodes of which frames were given up, and how many samples of each."""
        missed, self._missed = self._missed, {}
        self.is_closed = False
        self._closed_nodes = set()
        return missed

    def gather(self) -> Gathered | None:
        """Give what came since the last call and need not wait for a tick any more; none if that is nothing."""
        if self._clock.monotonic() - self._held_since >= LONGEST_UNJUDGED_SECONDS:
            self.release()
        if not self._taken and not self._marks:
            return None
        gathered = Gathered(
            self._taken,
            [FrameMark(run.node_id, run.boot_id, seq) for run, seq in self._marks.items()],
            self._clock.wall(),
        )
        self._taken, self._marks = [], {}
        self._node_bytes = dict(self._held_bytes)
        self.waiting_bytes = sum(self._held_bytes.values())
        return gathered

    # -- working out, in the writer's thread ----------------------------------------------------------------------

    def forget(self, node_id: str) -> None:
        """Forget the clock of a node that was removed."""
        self._times.forget(node_id)

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

    def _timed(self, gathered: Gathered) -> tuple[list[Taken], list[float]]:
        """Give the samples that are not too old, and when they were taken."""
        timed, oldest = self._times.of(gathered), gathered.wall - self._oldest_seconds
        young = [(entry, time) for entry, time in timed if time >= oldest]
        self.too_old_samples += len(timed) - len(young)
        return [entry for entry, _ in young], [time for _, time in young]


def _node_of(entry: Taken | Greeting) -> str:
    return entry.scene.node_id if isinstance(entry, Taken) else entry.node_id


def _states_of(scene: Scene, node: Node, states: bytes) -> bytes:
    """Pick the states of a sample's devices; those that are gone by now have none."""
    if node.facts is scene.facts:
        return states[node.start : node.start + node.count]
    # The node has described itself anew since: devices may have come, gone and changed places.
    rows = {device.uuid: row for row, device in enumerate(node.devices, node.start)}
    return bytes(
        states[rows[device.uuid]] if device.uuid in rows else NOT_JUDGED for device in scene.facts.devices
    )


def _matrix(parts: list[bytes], kind: str) -> Floats:
    """Give rows × columns, with what cannot be as unknown."""
    values = np.frombuffer(b"".join(parts), dtype="<f8").astype(np.float64).reshape(-1, len(COLUMNS[kind]))
    lies = is_lie(values, kind)
    if lies.any():
        values[lies] = np.nan
    return values


def _states(taken: list[Taken]) -> Codes:
    unjudged = bytes([NOT_JUDGED])
    states = np.frombuffer(
        b"".join([entry.states or unjudged * entry.scene.device_count for entry in taken]),
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
        share=numbering.share[chosen],
        numbering=numbering,
        numbers=chosen,
    )
