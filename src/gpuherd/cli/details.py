"""One node or one GPU in all its details, as lines of text. Pure; it asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpuherd.cli.herd_lines import gpu_rows, user_name
from gpuherd.cli.showing import (
    UNKNOWN,
    Cell,
    Screen,
    ago,
    bytes_text,
    percent_text,
    share_text,
)
from gpuherd.cli.times import shown_span
from gpuherd.client.states import state_word
from gpuherd.model.hosts import cpu_level
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Gpu, GpuBooking, HostFacts, Node, Problem, UsingProcess

__all__ = ["gpu_lines", "node_lines"]

_BAR_CELLS = 20
_SLOWED = {
    "power cap": 4,
    "hardware slowdown": 8,
    "sync boost": 16,
    "too hot (software)": 32,
    "too hot (hardware)": 64,
    "power brake": 128,
    "other": 512,
}
_USES = {
    "holder": "in use by its holder",
    "others": "in use by someone else",
    "shared": "in use by its holder and others",
    "unused": "not in use",
}


def node_lines(node: Node, now: float, screen: Screen) -> list[str]:
    """Show a node: what it is, how it fares, its GPUs, and every process on them."""
    is_live = _is_live(node)
    host, sample = node.host, node.host_sample
    state = "busy" if node.state == "live" else node.state
    age = f", {ago(node.age_seconds)} ago" if node.age_seconds is not None else ""
    head = (
        f"{screen.paint(clean(node.name, 60), 'strong')}  "
        f"{screen.paint(f'{clean(node.state, 20)}{age}', 'dim' if state == 'busy' else state)}"
        + (f"  {clean(node.reason, 200)}" if node.state != "live" else "")
    )
    lines = [screen.cut(head)]
    facts: list[tuple[str, str]] = [("id", node.id), ("connection", node.way)]
    if host is not None:
        cuda = f", CUDA {host.cuda_version}" if host.cuda_version else ""
        facts += [
            ("driver", f"{host.driver_version or UNKNOWN}{cuda}"),
            ("system", ", ".join(filter(None, (host.os, host.kernel)))),
            ("agent", host.agent_version or ""),
        ]
    if is_live:
        if sample.uptime_seconds is not None:
            facts.append(("up for", ago(sample.uptime_seconds)))
        if node.clock_skew_seconds is not None and abs(node.clock_skew_seconds) > 2:
            facts.append(("clock", f"{node.clock_skew_seconds:+.0f} s off the hub's"))
    elif host is not None:
        facts += _sizes(host)
    lines += _facts(facts, screen)
    if is_live:
        lines += screen.lay_out(_meters(node, screen), indent=2)
    lines += _problems((*node.problems, *node.notes), now, screen)
    if node.devices:
        shown = node if is_live else _without_figures(node)
        lines += ["", *screen.lay_out(gpu_rows(shown, now, screen), indent=2, drop=(6, 5, 2, 4))]
    processes = [
        (node.place(gpu).removeprefix(f"{node.name}/"), process)
        for gpu in node.devices
        for process in gpu.processes
    ]
    return [*lines, *_processes(processes, node, now, screen, is_live=is_live)]


def _is_live(node: Node) -> bool:
    """Tell whether what a node told last is what it does now."""
    return node.state in ("live", "")


def _without_figures(node: Node) -> Node:
    from msgspec import structs

    from gpuherd.client.herd_views import GpuSample

    return structs.replace(
        node, devices=tuple(structs.replace(gpu, sample=GpuSample()) for gpu in node.devices)
    )


def _sizes(host: HostFacts) -> list[tuple[str, str]]:
    """Tell what does not change while a node is silent."""
    sizes = [
        ("CPU", None if host.cpu_count is None else f"{host.cpu_count} cores"),
        ("memory", None if host.memory_total_bytes is None else bytes_text(host.memory_total_bytes)),
        *(
            (clean(disk.mount, 30), None if disk.total_bytes is None else bytes_text(disk.total_bytes))
            for disk in host.disks
        ),
    ]
    return [(name, size) for name, size in sizes if size is not None]


def _meters(node: Node, screen: Screen) -> list[list[Cell]]:
    host, sample = node.host, node.host_sample
    if host is None:
        return []
    cores = f"{host.cpu_count} cores" if host.cpu_count is not None else ""
    load = "" if sample.load_1m is None else f"load {sample.load_1m:.1f}"
    cpu = cpu_level(sample.cpu_ratio, sample.load_1m, host.cpu_count)
    meters = [
        ("CPU", cpu, percent_text(cpu), ", ".join(filter(None, (cores, load)))),
        (
            "memory",
            _share(sample.memory_used_bytes, host.memory_total_bytes),
            share_text(sample.memory_used_bytes, host.memory_total_bytes),
            "",
        ),
    ]
    for place, disk in enumerate(host.disks):
        used = node.disks_used_bytes[place] if place < len(node.disks_used_bytes) else None
        meters.append((disk.mount, _share(used, disk.total_bytes), share_text(used, disk.total_bytes), ""))
    return [
        [
            Cell(clean(name, 30), "dim"),
            Cell(figure, is_right=True),
            screen.bar_cell(share, "busy", _BAR_CELLS),
            Cell(more, "dim"),
        ]
        for name, share, figure, more in meters
    ]


def gpu_lines(node: Node, gpu: Gpu, now: float, screen: Screen) -> list[str]:
    """Show a GPU or slice: what it is, what it does, who is on it, its bookings, what is wrong."""
    facts, available = gpu.facts, gpu.availability
    is_live = _is_live(node) and gpu.state not in ("stale", "offline")
    since = "" if available.since is None else f" for {ago(now - available.since)}"
    head = (
        f"{screen.paint(clean(node.place(gpu), 80), 'strong')}  {clean(gpu.short_name, 60)}  "
        + screen.paint(f"{screen.sign(gpu.state)} {clean(state_word(gpu.state), 20)}{since}", gpu.state)
        + f"  {clean(available.reason, 300)}"
    )
    lines = [screen.cut(head)]
    lines += _facts(
        [
            ("name", facts.name),
            ("UUID", gpu.uuid),
            ("slice of", facts.parent_uuid or ""),
            ("PCI bus", facts.pci_bus_id or ""),
            ("compute capability", facts.compute_capability or ""),
            (
                "memory",
                "" if is_live or facts.memory_total_bytes is None else bytes_text(facts.memory_total_bytes),
            ),
            ("heard of", "never" if node.age_seconds is None else f"{ago(node.age_seconds)} ago"),
        ],
        screen,
    )
    if is_live:
        lines += _gpu_figures(gpu, screen)
    own = [
        problem
        for problem in (*node.problems, *node.notes)
        if problem.device_uuid in (gpu.uuid, facts.parent_uuid, None)
    ]
    lines += _problems(own, now, screen)
    lines += _processes([("", process) for process in gpu.processes], node, now, screen, is_live=is_live)
    return [*lines, *_bookings(gpu.bookings, now, screen)]


def _gpu_figures(gpu: Gpu, screen: Screen) -> list[str]:
    sample = gpu.sample
    slowed = [name for name, bit in _SLOWED.items() if (sample.throttle_reasons or 0) & bit]
    more = [
        ("clocks", _clocks(gpu)),
        ("performance state", "" if sample.performance_state is None else f"P{sample.performance_state}"),
        ("clocks limited by", ", ".join(slowed)),
        ("ECC errors", _ecc(gpu)),
        ("not checked", ", ".join(gpu.availability.not_checked).replace("_", " ")),
    ]
    return [*screen.lay_out(_gpu_meters(gpu, screen), indent=2), *_facts(more, screen)]


def _gpu_meters(gpu: Gpu, screen: Screen) -> list[list[Cell]]:
    sample, total = gpu.sample, gpu.facts.memory_total_bytes
    limit = sample.power_limit_watts
    power = (
        ""
        if sample.power_watts is None
        else f"{sample.power_watts:.0f}W"
        if limit is None
        else f"{sample.power_watts:.0f}/{limit:.0f}W"
    )
    heat = "" if sample.temperature_celsius is None else f"{sample.temperature_celsius:.0f}°"
    meters: list[tuple[str, float | None, str]] = [
        ("utilisation", sample.utilization_gpu, percent_text(sample.utilization_gpu)),
        (
            "memory" if gpu.facts.memory_basis != "host" else "host memory",
            _share(sample.memory_used_bytes, total),
            share_text(sample.memory_used_bytes, total),
        ),
        ("memory bus", sample.utilization_memory, percent_text(sample.utilization_memory)),
        ("power", _share(sample.power_watts, limit), power),
        ("temperature", None, heat),
        ("fan", sample.fan_ratio, percent_text(sample.fan_ratio)),
        ("encoder", sample.utilization_encoder, percent_text(sample.utilization_encoder)),
        ("decoder", sample.utilization_decoder, percent_text(sample.utilization_decoder)),
    ]
    needed = {"utilisation", "memory"}
    return [
        [
            Cell(name, "dim"),
            Cell(figure, is_right=True),
            screen.bar_cell(share, gpu.state, _BAR_CELLS),
        ]
        for name, share, figure in meters
        if name in needed or (figure and figure != UNKNOWN)
    ]


def _clocks(gpu: Gpu) -> str:
    sample = gpu.sample
    parts = []
    if sample.clock_sm_hertz is not None:
        most = gpu.facts.clock_sm_max_hertz
        parts.append(
            f"SM {sample.clock_sm_hertz / 1e6:.0f}" + (f" of {most / 1e6:.0f} MHz" if most else " MHz")
        )
    if sample.clock_memory_hertz is not None:
        parts.append(f"memory {sample.clock_memory_hertz / 1e6:.0f} MHz")
    return ", ".join(parts)


def _ecc(gpu: Gpu) -> str:
    corrected, uncorrected = gpu.sample.ecc_corrected, gpu.sample.ecc_uncorrected
    if corrected is None and uncorrected is None:
        return ""
    return f"{_count(corrected)} corrected, {_count(uncorrected)} not"


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _facts(facts: Iterable[tuple[str, str]], screen: Screen) -> list[str]:
    return screen.lay_out(
        [[Cell(name, "dim"), Cell(clean(text, 300))] for name, text in facts if text], indent=2
    )


def _problems(problems: Sequence[Problem], now: float, screen: Screen) -> list[str]:
    rows = [
        [
            Cell(
                f"{screen.sign('fault') if problem.is_fault else '!'}",
                "fault" if problem.is_fault else "held",
            ),
            Cell("" if problem.since is None else ago(now - problem.since), "dim"),
            Cell(clean(problem.message, 500), "fault" if problem.is_fault else None),
        ]
        for problem in problems
    ]
    return ["", *screen.lay_out(rows, indent=2)] if rows else []


def _processes(
    processes: Sequence[tuple[str, UsingProcess]], node: Node, now: float, screen: Screen, *, is_live: bool
) -> list[str]:
    """Show processes; those of a silent node as they were last seen, without what they did at that moment."""
    if not processes:
        return []
    lines = [""]
    if not is_live:
        age = "" if node.age_seconds is None else f", {ago(node.age_seconds)} ago"
        lines.append(screen.cut(f"  {screen.paint(f'processes as last seen{age}:', 'dim')}"))
        now -= node.age_seconds or 0.0  # for how long they had run by then
    names = ("GPU", "pid", "user", "memory", "SM", "CPU", "for", "job", "command")
    hidden = (*(() if processes[0][0] else ("GPU",)), *(() if is_live else ("SM", "CPU")))
    rows = [[Cell("" if name in hidden else name, "dim") for name in names]]
    for place, process in processes:
        cores = "" if process.cpu_cores is None or not is_live else f"{process.cpu_cores:.1f}"
        share = "" if process.utilization_sm is None or not is_live else percent_text(process.utilization_sm)
        command = process.command or ("ended" if process.is_gone else UNKNOWN)
        rows.append(
            [
                Cell(place),
                Cell(str(process.pid), "dim", is_right=True),
                Cell(user_name(process.user), "strong"),
                Cell(bytes_text(process.gpu_memory_bytes), is_right=True),
                Cell(share, is_right=True),
                Cell(cores, is_right=True),
                Cell("" if process.started_at is None else ago(now - process.started_at), is_right=True),
                Cell(clean(process.job or process.container or "", 40)),
                Cell(clean(command, 500)),
            ]
        )
    return [*lines, *screen.lay_out(rows, indent=2, drop=(7, 5, 4))]


def _bookings(bookings: Sequence[GpuBooking], now: float, screen: Screen) -> list[str]:
    if not bookings:
        return []
    rows = [
        [
            Cell(
                f"{screen.sign('booked') if booking.phase == 'current' else ' '} {booking.phase}",
                _tone(booking),
            ),
            Cell(clean(booking.holder, 40), "strong"),
            Cell(shown_span(booking.starts_at, booking.ends_at, now, screen)),
            Cell(_USES.get(booking.use or "", "")),
            Cell(clean(booking.title or "", 80)),
            Cell(f"booking {booking.id}", "dim"),
        ]
        for booking in bookings
    ]
    return ["", *screen.lay_out(rows, indent=2, drop=(4, 3, 0))]


def _tone(booking: GpuBooking) -> str:
    return "booked" if booking.phase == "current" else "dim"


def _share(used: float | None, total: float | None) -> float | None:
    return None if used is None or not total else used / total
