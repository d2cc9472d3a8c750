"""The herd as tables: one in the shape of an older tool's ``load_data.csv``, one with everything."""

from __future__ import annotations

import csv
import io

from gpuherd.api.past.tables import Cell, iso, safe_text, write_csv
from gpuherd.client.herd_views import Gpu, GpuBooking, GpuSample, Herd, Node, UsingProcess
from gpuherd.model.text import clean

__all__ = ["FULL_HEADER", "LOAD_HEADER", "full_table", "load_table"]

LOAD_HEADER = ("", "load", "load_mem", "gpu_idx", "gpu_name", "gpu_uuid", "hostname", "username")
ZOMBIE = "Zombie"
"""What the older tool calls the owner of a process that ``ps`` does not know."""
MAX_CELL = 4096
_JUDGED = ("free", "busy", "held", "booked")


def load_table(herd: Herd) -> bytes:
    """Write what the older tool wrote, for programs that read it: whole GPUs, percent, a user for each process.

    Who reads this shape takes anything but a load or a user for free. So a device of which that is not known to be
    true has no row: those of silent nodes, in fault, or taken by nobody knows whom.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(LOAD_HEADER)
    for node in herd.nodes:
        whole = [gpu for gpu in node.devices if gpu.facts.kind == "gpu"]
        for number, gpu in enumerate(whole):
            users = ", ".join(_owner(process) for process in _computing(node, gpu)) or _kept_for(gpu)
            load, load_memory = _percent(gpu.sample.utilization_gpu), _percent(gpu.sample.utilization_memory)
            can_be_told = load is not None or users or gpu.state in ("free", "booked")
            if gpu.state not in _JUDGED or not can_be_told:
                continue
            # As nvidia-smi parts its columns: with a blank that the older tool keeps.
            name, uuid = f" {_text(gpu.facts.name)}", f" {_text(gpu.uuid)}"
            places = name, uuid, _text(_listed_name(node))
            writer.writerow([number, load, load_memory, gpu.facts.index, *places, _text(users)])
    return text.getvalue().encode("utf-8", "replace")


def _listed_name(node: Node) -> str:
    """Give the name in the list alone: to a bare address we have put what the machine calls itself."""
    return node.id if node.name.endswith(f" ({node.id})") else node.name


def _computing(node: Node, gpu: Gpu) -> list[UsingProcess]:
    """Give the processes on a GPU and on its slices."""
    devices = [gpu, *(part for part in node.devices if part.facts.parent_uuid == gpu.uuid)]
    return [process for device in devices for process in device.processes if process.kind == "compute"]


def _owner(process: UsingProcess) -> str:
    return ZOMBIE if process.is_gone or process.user is None else process.user


def _kept_for(gpu: Gpu) -> str:
    """Give whose a booked device is: without a user, who reads this shape would take it for free."""
    if gpu.state != "booked":
        return ""
    return next((booking.holder for booking in gpu.bookings if booking.phase == "current"), "booked")


def _percent(ratio: float | None) -> int | None:
    return None if ratio is None else round(100 * ratio)


_NODE_COLUMNS = ("node_id", "node", "way", "node_state", "node_reason", "received_at")
_GPU_COLUMNS = (
    "place",
    "index",
    "uuid",
    "kind",
    "profile",
    "vendor",
    "name",
    "short_name",
    "state",
    "reason",
    "since",
    "users",
    "processes",
    "memory_total_bytes",
)
_BOOKING_COLUMNS = (
    "booked_by",
    "booked_from",
    "booked_until",
    "next_booked_by",
    "next_booked_from",
    "next_booked_until",
)
FULL_HEADER = ("time", *_NODE_COLUMNS, *_GPU_COLUMNS, *GpuSample.__struct_fields__, *_BOOKING_COLUMNS)


def full_table(herd: Herd) -> bytes:
    """Write everything, one row a device in base units; a node without devices has a row of its own.

    Unknown is an empty cell, never 0. A user whose name is not known is ``?``.
    """
    written = _moment(herd.time)
    rows: list[list[Cell]] = []
    for node in herd.nodes:
        received = _moment(node.received_at)
        start: list[Cell] = [written, node.id, node.name, node.way, node.state, node.reason, received]
        rows += [[*start, *_gpu_cells(node, gpu)] for gpu in node.devices]
        if not node.devices:
            rows.append([*start, *([None] * (len(FULL_HEADER) - len(start)))])
    return write_csv(FULL_HEADER, ([_visible(cell) for cell in row] for row in rows))


def _gpu_cells(node: Node, gpu: Gpu) -> list[Cell]:
    facts = gpu.facts
    current = next((booking for booking in gpu.bookings if booking.phase == "current"), None)
    coming = next((booking for booking in gpu.bookings if booking.phase == "next"), None)
    return [
        node.place(gpu),
        facts.index,
        gpu.uuid,
        facts.kind,
        facts.profile,
        facts.vendor,
        facts.name,
        gpu.short_name,
        _state(gpu),
        gpu.availability.reason,
        _moment(gpu.availability.since),
        " ".join("?" if user is None else user for user in gpu.users),
        sum(process.kind == "compute" for process in gpu.processes),
        facts.memory_total_bytes,
        *(getattr(gpu.sample, name) for name in GpuSample.__struct_fields__),
        *_booking_cells(current),
        *_booking_cells(coming),
    ]


def _state(gpu: Gpu) -> str:
    """Give a device's state; a GPU that is had through its slices is ``split``, or it would be counted twice."""
    is_had = gpu.state in ("free", "busy", "held", "booked")
    return "split" if gpu.facts.is_partitioned and is_had else gpu.state


def _booking_cells(booking: GpuBooking | None) -> list[Cell]:
    if booking is None:
        return [None, None, None]
    return [booking.holder, _moment(booking.starts_at), _moment(booking.ends_at)]


def _visible(cell: Cell) -> Cell:
    return clean(cell, MAX_CELL) if isinstance(cell, str) else cell


def _text(text: str) -> str:
    return safe_text(clean(text, MAX_CELL))


def _moment(at: float | None) -> str | None:
    """Write a moment; none for one that is not known, or that no calendar has."""
    try:
        return None if at is None else iso(at)
    except (OverflowError, ValueError, OSError):
        return None
