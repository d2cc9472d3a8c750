"""Who used the demo's herd before it began: stays on devices, day and night, weekdays and weekends."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from gpuherd.collect.scenario import Noise, SimulatedGpu, SimulatedProcess, Sum
from gpuherd.fleet.states import KeptState
from gpuherd.model.devices import DeviceState
from gpuherd.wiring.demo_herd import HELD, SERVING, TRAINING, DemoNode

__all__ = ["Stay", "demo_stays", "plain_number", "states_now"]

HOUR = 3600.0
DAY = 24 * HOUR
USERS = 17
SPENDTHRIFTS = frozenset({3, 11, 17})
"""Users who forget what they hold more often than others."""


class Stay(NamedTuple):
    """Someone on one device for a while."""

    device: int
    """Position in the node's GPUs."""
    user: str
    job: str | None
    command: str
    start: float
    end: float
    """Of one that goes on, the demo's beginning."""
    load: float
    """0 to 1; 0 is held without work."""
    memory_share: float
    goes_on: bool = False


def demo_stays(node: DemoNode, *, now: float, days: float) -> list[Stay]:
    """Draw what happened on a node until now, ending in what runs there now; sorted by device and time."""
    chance = random.Random(f"past of {node.name}")  # noqa: S311 - repeatable, not secret
    begins = now - days * DAY
    stays = []
    taken_from = [now] * len(node.scenario.gpus)
    for device, gpu in enumerate(node.scenario.gpus):
        for process in gpu.processes:
            stay = _current(device, gpu, process, now)
            taken_from[device] = min(taken_from[device], stay.start)
            stays.append(stay)
    for lane in _lanes(chance, [d for d, gpu in enumerate(node.scenario.gpus) if not gpu.mig_slices]):
        until = min(taken_from[device] for device in lane)
        for group in _past(chance, lane, begins, until - 60.0):
            stays += group
    return sorted(stays, key=lambda stay: (stay.device, stay.start))


def states_now(node: DemoNode, now: float, days: float) -> dict[str, KeptState]:
    """Give since when the node's whole GPUs have been what they are, by uuid; without a past, nothing."""
    if not days:
        return {}
    last: dict[int, Stay] = {}
    for stay in demo_stays(node, now=now, days=days):
        last[stay.device] = stay
    states = {}
    for device, gpu in enumerate(node.scenario.gpus):
        latest = last.get(device)
        if latest is None or gpu.mig_slices:
            continue
        state: DeviceState = "free"
        since, taken_at, active_at = latest.end, None, None
        if latest.goes_on:
            state = "busy" if latest.load > 0 else "held"
            since = taken_at = latest.start
            active_at = now if latest.load > 0 else None
        states[gpu.uuid] = KeptState(state, since, state, since, active_at, taken_at)
    return states


def _current(device: int, gpu: SimulatedGpu, process: SimulatedProcess, now: float) -> Stay:
    work = gpu.utilization_gpu_percent
    noise = work.parts[0] if isinstance(work, Sum) else None
    total = plain_number(gpu.memory_total_bytes)
    return Stay(
        device=device,
        user=process.user or "unknown",
        job=process.job,
        command=process.command or "python",
        start=now - float(process.age_seconds or 0),
        end=now,
        load=plain_number(noise.mean) / 100 if isinstance(noise, Noise) else 0.0,
        memory_share=plain_number(process.memory_used_bytes) / total if total else 0.3,
        goes_on=True,
    )


def plain_number(value: object, otherwise: float = 0.0) -> float:
    """Give what a scenario says as one number, or something else where it says nothing or what changes."""
    return float(value) if isinstance(value, int | float) else otherwise


def _lanes(chance: random.Random, devices: list[int]) -> Iterator[list[int]]:
    """Cut a node's devices into groups that are used together."""
    while devices:
        count = min(len(devices), chance.choice((1, 1, 1, 2, 4, 8)))
        yield devices[:count]
        devices = devices[count:]


def _past(chance: random.Random, lane: list[int], begins: float, until: float) -> Iterator[list[Stay]]:
    favourites = [chance.randint(1, USERS) for _ in range(3)]
    demand = chance.uniform(0.5, 1.6)
    time = begins + chance.uniform(0, 20) * HOUR
    while time < until:
        number = chance.choice(favourites) if chance.random() < 0.7 else chance.randint(1, USERS)
        kind = chance.random()
        forgets = 0.3 if number in SPENDTHRIFTS else 0.06
        if kind < forgets:
            load, hours, command = 0.0, chance.lognormvariate(2.4, 0.8), chance.choice(HELD)
        elif kind < 0.45:
            load, hours, command = (
                chance.uniform(0.08, 0.5),
                chance.lognormvariate(0.9, 0.7),
                chance.choice(HELD),
            )
        else:
            load = chance.uniform(0.6, 0.98)
            hours = chance.lognormvariate(2.2, 0.9)
            command = chance.choice(TRAINING if chance.random() < 0.85 else SERVING)
        end = min(until, time + max(0.15, hours) * HOUR)
        job = str(chance.randint(10_000, 39_999)) if len(lane) > 1 else None
        share = chance.uniform(0.15, 0.95)
        yield [Stay(device, f"user{number:02}", job, command, time, end, load, share) for device in lane]
        time = _next_start(chance, end, demand)


def _next_start(chance: random.Random, time: float, demand: float) -> float:
    """Give when the next one comes: sooner by day than by night, and later over a weekend."""
    moment = datetime.fromtimestamp(time, UTC)
    is_night = moment.hour >= 20 or moment.hour < 7
    wait = chance.expovariate(1.0) * (7.0 if is_night else 1.6)
    if moment.weekday() >= 5:
        wait *= 2.5
    return time + (0.05 + wait / demand) * HOUR
