"""MIG slices put beside the GPUs that a cheap query has read."""

from __future__ import annotations

import msgspec

from gpuherd.collect.reading import GpuReading
from gpuherd.model.devices import DeviceFacts, DeviceSample

__all__ = ["with_slices"]


def with_slices(reading: GpuReading, log: GpuReading) -> GpuReading:
    """Give the GPUs of a reading with the slices, processes and CUDA version of the log.

    The log may be older than the reading: what it alone tells changes only with the layout and with the processes.
    """
    slices: dict[str | None, list[tuple[DeviceFacts, DeviceSample]]] = {}
    for facts, sample in zip(log.devices, log.samples, strict=True):
        if facts.kind == "slice":
            slices.setdefault(facts.parent_uuid, []).append((facts, sample))
    devices: list[DeviceFacts] = []
    samples: list[DeviceSample] = []
    for facts, sample in zip(reading.devices, reading.samples, strict=True):
        own = slices.get(facts.uuid, []) if facts.is_partitioned else []
        for device, seen in ((facts, sample), *own):
            devices.append(device)
            samples.append(seen)
    places = {facts.uuid: place for place, facts in enumerate(devices)}
    uses = tuple(
        msgspec.structs.replace(use, device=place)
        for use in log.uses
        if (place := places.get(log.devices[use.device].uuid)) is not None
    )
    told = {(problem.code, problem.device_uuid) for problem in reading.problems}
    more = (problem for problem in log.problems if (problem.code, problem.device_uuid) not in told)
    return msgspec.structs.replace(
        reading,
        devices=tuple(devices),
        samples=tuple(samples),
        uses=uses,
        problems=(*reading.problems, *more),
        cuda_version=log.cuda_version,
    )
