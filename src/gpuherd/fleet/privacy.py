"""What people of each privacy class are shown of the herd: one face a class.

The public's face names every field that it shows: what is added to a struct later stays hidden until someone decides
otherwise. docs/privacy.md tells the same for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import structs

from gpuherd.fleet.availability import REASONS, Reason
from gpuherd.fleet.changes import DeviceBookings, DeviceStateColumns, HostStateColumns
from gpuherd.fleet.compose import NODE_REASONS
from gpuherd.fleet.programs import program_name
from gpuherd.fleet.pseudonyms import Pseudonyms
from gpuherd.fleet.views import (
    Availability,
    DeviceBookingView,
    DeviceInventory,
    DeviceView,
    FleetNotice,
    NodeInventory,
    NodeView,
    ProcessView,
)
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.people import PrivacyClass
from gpuherd.model.processes import Process
from gpuherd.model.reports import Problem

__all__ = ["AdminFace", "Face", "MemberFace", "NamesFace", "PublicFace"]


class Face(Protocol):
    """The herd as one privacy class sees it, out of all that is known. ``counts`` has none: it sees totals alone."""

    privacy: PrivacyClass

    def user(self, name: str | None) -> str | None:
        """Give what a user is called."""

    def notices(self, notices: tuple[FleetNotice, ...]) -> tuple[FleetNotice, ...]:
        """Give what is told about the whole herd."""

    def inventory(self, node: NodeInventory) -> NodeInventory:
        """Give a node of the stream."""

    def device_states(self, states: DeviceStateColumns) -> DeviceStateColumns:
        """Give the states of devices in the stream."""

    def host_states(self, states: HostStateColumns) -> HostStateColumns:
        """Give the states of nodes in the stream."""

    def bookings(self, booked: DeviceBookings) -> DeviceBookings:
        """Give the bookings of a device in the stream."""

    def node(self, view: NodeView) -> NodeView:
        """Give a node as nested objects."""


class AdminFace:
    """Everything as it is known."""

    privacy: PrivacyClass = "admin"

    def user(self, name: str | None) -> str | None:
        """Give the name."""
        return name

    def notices(self, notices: tuple[FleetNotice, ...]) -> tuple[FleetNotice, ...]:
        """Give all."""
        return notices

    def inventory(self, node: NodeInventory) -> NodeInventory:
        """Give all."""
        return node

    def device_states(self, states: DeviceStateColumns) -> DeviceStateColumns:
        """Give all, faults in the node's own words."""
        return states

    def host_states(self, states: HostStateColumns) -> HostStateColumns:
        """Give all, with what keeps the hub from hearing of a node."""
        return states

    def bookings(self, booked: DeviceBookings) -> DeviceBookings:
        """Give all."""
        return booked

    def node(self, view: NodeView) -> NodeView:
        """Give all."""
        return view


class MemberFace(AdminFace):
    """Everything but command lines: of these, the program's name."""

    privacy: PrivacyClass = "member"

    def inventory(self, node: NodeInventory) -> NodeInventory:
        """Give a node with programs instead of command lines."""
        processes = tuple(
            Process(
                pid=process.pid,
                started_at=process.started_at,
                user=process.user,
                command=_program(process.command),
                container=process.container,
                job=process.job,
                is_gone=process.is_gone,
            )
            for process in node.processes
        )
        return structs.replace(node, processes=processes)

    def node(self, view: NodeView) -> NodeView:
        """Give a node with programs instead of command lines."""
        devices = tuple(
            structs.replace(
                device,
                processes=tuple(
                    structs.replace(process, command=_program(process.command))
                    for process in device.processes
                ),
            )
            if device.processes
            else device
            for device in view.devices
        )
        return structs.replace(view, devices=devices)


def _program(command: str | None) -> str | None:
    return None if command is None else program_name(command)


