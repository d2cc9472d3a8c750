"""A herd as lines of text: how many are free, a block or a line per node, a row per GPU. Pure; it asks nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpuherd.cli.showing import (
    UNKNOWN,
    Cell,
    Screen,
    ago,
    bytes_text,
    clock,
    percent_text,
    share_text,
)
from gpuherd.client.states import STATES, state_rank, state_word
from gpuherd.model.text import SENTENCE_LENGTH, clean

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Gpu, GpuBooking, Herd, Node

__all__ = [
    "brief_lines",
    "gpu_rows",
    "joined_places",
    "node_blocks",
    "plural",
    "total_lines",
    "user_name",
    "who",
]

SILENT = ("stale", "offline", "unknown")
"""States in which what a device did last is not what it does now."""
SOON_SECONDS = 86_400
"""A booking that begins within this time is told of a free device."""
_BAR_CELLS = 8
TROUBLE_LENGTH = 512
"""As long as a node may make a sentence; the screen cuts what does not fit."""


def total_lines(herd: Herd, screen: Screen) -> list[str]:
    """Answer what is free: how many of all, in which states the others are, and which types."""
    units = [gpu for _, gpu in herd.units()]
    states = Counter(gpu.state for gpu in units)
    free = states.get("free", 0)
    parts = [
        screen.paint(f"{screen.sign(state)} {states[state]} {clean(state_word(state), 20)}", state)
        for state in sorted(states, key=state_rank)
        if state != "free"
    ]
    if in_fault := sum(node.is_in_fault for node in herd.nodes):
        parts.append(screen.paint(f"{screen.sign('fault')} {plural(in_fault, 'node')} in fault", "fault"))
    has_slices = any(gpu.facts.parent_uuid is not None for gpu in units)
    count = _devices(gpu for gpu in units if gpu.state == "free") if free and has_slices else str(free)
    head = screen.paint(f"{screen.sign('free')} {count} free", "free" if free else "dim")
    of = f"of {_devices(units)} on {plural(len(herd.nodes), 'node')}"
    lines = _wrapped([f"{head} {screen.paint(of, 'dim')}", *parts], screen)
    if free:
        lines += _wrapped(
            [f"  {part}" if not place else part for place, part in enumerate(_types(herd))], screen
        )
    for notice in herd.notices:
        lines += [screen.paint(line, "fault") for line in _notice_lines(notice.message, screen)]
    return [screen.cut(line) for line in lines]


def _notice_lines(message: str, screen: Screen) -> list[str]:
    """Give all of a notice: what to do stands at its end."""
    told = f"! {clean(message, SENTENCE_LENGTH)}"
    if not screen.width:
        return [told]
    from textwrap import wrap

    return wrap(told, screen.width, subsequent_indent="  ")


def _types(herd: Herd) -> list[str]:
    free: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for node in herd.nodes:
        here = Counter([gpu.short_name for gpu in node.units if gpu.availability.state == "free"])
        for name, count in here.items():
            free[name] += count
            most[name] = max(most[name], count)
    return [
        f"{clean(name, 30)} ×{count}"
        + (f" ({most[name]} on one node)" if len(herd.nodes) > 1 and most[name] > 1 else "")
        for name, count in free.most_common()
    ]


def _wrapped(parts: Sequence[str], screen: Screen) -> list[str]:
    """Join parts by gaps, in as many lines as it takes; a part is never torn apart."""
    from gpuherd.cli.showing import plain_width

    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}   {part}" if lines else part
        if lines and screen.width and plain_width(joined) > screen.width:
            lines.append(f"  {part}")
        else:
            lines[-1:] = [joined]
    return lines


def node_blocks(herd: Herd, screen: Screen) -> list[str]:
    """Give a block per node: a line about it, then a row for each of its GPUs."""
    rows = {
        node.id: [] if _is_told_at_once(node) else gpu_rows(node, herd.time, screen) for node in herd.nodes
    }
    # All in one layout, so that figures stand below each other from node to node.
    laid = iter(screen.lay_out([row for part in rows.values() for row in part], indent=2, drop=(6, 5, 2, 4)))
    lines: list[str] = []
    for node in herd.nodes:
        lines += ["", _headline(node, screen)]
        lines += [next(laid) for _ in rows[node.id]]
    return lines


def _headline(node: Node, screen: Screen) -> str:
    """Name a node, what is in it, how old its news is, and what is wrong with all of it."""
    is_live = node.state in ("live", "")
    state = node.state if node.state in STATES else "unknown"
    age = "" if node.age_seconds is None else ago(node.age_seconds)
    if is_live:
        news = f"{age or UNKNOWN} ago"
    else:
        news = f"{screen.sign(state)} {clean(state_word(node.state), 20)}{f' for {age}' if age else ''}"
    same = _same_reason(node)
    trouble = _troubles(node)
    if same is not None:
        of_all = node.units[0].state
        wrong = f"{screen.sign(of_all)} {clean(state_word(of_all), 20)}: {clean(same, TROUBLE_LENGTH)}"
    else:
        wrong = "  ".join(trouble if is_live else [clean(node.reason, TROUBLE_LENGTH), *trouble])
    cells = [
        Cell(clean(node.name, 60), "strong"),
        Cell(_models(node.units)),
        Cell(news, "dim" if is_live else state),
    ]
    return screen.lay_out([[*cells, Cell(wrong, "fault")]])[0]


def _troubles(node: Node) -> list[str]:
    """Give what is wrong with all of a node."""
    return [
        clean(problem.message, TROUBLE_LENGTH) for problem in node.problems if problem.device_uuid is None
    ]


def _models(units: Sequence[Gpu]) -> str:
    counted = Counter([gpu.short_name for gpu in units])
    return ", ".join(f"{clean(name, 40)} ×{count}" for name, count in counted.items())


def _is_told_at_once(node: Node) -> bool:
    return not node.units or node.state not in ("live", "") or _same_reason(node) is not None


def _same_reason(node: Node) -> str | None:
    """Give the reason that all GPUs of a node are not to be had for, if it is one and the same."""
    reasons = {(gpu.state, gpu.availability.reason) for gpu in node.units}
    if len(reasons) != 1 or not node.units or node.state != "live":
        return None
    state, reason = reasons.pop()
    return reason if state in ("fault", "unknown") and len(node.units) > 1 else None


def gpu_rows(node: Node, now: float, screen: Screen, *, is_placed: bool = False) -> list[list[Cell]]:
    """Give a row for each GPU: place, state, load, memory, temperature, power, who. ``is_placed``: with the node."""
    is_mixed = len({gpu.short_name for gpu in node.units}) > 1
    rows = []
    for gpu in node.units:
        state, sample = gpu.state, gpu.sample
        is_told = state not in SILENT and state != "fault"
        load = sample.utilization_gpu if is_told else None
        memory = share_text(sample.memory_used_bytes if is_told else None, gpu.facts.memory_total_bytes)
        name = f"{gpu.facts.profile or gpu.short_name}  " if is_mixed else ""
        rows.append(
            [
                Cell(node.place(gpu) if is_placed else node.place_here(gpu)),
                Cell(_state_text(gpu, now, screen), state),
                screen.bar_cell(load, state, _BAR_CELLS),
                Cell(percent_text(load), "dim" if load is None else None, is_right=True),
                Cell(memory, "dim" if not is_told else None, is_right=True),
                Cell(_number(sample.temperature_celsius, "°") if is_told else "", is_right=True),
                Cell(_number(sample.power_watts, "W") if is_told else "", is_right=True),
                Cell(f"{name}{who(gpu, now)}", "dim" if state in ("free", *SILENT) else None),
            ]
        )
    return rows


def _state_text(gpu: Gpu, now: float, screen: Screen) -> str:
    text = f"{screen.sign(gpu.state)} {clean(state_word(gpu.state), 20)}"
    since = gpu.availability.since
    if gpu.state in ("held", "fault", *SILENT) and since is not None:
        text += f" {ago(now - since)}"
    return text


def who(gpu: Gpu, now: float) -> str:
    """Tell whose a device is: users with memory and since when, or what stands against it."""
    current = next((booking for booking in gpu.bookings if booking.phase == "current"), None)
    if gpu.state in ("fault", "unknown"):
        return clean(gpu.availability.reason, 300)
    if gpu.state in SILENT:
        users = ", ".join(user_name(user) for user in gpu.users)
        return f"last seen with {users}" if users else ""
    text = ", ".join(_use(user, gpu, now) for user in gpu.users)
    if not text and gpu.state in ("busy", "held"):
        text = clean(gpu.availability.reason, 120)
    if current is None:
        coming = _soon(gpu, now) if gpu.state == "free" else None
        told = coming and f"booked from {clock(coming.starts_at, now)} by {clean(coming.holder, 40)}"
    elif gpu.users == (current.holder,):
        told = f"booked until {clock(current.ends_at, now)}"
    else:
        told = f"booked by {_booking(current, now)}"
    return f"{text}, {told}" if text and told else text or told or ""


def _booking(booking: GpuBooking, now: float) -> str:
    return f"{clean(booking.holder, 40)} until {clock(booking.ends_at, now)}"


def _soon(gpu: Gpu, now: float) -> GpuBooking | None:
    return next(
        (
            booking
            for booking in gpu.bookings
            if booking.phase == "next" and booking.starts_at < now + SOON_SECONDS
        ),
        None,
    )


def _use(user: str | None, gpu: Gpu, now: float) -> str:
    own = [process for process in gpu.processes if process.user == user and process.kind == "compute"]
    sizes = [process.gpu_memory_bytes for process in own if process.gpu_memory_bytes is not None]
    starts = [process.started_at for process in own if process.started_at is not None]
    parts = [user_name(user)]
    if sizes:
        parts.append(bytes_text(sum(sizes)))
    if starts:
        parts.append(ago(now - min(starts)))
    return " ".join(parts)


def user_name(user: str | None) -> str:
    """Give what a user is called in front of people."""
    return "unknown owner" if user is None else clean(user, 40)


def brief_lines(herd: Herd, screen: Screen) -> list[str]:
    """Give one line per node: a sign for each GPU, how many are free, what they are, and whose."""
    rows = []
    signs = {state: screen.sign(state) for state in STATES}
    for node in herd.nodes:
        units = node.units
        states = [gpu.availability.state for gpu in units]
        free = states.count("free")
        told = node.state if node.state in STATES else "unknown"
        is_live = node.state in ("live", "")
        rows.append(
            [
                Cell(clean(node.name, 40), "strong" if is_live else told),
                Cell("".join([signs.get(state) or screen.sign(state) for state in states]), marks=states),
                Cell(f"{free} free" if free else "", "free", is_right=True),
                Cell(_models(units), None if is_live else "dim"),
                Cell(
                    _told_briefly(node, units, screen)
                    if is_live
                    else f"{node.state} {ago(node.age_seconds)}",
                    "fault" if is_live and ("fault" in states or not units) else "dim",
                ),
            ]
        )
    return screen.lay_out(rows)


def _told_briefly(node: Node, units: Sequence[Gpu], screen: Screen) -> str:
    if units:
        return _holders(units)
    # Without a GPU to put a sign on, what is wrong is all there is to show.
    return f"{screen.sign('fault')} {'  '.join(_troubles(node))}" if node.problems else ""


def _holders(units: Sequence[Gpu]) -> str:
    counted = Counter([user for gpu in units for user in gpu.users])
    names = [(user_name(user), count) for user, count in counted.most_common()]
    users = [f"{name} ×{count}" if count > 1 else name for name, count in names]
    faults = {clean(gpu.availability.reason, 100) for gpu in units if gpu.availability.state == "fault"}
    return ", ".join([*sorted(faults), *users])


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f}{unit}"


def _devices(units: Iterable[Gpu]) -> str:
    """Count GPUs and slices apart: ``2 GPUs and 8 slices``."""
    slices = Counter(gpu.facts.parent_uuid is not None for gpu in units)
    parts = [plural(slices[True], "slice")] if slices[True] else []
    return " and ".join([plural(slices[False], "GPU"), *parts] if slices[False] or not parts else parts)


def plural(count: int, noun: str) -> str:
    """Count things in words."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def joined_places(places: Iterable[tuple[str, str]]) -> str:
    """Write places together, as ``gpuherd book`` reads them: ``gpu07/0-2,5 gpu08/3``."""
    by_node: dict[str, list[str]] = {}
    for node, index in places:
        by_node.setdefault(node, []).append(index)
    return " ".join(f"{clean(node, 60)}/{','.join(_runs(indexes))}" for node, indexes in by_node.items())


def _runs(indexes: Sequence[str]) -> list[str]:
    """Write indexes that follow each other as a range; those of slices stay as they are."""
    runs: list[list[str]] = []
    for index in indexes:
        last = runs[-1][-1] if runs else ""
        if index.isdecimal() and last.isdecimal() and int(index) == int(last) + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return [",".join(run) if len(run) < 3 else f"{run[0]}-{run[-1]}" for run in runs]
