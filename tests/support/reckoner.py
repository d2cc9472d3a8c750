"""Use counted the slow and plain way: one sample after the other, nothing forgotten."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from gpuherd.history.batch import DEVICE_METRICS, USE_MEASURES, SessionKey
from gpuherd.history.usage.samples import NodeSample

__all__ = ["Reckoner", "Sums", "Who", "who_of"]

SLOT = 900
Who = tuple[str, str, str | None, str | None, str | None]
"""Node, device, user, container, job."""
Sums = dict[tuple[Who, int], list[float]]
"""Measures by whose and slot; energy that nobody told is NaN."""


@dataclass
class _Look:
    """One sample: who has how much on which device, and the devices' numbers."""

    time: float
    longest: float
    people: dict[Who, float]
    """Memory that is theirs; NaN if unknown."""
    numbers: dict[str, dict[str, float]]
    parent: dict[str, str]
    weight: dict[str, float]
    is_counted: bool = field(default=False)
    """The time before it has been counted."""


class Reckoner:
    """Takes samples one by one and adds up."""

    def __init__(self, *, gap: float = 300.0, busy: float = 0.05, memory: float = 0.02) -> None:
        self.sums: Sums = {}
        self.opened: dict[Who, list[tuple[float, float]]] = defaultdict(list)
        """Of samples that come in order: when stays began and were last seen."""
        self._gap = gap
        self._busy = busy
        self._memory = memory
        self._looks: dict[str, list[_Look]] = defaultdict(list)

    def restart(self) -> None:
        """Forget what a hub forgets that is started anew: the energy counters."""
        for looks in self._looks.values():
            for look in looks:
                for numbers in look.numbers.values():
                    numbers["energy_before_restart"] = math.nan

    def take(self, sample: NodeSample, rows: list[list[float]], memory: list[float]) -> None:
        """Take one sample; ``rows``: of each device; ``memory``: of each use."""
        looks = self._looks[sample.scene.node_id]
        look = self._look(sample, rows, memory)
        left = max(
            (each for each in looks if each.time <= look.time), key=lambda each: each.time, default=None
        )
        right = min(
            (each for each in looks if each.time > look.time), key=lambda each: each.time, default=None
        )
        if (left is not None and left.time == look.time) or (right is not None and right.is_counted):
            return
        looks.append(look)
        if left is not None and look.time - left.time <= look.longest:
            self._count(left, look)
        else:
            self._note(look, look.people.keys())
        if right is not None and right.time - look.time <= look.longest:
            self._count(look, right, is_late=True)
        was_there = left.people if left is not None and look.is_counted else {}
        for who in look.people:
            self._stay(who, look.time, was_there=who in was_there)

    def _look(self, sample: NodeSample, rows: list[list[float]], memory: list[float]) -> _Look:
        scene = sample.scene
        devices = {device.uuid: device for device in scene.devices}
        numbers = {
            d.uuid: dict(zip(DEVICE_METRICS, row, strict=True))
            for d, row in zip(scene.devices, rows, strict=True)
        }
        held: dict[Who, list[float]] = defaultdict(list)
        on_device: dict[str, list[float]] = defaultdict(list)
        for use, own in zip(scene.table.uses, memory, strict=True):
            device, process = scene.devices[use.device], scene.table.processes[use.process]
            if use.kind == "compute" and not device.is_partitioned:
                who = (scene.node_id, device.uuid, scene.owners[use.process], process.container, process.job)
                held[who].append(own)
                on_device[device.uuid].append(own)
        people = {}
        for who, parts in held.items():
            known = [part for part in on_device[who[1]] if not math.isnan(part)]
            mean = sum(known) / len(known) if known else math.nan
            people[who] = sum(mean if math.isnan(part) else part for part in parts)
        for device in scene.devices:
            used, total = numbers[device.uuid]["memory_used_bytes"], device.memory_total_bytes
            tells = total is not None and device.memory_basis != "host" and not device.is_partitioned
            if device.uuid not in on_device and tells and total and used / total > self._memory:
                people[scene.node_id, device.uuid, None, None, None] = used
        slices: dict[str, int] = defaultdict(int)
        for device in scene.devices:
            if device.parent_uuid is not None:
                slices[device.parent_uuid] += 1
        weight = {}
        for device in scene.devices:
            weight[device.uuid] = 1.0
            if device.parent_uuid is not None:
                whole = devices[device.parent_uuid].memory_total_bytes
                own_total = device.memory_total_bytes
                weight[device.uuid] = (
                    own_total / whole if own_total and whole else 1 / slices[device.parent_uuid]
                )
        parent = {device.uuid: device.parent_uuid or device.uuid for device in scene.devices}
        return _Look(sample.time, 3 * sample.interval_seconds, people, numbers, parent, weight)

    def _count(self, before: _Look, look: _Look, *, is_late: bool = False) -> None:
        look.is_counted = True
        there = [who for who in look.people if who in before.people]
        if not is_late:
            self._note(look, look.people.keys() - before.people.keys())
        for who in there:
            uuid = who[1]
            sharers = [other for other in there if other[1] == uuid]
            total = sum(look.people[other] for other in sharers)
            share = look.people[who] / total if total > 0 else 1 / len(sharers)
            utilization = look.numbers[uuid]["utilization_gpu"]
            used = look.numbers[uuid]["memory_used_bytes"]
            memory = look.people[who]
            if math.isnan(memory):
                memory = 0.0 if math.isnan(used) else used / len(sharers)
            start = before.time
            while start < look.time:
                slot = int(start // SLOT * SLOT)
                end = min(look.time, slot + SLOT)
                seconds, part = end - start, (end - start) / (look.time - before.time)
                held = seconds * share * look.weight[uuid]
                is_known = not math.isnan(utilization)
                self._add(
                    who,
                    slot,
                    [
                        seconds,
                        held,
                        held if is_known and utilization >= self._busy else 0.0,
                        0.0 if is_known else held,
                        held * utilization if is_known else 0.0,
                        memory * seconds,
                        self._energy(before, look, uuid) * share * part,
                    ],
                )
                start = end

    def _energy(self, before: _Look, look: _Look, uuid: str) -> float:
        seconds = look.time - before.time
        now, power = look.numbers[uuid]["energy_joules"], look.numbers[uuid]["power_watts"]
        then = before.numbers.get(uuid, {}).get("energy_joules", math.nan)
        if "energy_before_restart" in before.numbers.get(uuid, {}):
            then = math.nan
        taken = now - then if 0 < now - then <= 3000 * seconds else power * seconds
        if math.isnan(taken) and look.parent[uuid] != uuid:
            return self._energy(before, look, look.parent[uuid]) * look.weight[uuid]
        return taken

    def _note(self, look: _Look, people: object) -> None:
        for who in look.people:
            if who in people:  # type: ignore[operator]
                self._add(who, int(look.time // SLOT * SLOT), [0.0] * (len(USE_MEASURES) - 1) + [math.nan])

    def _add(self, who: Who, slot: int, measures: list[float]) -> None:
        sums = self.sums.setdefault((who, slot), [0.0] * (len(USE_MEASURES) - 1) + [math.nan])
        for place, value in enumerate(measures):
            if math.isnan(sums[place]):
                sums[place] = value
            elif not math.isnan(value):
                sums[place] += value

    def _stay(self, who: Who, time: float, *, was_there: bool) -> None:
        stays = self.opened[who]
        if stays and (was_there or 0 <= time - stays[-1][1] <= self._gap):
            stays[-1] = (stays[-1][0], time)
        else:
            stays.append((time, time))


def who_of(key: SessionKey) -> Who:
    """Give whose a stay is, without when."""
    return (key.node_id, key.uuid, key.user, key.container, key.job)
