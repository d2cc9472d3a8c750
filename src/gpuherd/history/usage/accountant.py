"""From samples to use: whose the time between two samples of a node was. The rules are told in docs/usage.md."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats, SessionKey, no_uses
from gpuherd.history.usage.counting import COUNTED, COUNTED_COLUMNS, ENERGY, MEMORY_USED, own_memory
from gpuherd.history.usage.flush import Flush, joined, offsets
from gpuherd.history.usage.notes import restored_front, restored_holes, write_notes
from gpuherd.history.usage.samples import Accounts, NodeSample, Scene
from gpuherd.history.usage.seats import Place, Seats, seats_of
from gpuherd.history.usage.slots import SLOT_SECONDS
from gpuherd.history.usage.standing import NAMES_SECONDS, Ledger, kept_stays
from gpuherd.history.usage.timeline import MAX_FRONTS, NOBODY, Front, Shown, Timeline
from gpuherd.model.columns import COLUMNS

__all__ = ["GAP_INTERVALS", "MAX_OPENED", "Accountant"]

GAP_INTERVALS = 3.0
"""Time between two samples that are further apart is nobody's."""
MAX_OPENED = 2_000
"""Stays that a node may open in the time of one slot; what it shows beyond is put down to an unknown user.

By the hub's own clock, whenever the samples are of: a node could tell of any number of slots at once.
"""
RETIRE_SECONDS = 600.0

_USE_BYTES = 8 * len(COLUMNS["uses"])
_USE_MEMORY = next(i for i, column in enumerate(COLUMNS["uses"]) if column.name == "gpu_memory_bytes")
_MAX_MEMORY = COLUMNS["uses"][_USE_MEMORY].high
_ROW_BYTES = 8 * len(COUNTED)
_NAN = np.float64(np.nan).tobytes()


