"""The herd at a glance as the hub tells it: columns, of which nodes and GPUs are made."""

from __future__ import annotations

from msgspec import Struct

from gpuherd.client.herd_views import (
    Availability,
    Gpu,
    GpuBooking,
    GpuFacts,
    GpuSample,
    Herd,
    HostFacts,
    Node,
    Notice,
    Problem,
    UsingProcess,
)
from gpuherd.model.devices import in_order

__all__ = ["Glance"]

MIB = 2**20
Numbers = list[float | None]


class _Model(Struct, frozen=True, kw_only=True):
    short_name: str = ""
    name: str = ""
    vendor: str = "nvidia"
    kind: str = "gpu"
    is_partitioned: bool = False
    profile: str | None = None
    memory_total_bytes: int | None = None
    memory_basis: str = "framebuffer"


class _Nodes(Struct, frozen=True, kw_only=True):
    id: list[str]
    name: list[str]
    hostname: list[str | None]
    state: list[str]
    reason: list[str]
    age_seconds: Numbers
    device_count: list[int]


class _Devices(Struct, frozen=True, kw_only=True):
    uuid: list[str]
    model: list[int]
    index: list[int]
    parent_uuid: list[str | None]
    state: list[str]
    reason: list[str]
    since: Numbers
    utilization_gpu: Numbers
    memory_used_mebibytes: Numbers
    temperature_celsius: Numbers
    power_watts: Numbers


class _Processes(Struct, frozen=True, kw_only=True):
    device: list[int]
    pid: list[int]
    user: list[str | None]
    started_at: Numbers
    gpu_memory_mebibytes: Numbers


class _Bookings(Struct, frozen=True, kw_only=True):
    device: int
    bookings: tuple[GpuBooking, ...] = ()


class _NodeProblem(Struct, frozen=True, kw_only=True):
    node: int
    problem: Problem


class Glance(Struct, frozen=True, kw_only=True):
    """The answer to ``GET /fleet/glance``."""

    time: float
    notices: tuple[Notice, ...] = ()
    models: list[_Model]
    nodes: _Nodes
    devices: _Devices
    processes: _Processes
    bookings: list[_Bookings] = []
    problems: list[_NodeProblem] = []

    def herd(self) -> Herd:
        """Make nodes and GPUs of it; ``ValueError`` or ``OverflowError`` if it cannot be so."""
        self._check_places()
        gpus, nodes = self._gpus(), self.nodes
        problems: dict[int, list[Problem]] = {}
        for told in self.problems:
            problems.setdefault(told.node, []).append(told.problem)
        made, first = [], 0
        for place, (node_id, name, hostname, state, reason, age, count) in enumerate(
            zip(
                nodes.id,
                nodes.name,
                nodes.hostname,
                nodes.state,
                nodes.reason,
                nodes.age_seconds,
                nodes.device_count,
                strict=True,
            )
        ):
            own = gpus[first : first + count]
            made.append(
                Node(
                    id=node_id,
                    name=name,
                    state=state,
                    reason=reason,
                    age_seconds=age,
                    host=None if hostname is None else HostFacts(hostname=hostname),
                    devices=tuple(own[position] for position in in_order([gpu.facts for gpu in own])),
                    problems=tuple(problems.get(place, ())),
                )
            )
            first += count
        return Herd(time=self.time, notices=self.notices, nodes=tuple(made))

    def _check_places(self) -> None:
        gpus = len(self.devices.uuid)
        for places, count in (
            (self.devices.model, len(self.models)),
            (self.processes.device, gpus),
            ([told.device for told in self.bookings], gpus),
            ([told.node for told in self.problems], len(self.nodes.id)),
        ):
            if places and (min(places) < 0 or max(places) >= count):
                raise ValueError("a position where there is nothing")

    def _gpus(self) -> list[Gpu]:
        devices, models = self.devices, self.models
        processes, bookings = self._processes(), self._bookings()
        counts = self.nodes.device_count
        if min(counts, default=0) < 0 or sum(counts) != len(devices.uuid):
            raise ValueError("devices without a node")
        owners = [node_id for node_id, count in zip(self.nodes.id, counts, strict=True) for _ in range(count)]
        made = []
        for place, (
            owner,
            uuid,
            number,
            index,
            parent,
            state,
            reason,
            since,
            load,
            memory,
            temperature,
            power,
        ) in enumerate(
            zip(
                owners,
                devices.uuid,
                devices.model,
                devices.index,
                devices.parent_uuid,
                devices.state,
                devices.reason,
                devices.since,
                devices.utilization_gpu,
                _bytes(devices.memory_used_mebibytes),
                devices.temperature_celsius,
                devices.power_watts,
                strict=True,
            )
        ):
            model = models[number]
            made.append(
                Gpu(
                    node_id=owner,
                    short_name=model.short_name,
                    facts=GpuFacts(
                        uuid=uuid,
                        index=index,
                        name=model.name,
                        kind=model.kind,
                        vendor=model.vendor,
                        parent_uuid=parent,
                        is_partitioned=model.is_partitioned,
                        profile=model.profile,
                        memory_total_bytes=model.memory_total_bytes,
                        memory_basis=model.memory_basis,
                    ),
                    sample=GpuSample(
                        utilization_gpu=load,
                        memory_used_bytes=memory,
                        temperature_celsius=temperature,
                        power_watts=power,
                    ),
                    availability=Availability(state=state, reason=reason, since=since),
                    processes=processes.get(place, ()),
                    bookings=bookings.get(place, ()),
                )
            )
        return made

    def _processes(self) -> dict[int, tuple[UsingProcess, ...]]:
        told = self.processes
        found: dict[int, list[UsingProcess]] = {}
        for device, pid, user, started_at, memory in zip(
            told.device,
            told.pid,
            told.user,
            told.started_at,
            _bytes(told.gpu_memory_mebibytes),
            strict=True,
        ):
            one = UsingProcess(pid=pid, user=user, started_at=started_at, gpu_memory_bytes=memory)
            found.setdefault(device, []).append(one)
        return {device: tuple(processes) for device, processes in found.items()}

    def _bookings(self) -> dict[int, tuple[GpuBooking, ...]]:
        return {told.device: told.bookings for told in self.bookings}


def _bytes(mebibytes: Numbers) -> list[int | None]:
    return [None if number is None else int(number * MIB) for number in mebibytes]
