"""Everything that is known of one GPU or one node, as lines."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment

from gpuherd.client.herd_views import Problem
from gpuherd.client.live_nodes import LiveGpu, LiveNode, LiveUse, shown
from gpuherd.client.states import sign_of
from gpuherd.model.devices import ThrottleReason
from gpuherd.model.hosts import cpu_level
from gpuherd.tui.booking_list import span_of
from gpuherd.tui.cells import UNKNOWN, Piece, ago, bar, fit, gibibytes, percent, spark, wrap
from gpuherd.tui.listing import Scene, sign_and_word
from gpuherd.tui.palette import Pen

__all__ = ["detail"]

LABEL_CELLS = 9
_THROTTLED = {
    ThrottleReason.POWER_CAP: "power cap",
    ThrottleReason.HARDWARE_SLOWDOWN: "hardware slowdown",
    ThrottleReason.SYNC_BOOST: "sync boost",
    ThrottleReason.SOFTWARE_THERMAL: "heat",
    ThrottleReason.HARDWARE_THERMAL: "heat (hardware)",
    ThrottleReason.POWER_BRAKE: "power brake",
    ThrottleReason.APPLICATION_CLOCKS: "application clocks",
}

Lines = list[list[Piece]]


def detail(subject: LiveGpu | LiveNode, width: int, pen: Pen, scene: Scene) -> Lines:
    """Give the lines of a GPU or a node, ``width`` cells wide."""
    inner = max(10, width - 2)
    lines = (
        _node(subject, inner, pen, scene)
        if isinstance(subject, LiveNode)
        else _gpu(subject, inner, pen, scene)
    )
    return [[Segment("  "), *line] for line in lines]


def _gpu(gpu: LiveGpu, width: int, pen: Pen, scene: Scene) -> Lines:
    herd, row = scene.herd, gpu.row
    numbers = herd.numbers
    state = herd.states[row]
    since = numbers["since"][row]
    used, total = numbers["memory_used_mebibytes"][row], gpu.memory_total_mebibytes
    share = None if used is None or total is None else used / total
    util_past, memory_past = herd.history(row, _meter_cells(width))
    lines: Lines = [
        [Segment(fit(gpu.place, width), pen.strong)],
        [Segment(fit(shown(gpu.facts.name), width), pen.muted)],
        [
            *sign_and_word(state, 12, pen, is_strong=True),
            Segment(f"for {_age(since, scene)}", pen.text),
        ],
    ]
    lines += [[Segment(line, pen.muted)] for line in wrap(shown(herd.reasons[row], 400), width)]
    lines.append([])
    lines += _meter(
        "load", numbers["utilization_gpu"][row], percent(numbers["utilization_gpu"][row]), state, width, pen
    )
    lines.append(
        [Segment(" " * LABEL_CELLS), Segment(spark(util_past, _meter_cells(width)), pen.state(state))]
    )
    memory_text = f"{gibibytes(used)} of {gibibytes(total)}"
    lines += _meter("memory", share, memory_text, state, width, pen)
    shares = [None if value is None or total is None else value / total for value in memory_past]
    lines.append([Segment(" " * LABEL_CELLS), Segment(spark(shares, _meter_cells(width)), pen.state(state))])
    lines += _facts(_gpu_facts(gpu, scene), width, pen)
    lines += _problems(_about(gpu), width, pen)
    lines += _bookings(gpu, width, pen, scene)
    lines += _processes(((gpu, use) for use in gpu.uses), len(gpu.uses), width, pen, scene, is_one=True)
    return lines


def _gpu_facts(gpu: LiveGpu, scene: Scene) -> list[tuple[str, str]]:
    numbers, row, facts = scene.herd.numbers, gpu.row, gpu.facts
    limit = numbers["power_limit_watts"][row]
    power = f"{_number(numbers['power_watts'][row])} W" + ("" if limit is None else f" of {limit:.0f} W")
    clock = numbers["clock_sm_megahertz"][row]
    level = numbers["performance_state"][row]
    clock_text = (
        UNKNOWN if clock is None else f"{clock:.0f} MHz" + ("" if level is None else f", P{level:.0f}")
    )
    told = [
        ("heat", f"{_number(numbers['temperature_celsius'][row])} °C" + _fan(numbers["fan_ratio"][row])),
        ("power", power),
        ("clock", clock_text),
    ]
    if throttled := _throttled(numbers["throttle_reasons"][row]):
        told.append(("slowed", throttled))
    if (errors := numbers["ecc_uncorrected"][row]) is not None and errors > 0:
        told.append(("ECC", f"{errors:.0f} uncorrected errors"))
    if facts.profile is not None:
        told.append(("slice", shown(facts.profile, 40)))
    told.append(("uuid", shown(facts.uuid, 96)))
    if facts.pci_bus_id is not None:
        told.append(("bus", shown(facts.pci_bus_id, 40)))
    return told


def _node(node: LiveNode, width: int, pen: Pen, scene: Scene) -> Lines:
    herd, row, host = scene.herd, node.row, node.host
    state = herd.node_states[row]
    heard = herd.hosts["received_at"][row]
    lines: Lines = [
        [Segment(fit(node.name, width), pen.strong)],
        [Segment(fit(", ".join(f"{count} × {name}" for name, count in node.models()), width), pen.muted)],
        [
            *sign_and_word(state, 12, pen, is_strong=True),
            Segment("never reported" if heard is None else f"last report {_age(heard, scene)} ago", pen.text),
        ],
    ]
    lines += [[Segment(line, pen.muted)] for line in wrap(shown(herd.node_reasons[row], 400), width)]
    lines.append([])
    memory, total = herd.hosts["memory_used_mebibytes"][row], host and host.memory_total_bytes
    share = None if memory is None or not total else memory * 2**20 / total
    cpus = None if host is None else host.cpu_count
    cpu = cpu_level(herd.hosts["cpu_ratio"][row], herd.hosts["load_1m"][row], cpus)
    lines += _meter("cpu", cpu, percent(cpu), "busy", width, pen)
    text = f"{gibibytes(memory)} of {gibibytes(total / 2**20 if total else None)}"
    lines += _meter("ram", share, text, "busy", width, pen)
    lines += _facts(_node_facts(node, scene), width, pen)
    lines.append([])
    for gpu in node.gpus:
        told = herd.states[gpu.row]
        util = herd.numbers["utilization_gpu"][gpu.row]
        cells = max(4, min(16, width - 40))
        used = gibibytes(herd.numbers["memory_used_mebibytes"][gpu.row])
        lines.append(
            [
                Segment(fit(gpu.label, 5), pen.text),
                *sign_and_word(told, 12, pen),
                *bar(util, cells, pen, told),
                Segment(f" {percent(util):>4} {used:>5} ", pen.text),
                Segment(" ".join(user or "?" for user in gpu.users), pen.text),
            ]
        )
    lines += _problems([*node.problems, *node.notes], width, pen)
    uses = [(gpu, use) for gpu in node.gpus for use in gpu.uses]
    lines += _processes(uses, len(uses), width, pen, scene, is_one=False)
    return lines


def _node_facts(node: LiveNode, scene: Scene) -> list[tuple[str, str]]:
    herd, row, host = scene.herd, node.row, node.host
    told = []
    load, uptime = herd.hosts["load_1m"][row], herd.hosts["uptime_seconds"][row]
    told.append(("load", UNKNOWN if load is None else f"{load:.1f}"))
    if uptime is not None:
        told.append(("up", ago(uptime)))
    if host is not None:
        cores = "" if host.cpu_count is None else f"{host.cpu_count} × "
        told += [
            ("cpus", cores + shown(host.cpu_model or UNKNOWN)),
            ("driver", _joined(host.driver_version, host.cuda_version and f"CUDA {host.cuda_version}")),
            ("system", _joined(host.os, host.kernel)),
            ("gpuherd", _joined(host.agent_version, node.way and f"by {node.way}")),
        ]
    return told


def _meter(label: str, ratio: float | None, text: str, state: str, width: int, pen: Pen) -> Lines:
    cells = _meter_cells(width)
    return [
        [
            Segment(fit(label, LABEL_CELLS), pen.muted),
            *bar(ratio, cells, pen, state),
            Segment(f" {text}", pen.text),
        ]
    ]


def _meter_cells(width: int) -> int:
    return max(4, min(30, width - LABEL_CELLS - 15))


def _facts(told: list[tuple[str, str]], width: int, pen: Pen) -> Lines:
    lines: Lines = []
    for label, text in told:
        for place, part in enumerate(wrap(text, max(8, width - LABEL_CELLS)) or [UNKNOWN]):
            lines.append(
                [Segment(fit("" if place else label, LABEL_CELLS), pen.muted), Segment(part, pen.text)]
            )
    return lines


def _about(gpu: LiveGpu) -> list[Problem]:
    return [problem for problem in gpu.node.problems if problem.device_uuid in (None, gpu.facts.uuid)]


def _problems(problems: Iterable[Problem], width: int, pen: Pen) -> Lines:
    lines: Lines = []
    for problem in problems:
        sign = sign_of("fault") if problem.is_fault else "!"
        style = pen.state("fault" if problem.is_fault else "held")
        for place, part in enumerate(wrap(shown(problem.message, 400), width - 2)):
            lines.append([Segment("  " if place else f"{sign} ", style), Segment(part, pen.text)])
    return [[], *lines] if lines else []


def _bookings(gpu: LiveGpu, width: int, pen: Pen, scene: Scene) -> Lines:
    bookings = [booking for booking in scene.herd.bookings.get(gpu.row, ()) if booking.phase != "past"]
    if not bookings:
        return []
    lines: Lines = [[], [Segment("bookings", pen.muted)]]
    for booking in bookings:
        sign = Segment("◩ " if booking.phase == "current" else "◷ ", pen.state("booked"))
        lines.append(
            [
                sign,
                Segment(f"{shown(booking.holder, 40)}  ", pen.text),
                Segment(span_of(booking, scene), pen.muted),
            ]
        )
        if booking.title:
            lines.append([Segment(f"  {fit(shown(booking.title, 120), width - 2)}", pen.muted)])
    return lines


def _processes(
    uses: Iterable[tuple[LiveGpu, LiveUse]], count: int, width: int, pen: Pen, scene: Scene, *, is_one: bool
) -> Lines:
    if not count:
        return [[], [Segment("no processes", pen.muted)]]
    lines: Lines = [[], [Segment(f"{count} process{'es' if count > 1 else ''}", pen.muted)]]
    for gpu, use in uses:
        memory = gpu.node.number("gpu_memory_bytes", use)
        size = gibibytes(None if memory is None else memory / 2**20)
        age = ago(None if use.started_at is None else scene.now - use.started_at)
        where = "" if is_one else f"{gpu.label}: "
        job = f", job {use.job}" if use.job else ""
        head = f"{where}{use.user or 'unknown owner'}, pid {use.pid}, {size}, {age}{job}"
        lines.append([Segment(fit(head, width), pen.strong if use.is_own else pen.text)])
        text = ("(gone) " if use.is_gone else "") + (use.command or "")
        lines += [[Segment(f"  {part}", pen.muted)] for part in wrap(text, width - 2)[: 6 if is_one else 1]]
    return lines


def _throttled(reasons: float | None) -> str:
    if reasons is None:
        return ""
    return ", ".join(word for flag, word in _THROTTLED.items() if int(reasons) & flag)


def _fan(ratio: float | None) -> str:
    return "" if ratio is None else f", fan {percent(ratio)}"


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}"


def _age(since: float | None, scene: Scene) -> str:
    return ago(None if since is None else scene.now - since)


def _joined(*parts: str | None) -> str:
    return ", ".join(shown(part) for part in parts if part) or UNKNOWN