class Accountant:
    """Counts use, sample by sample. For one thread; the same samples in the same order give the same use."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        session_gap_seconds: float = 300.0,
        busy_utilization: float = 0.05,
        busy_memory: float = 0.02,
        names_seconds: float = NAMES_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._register = ledger.register
        self._gap = session_gap_seconds
        self._busy_utilization = busy_utilization
        self._busy_memory = busy_memory
        self._names_seconds = names_seconds
        self._monotonic = monotonic
        self._opened: dict[str, int] = {}
        """How many stays each node has opened since then."""
        self._opened_since = -math.inf
        self._timelines: dict[str, Timeline] = {}
        self._seats: dict[str, tuple[Scene, Seats]] = {}
        self._late_seats: dict[str, tuple[Scene, Seats]] = {}
        self._open: dict[tuple[str, Place], list[int]] = {}
        self._last: dict[int, float] = {}
        """When stays that are not on a front were last seen."""
        self._told: dict[int, str] = {}
        self._retired_at = -math.inf
        self.reset()

    def reset(self) -> None:
        """Forget what was counted and not kept, and go on from where the ledger stands."""
        self._timelines.clear()
        self._open.clear()
        self._last.clear()
        self._told.clear()
        self._given = self._ledger.taken
        standing = self._ledger.standing()
        number_of = self._register.number
        present: dict[str, list[SessionKey]] = {}
        for stay, last in kept_stays(standing, self._gap).items():
            number = number_of(stay)
            self._last[number] = last
            self._open.setdefault((stay.node_id, Place(stay.uuid, *stay[3:6])), []).append(number)
            if last == standing.seen.get(stay.node_id):
                present.setdefault(stay.node_id, []).append(stay)
        for numbers in self._open.values():
            numbers.sort(key=lambda number: self._register.key(number).opened_at)
        for node_id, seen in standing.seen.items():
            timeline = self._timelines[node_id] = Timeline(node_id)
            timeline.fronts = restored_holes(node_id, standing.holes.get(node_id, ()), number_of)
            timeline.fronts.append(restored_front(node_id, seen, present.get(node_id, ()), number_of))

    def take(self, samples: Sequence[NodeSample], devices: Floats) -> Accounts:
        """Count what samples add.

        ``devices``: the rows of all samples' devices, in their order, × DEVICE_METRICS.
        """
        if not samples:
            return Accounts(no_uses(), b"")
        newest = samples[0].time
        now = self._monotonic()
        if now - self._opened_since >= SLOT_SECONDS:
            self._opened_since = now
            self._opened.clear()
        # Not as long as something that goes by these numbers is still on its way to the ledger.
        if self._given == self._ledger.taken:
            if self._ledger.apply_erasures():
                self.reset()
            if not 0 <= newest - self._retired_at <= RETIRE_SECONDS:
                self._retired_at = newest
                self._retire(newest - self._names_seconds)
        flush = Flush()
        seats = [self._seats_of(sample.scene) for sample in samples]
        self._place_all(samples, seats, devices, flush)
        notes = write_notes(flush.noted.values(), self._register)
        uses = flush.uses(self._register, self._busy_utilization)
        self._given += len(uses) > 0
        return Accounts(uses, notes)

    def _seats_of(self, scene: Scene) -> Seats:
        kept = self._seats.get(scene.node_id)
        if kept is not None and kept[0] is scene:
            return kept[1]
        # What comes live and what comes late take turns, each with a scene of its own.
        late = self._late_seats.get(scene.node_id)
        if late is not None and late[0] is scene:
            return late[1]
        made = (scene, seats_of(scene))
        if kept is not None:
            self._late_seats[scene.node_id] = kept
        self._seats[scene.node_id] = made
        return made[1]

    # -- who was there -----------------------------------------------------------------------------------------

    def _place_all(
        self, samples: Sequence[NodeSample], seats: Sequence[Seats], devices: Floats, flush: Flush
    ) -> None:
        """Find for each sample the stretch of time before it, and who was there at both its ends."""
        values = np.ascontiguousarray(devices[:, COUNTED_COLUMNS])
        memory, taken, use_memory = self._occupancy(samples, seats, values)
        all_values, all_energy = values.tobytes(), np.ascontiguousarray(values[:, ENERGY]).tobytes()
        all_memory, all_taken = memory.tobytes(), taken.tobytes()
        seat, device, use = 0, 0, 0
        timelines = self._timelines
        for sample, its in zip(samples, seats, strict=True):
            next_seat, next_device = seat + len(its.places), device + len(its.uuids)
            now_taken = all_taken[seat:next_seat]
            time = sample.time
            timeline = timelines.get(its.node_id)
            if timeline is None:
                timeline = timelines[its.node_id] = Timeline(its.node_id)
            front = timeline.fronts[-1]
            longest = GAP_INTERVALS * sample.interval_seconds
            if time <= front.at:
                position = timeline.find(time)
                front = front if position is None else timeline.fronts[position]
                flush.noted[its.node_id] = timeline
            if (
                front.seats is its
                and front.taken == now_taken
                and 0 < time - front.at <= longest
                and front.end - time > longest
            ):
                # By far the most are like this: nobody came or went.
                flush.seats.append(its)
                flush.start.append(front.at)
                flush.end.append(time)
                flush.numbers.append(front.numbers)
                flush.counts.append(now_taken)
                flush.memory.append(all_memory[8 * seat : 8 * next_seat])
                flush.values.append(all_values[_ROW_BYTES * device : _ROW_BYTES * next_device])
                flush.energy_before.append(front.energy)
                front.at = time
                front.energy = all_energy[8 * device : 8 * next_device]
            else:
                shown = Shown(
                    its,
                    b"",
                    all_memory[8 * seat : 8 * next_seat],
                    all_values[_ROW_BYTES * device : _ROW_BYTES * next_device],
                )
                next_use = use + len(its.commands)
                self._place(timeline, sample, shown, now_taken, use_memory[use:next_use], flush)
            seat, device, use = next_seat, next_device, use + len(its.commands)

    def _occupancy(
        self, samples: Sequence[NodeSample], seats: Sequence[Seats], values: Floats
    ) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """Give each seat's memory, whether it is taken, and each use's memory."""
        device_counts = np.array([len(its.uuids) for its in seats])
        seat_counts = np.array([len(its.places) for its in seats])
        use_counts = np.array([len(its.commands) for its in seats])
        seat_device = joined([its.device for its in seats], np.int32) + offsets(device_counts, seat_counts)
        is_ghost = joined([its.is_ghost for its in seats], np.bool_)
        use_seat = joined([its.use_seat for its in seats], np.int32)
        uses = joined([sample.uses for sample in samples], np.dtype("<f8")).reshape(-1, _USE_BYTES // 8)
        use_memory = uses[:, _USE_MEMORY].astype(np.float64)
        with np.errstate(invalid="ignore"):
            use_memory[~((use_memory >= 0) & (use_memory <= _MAX_MEMORY))] = np.nan
        counts = use_seat >= 0
        seat = (use_seat + offsets(seat_counts, use_counts))[counts]
        memory = own_memory(use_memory[counts], seat, seat_device, is_ghost, values[:, MEMORY_USED])
        total = joined([its.memory_total for its in seats], np.float64)
        with np.errstate(invalid="ignore"):
            holds_memory = values[:, MEMORY_USED] / total > self._busy_memory
        return memory, ~is_ghost | holds_memory[seat_device], use_memory

    def _place(
        self,
        timeline: Timeline,
        sample: NodeSample,
        shown: Shown,
        taken: bytes,
        use_memory: Floats,
        flush: Flush,
    ) -> None:
        """Put a sample where it belongs; nowhere, if its time has been counted."""
        time = sample.time
        position = timeline.find(time)
        if position is None:
            return
        front = timeline.fronts[position]
        longest = GAP_INTERVALS * sample.interval_seconds
        is_gap = time - front.at > longest
        before = {} if is_gap else dict(front.present())
        numbers, counts = self._seat_stays(timeline, shown.seats, taken, time, before)
        shown = Shown(shown.seats, numbers, shown.memory, shown.values)
        self._note_commands(shown, use_memory, flush)
        if is_gap:
            hole, front = front, timeline.split(position, time)
            hole.after = shown
            while len(timeline.fronts) > MAX_FRONTS:
                forgotten = timeline.fronts.pop(0)
                self._leave(forgotten, [number for _, number in forgotten.present()])
            flush.add(shown, time, time, counts, _unknown(shown))
        else:
            seen = set(np.frombuffer(numbers, np.int64).tolist())
            self._leave(front, set(before.values()) - seen)
            flush.add(shown, front.at, time, counts, _energy_of(front, shown))
            front.at = time
        front.seats, front.numbers, front.taken = shown.seats, numbers, taken
        front.energy = np.frombuffer(shown.values).reshape(-1, len(COUNTED))[:, ENERGY].tobytes()
        if is_gap:
            flush.noted[timeline.node_id] = timeline
        if front.end - time <= longest:
            self._close(timeline, front, flush)

    def _close(self, timeline: Timeline, front: Front, flush: Flush) -> None:
        """Count what is left of a hole to whom the sample at its end shows."""
        timeline.fronts.remove(front)
        before = dict(front.present())
        self._leave(front, before.values())
        after = front.after
        if after is None:
            return
        numbers = np.frombuffer(after.numbers, np.int64).tolist()
        counts = bytes(
            number != NOBODY and place in before
            for place, number in zip(after.seats.places, numbers, strict=True)
        )
        flush.add(after, front.at, front.end, counts, _energy_of(front, after))

    def _leave(self, front: Front, numbers: Iterable[int]) -> None:
        """Remember when these stays were last seen, as they are not on a front any more."""
        for number in numbers:
            self._last[number] = max(front.at, self._last.get(number, -math.inf))

    def _seat_stays(
        self, timeline: Timeline, seats: Seats, taken: bytes, time: float, before: dict[Place, int]
    ) -> tuple[bytes, bytes]:
        """Give the stay on each seat, and whether it was there before."""
        numbers = [NOBODY] * len(taken)
        counts = bytearray(len(taken))
        beyond: dict[Place, int] = {}
        for seat, is_taken in enumerate(taken):
            if is_taken:
                place = seats.places[seat]
                number = before.get(place)
                if number is None:
                    number = self._join(timeline, seats, seat, time, beyond)
                else:
                    counts[seat] = True
                numbers[seat] = number
        return np.array(numbers, np.int64).tobytes(), bytes(counts)

    def _join(
        self, timeline: Timeline, seats: Seats, seat: int, time: float, beyond: dict[Place, int]
    ) -> int:
        """Find the stay that goes on at a place where nobody was in the sample before; open one if there is none.

        ``beyond``: those of the sample that stand for all whom there are too many of.
        """
        place = seats.places[seat]
        found = self._going_on(timeline, place, time)
        opened = self._opened.get(timeline.node_id, 0)
        if found is None and opened >= MAX_OPENED:
            place = Place(place.uuid, None, None, None)
            # Looked for once: a thousand made-up users in each of many samples would take the writer's time.
            if place not in beyond:
                found = self._going_on(timeline, place, time)
                beyond[place] = self._opened_stay(timeline, seats, place, time) if found is None else found
            return beyond[place]
        if found is not None:
            return found
        return self._opened_stay(timeline, seats, place, time)

    def _opened_stay(self, timeline: Timeline, seats: Seats, place: Place, time: float) -> int:
        self._opened[timeline.node_id] = self._opened.get(timeline.node_id, 0) + 1
        device = seats.uuids.index(place.uuid)
        key = SessionKey(timeline.node_id, place.uuid, seats.types[device], *place[1:], time)
        number = self._register.number(key)
        self._open.setdefault((timeline.node_id, place), []).append(number)
        self._last[number] = time
        return number

    def _going_on(self, timeline: Timeline, place: Place, time: float) -> int | None:
        for number in reversed(self._open.get((timeline.node_id, place), ())):
            on_front = timeline.last_seen(number)
            last = max(on_front, self._last[number])
            is_kept = on_front > -math.inf or timeline.newest - last <= self._gap
            if is_kept and self._register.key(number).opened_at <= time <= last + self._gap:
                return number
        return None

    def _note_commands(self, shown: Shown, use_memory: Floats, flush: Flush) -> None:
        """Tell the command line of each stay's largest process, if it is another than before."""
        seats = shown.seats
        memory = use_memory.tolist()
        for uses, number in zip(
            seats.processes, np.frombuffer(shown.numbers, np.int64).tolist(), strict=True
        ):
            if number != NOBODY and uses:
                largest = uses[0]
                for use in uses[1:]:
                    # Whatever is unknown is not larger.
                    if memory[use] > memory[largest] or memory[largest] != memory[largest]:
                        largest = use
                command = seats.commands[largest]
                if command is not None and self._told.get(number) != command:
                    self._told[number] = flush.commands[number] = command

    # -- bounds ------------------------------------------------------------------------------------------------

    def _retire(self, since: float) -> None:
        """Forget stays that are over, and take back the numbers of those that are also written away."""
        for timeline in self._timelines.values():
            for front in timeline.fronts:
                if front.at < since:
                    self._leave(front, [number for _, number in front.present()])
                front.forget(since)
        on_fronts = {
            number
            for timeline in self._timelines.values()
            for front in timeline.fronts
            for shown in (front.numbers, b"" if front.after is None else front.after.numbers)
            for number in np.frombuffer(shown, np.int64).tolist()
        }
        for (node_id, place), numbers in list(self._open.items()):
            newest = self._timelines[node_id].newest if node_id in self._timelines else math.inf
            kept = [n for n in numbers if n in on_fronts or newest - self._last[n] <= self._gap]
            for number in set(numbers) - set(kept):
                self._last.pop(number, None)
                self._told.pop(number, None)
            if kept:
                self._open[node_id, place] = kept
            else:
                del self._open[node_id, place]
        self._ledger.release(on_fronts.union(self._last))


def _unknown(shown: Shown) -> bytes:
    return _NAN * len(shown.seats.uuids)


def _energy_of(front: Front, shown: Shown) -> bytes:
    """Give the energy counters of a front in the order of another scene's devices."""
    if not front.energy or front.seats is None:
        return _unknown(shown)
    if front.seats.uuids == shown.seats.uuids:
        return front.energy
    energy = dict(zip(front.seats.uuids, np.frombuffer(front.energy).tolist(), strict=True))
    return np.array([energy.get(uuid, math.nan) for uuid in shown.seats.uuids]).tobytes()
