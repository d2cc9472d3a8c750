"""From frames to history: a few appends per frame here, all arithmetic once per write in the writer's thread.

A live sample waits for the tick after it, which tells what its devices are, and with it all that its run says
meanwhile; what is history is not judged and does not wait.

While nothing can be written, what was gathered waits up to a bound, which grows with the herd. At the bound nothing is
thrown away, but nothing more is gathered, of nodes that have more than their share of it, or of all nodes if none
has: they are shown live all the same. Agents still have what came then, because it was not acknowledged, and send it
again when there is room; what nodes without an agent say meanwhile is lost and counted.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Protocol

import numpy as np

from gpuherd.fleet.bounds import is_lie
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.names import Names
from gpuherd.fleet.node import Node, Run
from gpuherd.fleet.rows import Codes, Floats
from gpuherd.fleet.sample_times import HubClockDoubt, SampleTimes
from gpuherd.fleet.scene import Scene
from gpuherd.fleet.taken import Gathered, Greeting, Taken
from gpuherd.fleet.unsampled import Group, UnsampledDevices
from gpuherd.history.batch import NOT_JUDGED, Batch, FrameMark, Numbering, Samples, no_uses
from gpuherd.history.usage.samples import Accounts, NodeSample
from gpuherd.model.columns import COLUMNS
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wire.frames import SampleFrame

__all__ = ["Accountant", "Intake", "waiting_bound"]

log = logging.getLogger(__name__)

MAX_NUMBERED = 2**20
"""Devices and hosts that have a number at a time, those that are gone included."""
LEAST_BOUND_BYTES = 64 * 2**20
NODE_BOUND_BYTES = 192 * 2**10
"""Per node: 75 s of 8 GPUs at a sample a second. Agents before protocol 1.2 cannot be asked to send less, and all
they send has to be read: otherwise their pings wait behind it, and they conclude that the hub is dead."""
MEMORY_SHARE = 1 / 4
"""Share of the machine's memory that the bound never exceeds."""
NODE_SHARE = 1 / 8
"""One node's share of the bound; when the bound is reached, nothing more is gathered from nodes above their share."""
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


