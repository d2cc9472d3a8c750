"""A small herd made up at random: what its nodes show, in the order in which it reaches the hub."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from gpuherd.history.batch import DEVICE_METRICS, Batch, Floats
from gpuherd.history.usage.samples import Accounts, NodeSample, Scene
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import Process, ProcessTable, ProcessUse
from gpuherd.wire.matrix import LAYOUT, pack_numbers
from support.reckoner import Reckoner

__all__ = ["START", "Frame", "batch_of", "device_rows", "made_up_herd", "reckon", "scene", "table"]

START = 1_800_000_000.0 - 30.0
"""Half a minute before the bound of a slot."""
GIB = float(2**30)


@dataclass(frozen=True)
class Frame:
    """A sample, with the numbers of its devices."""

    sample: NodeSample
    rows: list[list[float]]
    memory: list[float]


def table(
    *uses: tuple[int, str | None, str | None, str | None, str],
) -> tuple[ProcessTable, tuple[str | None, ...]]:
    """Make a table and its owners: of each process its device, user, container, job, and kind of use."""
    processes = tuple(
        Process(pid=pid, user="shown", container=container, job=job, command=f"run {pid}")
        for pid, (_, _, container, job, _) in enumerate(uses, 1)
    )
    return (
        ProcessTable(
            processes=processes,
            uses=tuple(
                ProcessUse(process=place, device=device, kind="graphics" if kind == "graphics" else "compute")
                for place, (device, *_, kind) in enumerate(uses)
            ),
        ),
        tuple(user for _, user, *_ in uses),
    )


def scene(
    node_id: str, devices: Sequence[DeviceFacts], *uses: tuple[int, str | None, str | None, str | None, str]
) -> Scene:
    """Make what samples refer to."""
    made, owners = table(*uses)
    return Scene(node_id, tuple(devices), tuple(device.name for device in devices), made, owners)


def frame(
    of: Scene, time: float, rows: list[list[float]], memory: list[float], interval: float = 2.0
) -> Frame:
    """Make a sample."""
    uses = pack_numbers(
        [value if name == "gpu_memory_bytes" else None for value in memory for name in LAYOUT.uses]
    )
    return Frame(NodeSample(of, time, interval, uses), rows, memory)


def device_rows(frames: Sequence[Frame]) -> Floats:
    """Give the rows of all their devices."""
    rows = [row for each in frames for row in each.rows]
    return np.array(rows, np.float64).reshape(-1, len(DEVICE_METRICS))


def batch_of(frames: Sequence[Frame], accounts: Accounts) -> Batch:
    """Put together what goes to the journal."""
    seen: dict[str, float] = {}
    for each in frames:
        node_id = each.sample.scene.node_id
        seen[node_id] = max(each.sample.time, seen.get(node_id, -math.inf))
    return Batch(written_at=0.0, uses=accounts.uses, notes=accounts.notes, seen=tuple(seen.items()))


def reckon(frames: Sequence[Frame], restarts: Sequence[int] = ()) -> Reckoner:
    """Count in the plain way; ``restarts``: the hub is started anew before these frames."""
    reckoner = Reckoner()
    for place, each in enumerate(frames):
        if place in restarts:
            reckoner.restart()
        reckoner.take(each.sample, each.rows, each.memory)
    return reckoner


def device_row(
    utilization: float = math.nan,
    used: float = math.nan,
    power: float = math.nan,
    energy: float = math.nan,
) -> list[float]:
    """Give the numbers of a device."""
    told = {
        "utilization_gpu": utilization,
        "memory_used_bytes": used,
        "power_watts": power,
        "energy_joules": energy,
    }
    return [told.get(name, math.nan) for name in DEVICE_METRICS]


def made_up_herd(seed: int, *, samples: int = 40, with_late: bool = True) -> list[Frame]:
    """Make up what some nodes show: people come and go, numbers are missing, nodes fall silent, much comes late."""
    draw = Random(seed)  # noqa: S311
    streams = [_node(draw, f"n{number}", samples, with_late) for number in range(draw.randint(1, 3))]
    frames: list[Frame] = []
    while any(streams):
        stream = draw.choice([each for each in streams if each])
        frames.append(stream.pop(0))
    return frames


def _node(draw: Random, node_id: str, samples: int, with_late: bool) -> list[Frame]:
    devices = _devices(draw, node_id)
    interval = draw.choice([1.0, 2.0, 10.0, 600.0])
    time = START + draw.random() * 20
    now = _scene(draw, node_id, devices)
    energy = [1000.0 for _ in devices]
    silences = 8  # with what comes late, fewer holes than are remembered
    frames = []
    for _ in range(samples):
        if draw.random() < 0.25:
            now = _scene(draw, node_id, devices)
        rows = []
        for place, device in enumerate(devices):
            total = device.memory_total_bytes or 8 * 2**30
            energy[place] = 0.0 if draw.random() < 0.05 else energy[place] + draw.random() * 400 * interval
            rows.append(
                device_row(
                    draw.choice([math.nan, 0.0, 0.05, 0.5, draw.random()]),
                    draw.choice([math.nan, 0.0, 0.01 * total, 0.5 * total]),
                    draw.choice([math.nan, 300 * draw.random()]),
                    draw.choice([math.nan, energy[place]]),
                )
            )
        memory = [draw.choice([math.nan, 0.0, GIB, GIB * draw.random()]) for _ in now.table.uses]
        frames.append(frame(now, time, rows, memory, interval))
        is_silent = silences and draw.random() < 0.15
        silences -= is_silent
        time += interval * draw.choice(
            [3.5, 40.0, 400.0] if is_silent else [1.0, 1.0, 0.5 + draw.random(), 3.0]
        )
    if not with_late:
        return frames
    # Some stretches wait at the node, and come in their own order beside what is live by then.
    late: list[Frame] = []
    for _ in range(draw.randint(0, 3)):
        start = draw.randrange(len(frames))
        stretch = frames[start : start + draw.randint(1, 12)]
        del frames[start : start + len(stretch)]
        late += stretch
        if not frames:
            break
    for each in late:
        earliest = sum(live.sample.time < each.sample.time for live in frames)
        frames.insert(draw.randint(min(earliest, len(frames)), len(frames)), each)
    if draw.random() < 0.3 and frames:
        frames.insert(draw.randrange(len(frames)), draw.choice(frames))  # the same once more
    return frames


def _devices(draw: Random, node_id: str) -> tuple[DeviceFacts, ...]:
    memory = [None, 8 * 2**30, 80 * 2**30]
    devices = [
        DeviceFacts(
            uuid=f"{node_id}-{index}",
            index=index,
            name="X1",
            memory_total_bytes=draw.choice(memory),
            memory_basis=draw.choice(["framebuffer", "framebuffer", "host"]),
        )
        for index in range(draw.randint(1, 3))
    ]
    if draw.random() < 0.4:
        total = draw.choice(memory)
        devices.append(
            DeviceFacts(
                uuid=f"{node_id}-mig", index=9, name="X2", is_partitioned=True, memory_total_bytes=total
            )
        )
        devices += [
            DeviceFacts(
                uuid=f"{node_id}-mig-{index}",
                index=index,
                name="X2 slice",
                kind="slice",
                parent_uuid=f"{node_id}-mig",
                memory_total_bytes=draw.choice([None, (total or 2**33) // 4]),
            )
            for index in range(draw.randint(1, 3))
        ]
    return tuple(devices)


def _scene(draw: Random, node_id: str, devices: tuple[DeviceFacts, ...]) -> Scene:
    uses = [
        (
            draw.randrange(len(devices)),
            draw.choice(["ada", "ben", "eve", None]),
            draw.choice([None, None, "c1"]),
            draw.choice([None, "7"]),
            draw.choice(["compute", "compute", "compute", "graphics"]),
        )
        for _ in range(draw.randint(0, 5))
    ]
    return scene(node_id, devices, *uses)