class PublicFace:
    """Cards and how busy they are, users under pseudonyms; no texts in which a user might be named."""

    privacy: PrivacyClass = "public"

    def __init__(self, pseudonyms: Pseudonyms, persons: Mapping[str, str] | None = None) -> None:
        """``persons``: for holders of bookings, the user on the nodes that they are."""
        self.pseudonyms = pseudonyms
        self.persons = persons or {}

    def user(self, name: str | None) -> str | None:
        """Give the pseudonym; unknown stays unknown."""
        return None if name is None else self.pseudonyms.of(name)

    def notices(self, notices: tuple[FleetNotice, ...]) -> tuple[FleetNotice, ...]:
        """Give none: they name nodes, files, networks and weak passwords."""
        return ()

    def inventory(self, node: NodeInventory) -> NodeInventory:
        """Give a node without what its cards do not need."""
        return NodeInventory(
            row=node.row,
            id=node.id,
            name=node.name,
            way=node.way,
            place=node.place,
            host=_public_host(node.host, node.name),
            devices=tuple(
                DeviceInventory(
                    row=device.row,
                    short_name=device.short_name,
                    facts=_public_device(device.facts),
                    missing_since=device.missing_since,
                )
                for device in node.devices
            ),
            processes=tuple(
                Process(
                    pid=process.pid,
                    started_at=process.started_at,
                    user=self.user(process.user),
                    is_gone=process.is_gone,
                )
                for process in node.processes
            ),
            uses=node.uses,
            problems=_public_problems(node.problems, [device.facts for device in node.devices]),
            notes=(),
        )

    def device_states(self, states: DeviceStateColumns) -> DeviceStateColumns:
        """Give the states; a fault is a fault, without the node's words for it."""
        if all(reason in _PUBLIC_REASONS for reason in states.reason):
            return states
        return DeviceStateColumns(
            row=states.row,
            state=states.state,
            reason=[_public_reason(reason) for reason in states.reason],
            since=states.since,
        )

    def host_states(self, states: HostStateColumns) -> HostStateColumns:
        """Give whether nodes are heard of, and how often they should be."""
        unknown = [None] * len(states.row)
        return HostStateColumns(
            row=states.row,
            state=states.state,
            reason=[NODE_REASONS[state] for state in states.state],
            interval_seconds=states.interval_seconds,
            clock_skew_seconds=[*unknown],
            swap_used_bytes=[*unknown],
            uptime_seconds=[*unknown],
            disks_used_bytes=[[] for _ in states.row],
        )

    def bookings(self, booked: DeviceBookings) -> DeviceBookings:
        """Give when a device is booked, and under which name of its holder."""
        return DeviceBookings(row=booked.row, bookings=self._bookings(booked.bookings))

    def _holder(self, name: str) -> str:
        return self.pseudonyms.of(self.persons.get(name, name))

    def _bookings(self, bookings: tuple[DeviceBookingView, ...]) -> tuple[DeviceBookingView, ...]:
        return tuple(
            DeviceBookingView(
                id=booking.id,
                holder=self._holder(booking.holder),
                title=None,
                starts_at=booking.starts_at,
                ends_at=booking.ends_at,
                phase=booking.phase,
                use=booking.use,
            )
            for booking in bookings
        )

    def node(self, view: NodeView) -> NodeView:
        """Give a node without what its cards do not need."""
        return NodeView(
            id=view.id,
            name=view.name,
            way=view.way,
            state=view.state,
            reason=NODE_REASONS[view.state],
            received_at=view.received_at,
            age_seconds=view.age_seconds,
            interval_seconds=view.interval_seconds,
            clock_skew_seconds=None,
            host=_public_host(view.host, view.name),
            host_sample=HostSample(
                cpu_ratio=view.host_sample.cpu_ratio,
                load_1m=view.host_sample.load_1m,
                memory_used_bytes=view.host_sample.memory_used_bytes,
            ),
            disks_used_bytes=(),
            devices=tuple(self._device(device) for device in view.devices),
            problems=_public_problems(view.problems, [device.facts for device in view.devices]),
            notes=(),
        )

    def _device(self, device: DeviceView) -> DeviceView:
        return DeviceView(
            node_id=device.node_id,
            short_name=device.short_name,
            facts=_public_device(device.facts),
            sample=device.sample,
            availability=Availability(
                state=device.availability.state,
                reason=_public_reason(device.availability.reason),
                since=device.availability.since,
                not_checked=device.availability.not_checked,
            ),
            processes=tuple(self._process(process) for process in device.processes),
            bookings=self._bookings(device.bookings),
            missing_since=device.missing_since,
        )

    def _process(self, process: ProcessView) -> ProcessView:
        return ProcessView(
            pid=process.pid,
            kind=process.kind,
            user=self.user(process.user),
            command=None,
            started_at=process.started_at,
            container=None,
            job=None,
            is_gone=process.is_gone,
            gpu_memory_bytes=process.gpu_memory_bytes,
            utilization_sm=process.utilization_sm,
            cpu_cores=process.cpu_cores,
            memory_bytes=process.memory_bytes,
        )