def waiting_bound(nodes: int) -> int:
    """Return how many bytes may wait to be written with this many nodes."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(LEAST_BOUND_BYTES, nodes * NODE_BOUND_BYTES), int(MEMORY_SHARE * memory_bytes))


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
        bound_bytes: Callable[[], int] = lambda: LEAST_BOUND_BYTES,
    ) -> None:
        """``oldest_seconds``: samples of this age or older are not kept. ``bound_bytes``: how much may wait."""
        self._clock = clock
        self._names = names
        self._accountant = accountant
        self._oldest_seconds = oldest_seconds
        self._bound_bytes_now = bound_bytes
        self._bound_bytes = bound_bytes()
        # Of the event loop.
        self.reading_delay_seconds = 0.0
        """How much later than usual samples are read; a delay of this size says nothing about a node's clock."""
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
        self.waiting_since = math.inf
        """Monotonic time at which the oldest of what waits arrived."""
        self.is_closed = False
        """Nothing more is gathered until ``reopen``."""
        self._closed_nodes: set[str] = set()
        """Nodes from which nothing is gathered until ``reopen``."""
        self._closed_bytes = 0
        """Waiting bytes of these nodes."""
        self.holds_of_closed = False
        """Whether anything waits from nodes that are no longer gathered from."""
        self._missed: dict[str, int] = {}
        self._unsampled = UnsampledDevices()
        # Of the writer's thread.
        self._times = SampleTimes()
        self._devices, self._hosts = Numbering(), Numbering()
        self.too_old_samples = 0
        self.uncounted_samples = 0

    # -- gathering, on the event loop ---------------------------------------------------------------------------

    def greet(self, run: Run, time: float, asked_at: float | None = None) -> None:
        """Take a node's time. ``asked_at``: monotonic time at which the hub sent what the hello answers."""
        if not self._is_closed_for(run):
            wall, monotonic = self._clock.wall(), self._clock.monotonic()
            self._hold(run, monotonic, has_frame=False)
            round_trip_seconds = math.inf if asked_at is None else max(monotonic - asked_at, 0.0)
            greeting = Greeting(run.node_id, time, wall, monotonic, round_trip_seconds)
            self._append(run, greeting, FRAME_BYTES, monotonic)

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

    def take_unsampled(self, groups: tuple[Group, ...]) -> None:
        """Take which devices are known and send no samples, by the last tick."""
        self._unsampled.take(groups, self._clock.wall())

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
        age_seconds = run.sample_age_seconds + self.reading_delay_seconds
        entry = Taken(run.scene, frame, received, monotonic, age_seconds, is_live, run.interval_seconds)
        self._append(run, entry, size_bytes, monotonic or self._clock.monotonic())

    def _scene_of(self, run: Run) -> Scene:
        if run.facts is None:
            raise AssertionError("a sample is accepted only after its facts")
        return Scene(
            run.node_id,
            run.boot_id,
            run.hello.layout,
            run.facts,
            run.table,
            run.owners,
            self._names,
        )

    def _append(self, run: Run, entry: Taken | Greeting, size_bytes: int, monotonic: float) -> None:
        node_id = run.node_id
        self.waiting_since = min(self.waiting_since, monotonic)
        if run in self._held:
            self._unjudged.append(entry)
            self._held_bytes[node_id] = self._held_bytes.get(node_id, 0) + size_bytes
        else:
            self._taken.append(entry)
        self._node_bytes[node_id] = self._node_bytes.get(node_id, 0) + size_bytes
        self.waiting_bytes += size_bytes
        if self.waiting_bytes - self._closed_bytes > self._bound_bytes:
            self._close()

    def _is_closed_for(self, run: Run) -> bool:
        return self.is_closed or run.node_id in self._closed_nodes

    def _close(self) -> None:
        """Keep what waits, and gather nothing more from nodes above their share, or from all."""
        self.release()  # so that no later number is marked
        self.holds_of_closed = True
        open_nodes = self._node_bytes.keys() - self._closed_nodes
        share = NODE_SHARE * self._bound_bytes
        greedy = {node_id for node_id in open_nodes if self._node_bytes[node_id] > share}
        if greedy and len(greedy) < len(open_nodes):
            self._closed_nodes |= greedy
            self._closed_bytes += sum(self._node_bytes[node_id] for node_id in greedy)
        else:
            self.is_closed = True

    def _miss(self, run: Run, samples: int) -> None:
        self._missed[run.node_id] = self._missed.get(run.node_id, 0) + samples

    @property
    def pause_seconds(self) -> float:
        """How long those who send history should wait: there must be room left for what is live."""
        share = 1.0 if self.is_closed else min(1.0, self.waiting_bytes / self._bound_bytes)
        return LONGEST_PAUSE_SECONDS * max(0.0, share - PAUSE_FROM_SHARE) / (1.0 - PAUSE_FROM_SHARE)

    @property
    def has_given_up(self) -> bool:
        """Whether there is anyone of whom nothing is gathered."""
        return self.is_closed or bool(self._closed_nodes)

    def reopen(self, most: int) -> dict[str, int]:
        """Gather again; from nodes that missed something, some at a time.

        Returns at most ``most`` such nodes, with the number of samples that each has missed.
        """
        if self.is_closed:
            self.is_closed = False
            self._closed_nodes |= self._missed.keys()
        self._closed_nodes &= self._missed.keys()
        reopened = dict(islice(self._missed.items(), most))
        for node_id in reopened:
            del self._missed[node_id]
            self._closed_nodes.discard(node_id)
        return reopened

    def gather(self) -> Gathered | None:
        """Give what came since the last call and need not wait for a tick any more; none if that is nothing."""
        if self._clock.monotonic() - self._held_since >= LONGEST_UNJUDGED_SECONDS:
            self.release()
        unsampled = self._unsampled.take_pieces()
        if not self._taken and not self._marks and not unsampled:
            return None
        gathered = Gathered(
            self._taken,
            [FrameMark(run.node_id, run.boot_id, seq) for run, seq in self._marks.items()],
            self._clock.wall(),
            unsampled,
        )
        self._taken, self._marks = [], {}
        self._node_bytes = dict(self._held_bytes)
        self.waiting_bytes = sum(self._held_bytes.values())
        self.waiting_since = self._held_since
        self._closed_bytes = 0
        self.holds_of_closed = False
        self._bound_bytes = self._bound_bytes_now()
        return gathered

    # -- working out, in the writer's thread ----------------------------------------------------------------------

    @property
    def hub_clock_doubt(self) -> HubClockDoubt | None:
        """Tell whether most nodes agree that the hub's own clock is wrong; from any thread."""
        return self._times.hub_clock_doubt

    def forget(self, node_id: str) -> None:
        """Forget the clock of a node that was removed."""
        self._times.forget(node_id)

    def batch(self, gathered: Gathered) -> Batch:
        """Make what is written from what came. Each gathered thing once, in order: use is counted here."""
        taken, times = self._timed(gathered)
        if not taken:
            return Batch(written_at=gathered.wall, marks=tuple(gathered.marks), unsampled=gathered.unsampled)
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
                    entry.interval_seconds,
                    entry.scene.uses(entry.frame.uses),
                )
                for entry, time in zip(taken, times, strict=True)
            ]
            try:
                accounts = self._accountant.take(samples, devices)
            except Exception:
                # A mistake of ours must not keep samples from being kept.
                log.exception("cannot count usage; samples are stored without it")
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
            unsampled=gathered.unsampled,
        )

    def _timed(self, gathered: Gathered) -> tuple[list[Taken], list[float]]:
        """Give the samples that are not too old, and when they were taken."""
        timed, oldest = self._times.of(gathered), gathered.wall - self._oldest_seconds
        young = [(entry, time) for entry, time in timed if time >= oldest]
        self.too_old_samples += len(timed) - len(young)
        return [entry for entry, _ in young], [time for _, time in young]


def _states_of(scene: Scene, node: Node, states: bytes) -> bytes:
    """Pick the states of a sample's devices; those that are gone by now have none."""
    if node.facts is scene.facts:
        return states[node.start : node.start + scene.device_count]
    # The node has described itself anew since: devices may have come, gone and changed places.
    reported = node.devices[: node.reported_count]
    rows = {device.uuid: row for row, device in enumerate(reported, node.start)}
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