class NamesFace(PublicFace):
    """What the public sees, with names instead of pseudonyms: no command, title, container or job."""

    privacy: PrivacyClass = "names"

    def user(self, name: str | None) -> str | None:
        """Give the name."""
        return name

    def _holder(self, name: str) -> str:
        return name


_PUBLIC_REASONS = frozenset(REASONS.values())
_PUBLIC_PROBLEMS = {
    "no_driver": "no driver",
    "no_gpu": "no GPU found",
    "driver_mismatch": "driver and library versions do not match",
    "driver_hung": "the driver does not respond",
    "driver_crashed": "the driver has crashed",
    "driver_failed": "the driver fails",
    "no_permission": "no permission to read the GPUs",
    "gpu_lost": "the GPU is lost",
    "gpus_missing": "GPUs are missing",
    "reset_required": "the GPU must be reset",
    "recovery_action": "the driver asks for a recovery action",
    "remap_pending": "the GPU must be reset",
    "remap_failed": "the GPU's memory is broken",
    "retirement_pending": "the GPU must be reset",
    "gpu_error": "the GPU has an error",
    "xid": "the driver has reported a GPU error",
    "metric_failed": "some metrics cannot be read",
    "processes_failed": "processes cannot be listed",
    "processes_hidden": "not all processes are visible",
    "host_failed": "some host metrics cannot be read",
    "too_many_devices": "not all devices are shown",
    "gpus_pending": "the GPUs are being opened",
}


def _public_reason(reason: str) -> str:
    return reason if reason in _PUBLIC_REASONS else REASONS[Reason.FAULT]


def _public_host(host: HostFacts | None, shown_name: str) -> HostFacts | None:
    if host is None:
        return None
    return HostFacts(
        hostname=shown_name, cpu_count=host.cpu_count, memory_total_bytes=host.memory_total_bytes
    )


def _public_device(facts: DeviceFacts) -> DeviceFacts:
    return DeviceFacts(
        uuid=facts.uuid,
        index=facts.index,
        name=facts.name,
        kind=facts.kind,
        vendor=facts.vendor,
        parent_uuid=facts.parent_uuid,
        is_partitioned=facts.is_partitioned,
        profile=facts.profile,
        memory_total_bytes=facts.memory_total_bytes,
        memory_basis=facts.memory_basis,
        compute_capability=facts.compute_capability,
        clock_sm_max_hertz=facts.clock_sm_max_hertz,
        power_limit_default_watts=facts.power_limit_default_watts,
    )


def _public_problems(problems: tuple[Problem, ...], devices: list[DeviceFacts]) -> tuple[Problem, ...]:
    """Say what kind of thing is wrong, in our words; codes that we do not know may be anything."""
    uuids = {device.uuid for device in devices}
    told = {}
    for problem in problems:
        code = problem.code if problem.code in _PUBLIC_PROBLEMS else "problem"
        uuid = problem.device_uuid if problem.device_uuid in uuids else None
        told[code, uuid, problem.is_fault] = Problem(
            code=code,
            message=_PUBLIC_PROBLEMS.get(code, "something is wrong"),
            device_uuid=uuid,
            is_fault=problem.is_fault,
            since=problem.since,
        )
    return tuple(told.values())
