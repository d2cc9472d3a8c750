"""One GPU on the page: a line with what decides, and below it what is worth knowing besides."""

from __future__ import annotations

from datetime import tzinfo

from msgspec import Struct

from gpuherd.client.herd_views import Gpu, GpuBooking, Node, UsingProcess
from gpuherd.wiring.exporting.markup import escape
from gpuherd.wiring.exporting.moments import bytes_text, percent, short_moment, span_text

__all__ = ["LOOKS", "Look", "gpu_row", "look"]

TOLD_PROCESSES = 16
TOLD_USERS = 4


class Look(Struct, frozen=True):
    """How a state is shown: green, red or neither, and always also a sign and a word."""

    group: str
    sign: str
    word: str


LOOKS = {
    "free": Look("free", "○", "free"),
    "busy": Look("taken", "■", "busy"),
    "held": Look("taken", "▨", "held idle"),
    "booked": Look("booked", "◩", "booked"),
    "fault": Look("fault", "✕", "fault"),
    "stale": Look("dark", "◌", "stale"),
    "offline": Look("dark", "◌", "offline"),
    "unknown": Look("dark", "?", "unknown"),
}


def look(state: str) -> Look:
    """Give how a state is shown; one that we do not know is unknown, never free."""
    return LOOKS.get(state, LOOKS["unknown"])


def gpu_row(node: Node, gpu: Gpu, now: float, zone: tzinfo | None) -> str:
    """Write a GPU or slice; what is seen without opening it is enough to decide."""
    shown, sample = look(gpu.state), gpu.sample
    number = node.place(gpu)[len(node.name) + 1 :]
    name = gpu.short_name or gpu.facts.name
    if gpu.facts.profile is not None:
        name = f"{name} {gpu.facts.profile}"
    memory = f"{bytes_text(sample.memory_used_bytes)} of {bytes_text(gpu.facts.memory_total_bytes)} GiB"
    numbers = f"load {percent(sample.utilization_gpu)}, {memory}"
    if gpu.state in ("stale", "offline"):
        numbers = f"last known: {numbers}"
    who = _who(gpu, now, zone)
    hover = ", ".join(part for part in (who or "nobody", f"memory {memory}", gpu.availability.reason) if part)
    width = 0.0 if sample.utilization_gpu is None else min(max(100 * sample.utilization_gpu, 0.0), 100.0)
    return (
        f'<li class="{shown.group}"><details><summary title="{escape(hover, 300)}">'
        f'<span class="name">{escape(number, 20)} {escape(name)}</span>'
        f'<span class="state"><b>{shown.sign} {shown.word}</b></span>'
        f'<span class="numbers">{numbers}</span>'
        f'<span class="who">{escape(who, 200)}</span>'
        '<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:.0f}" height="1"/></svg>'
        f"</summary>\n<dl>{''.join(_lines(gpu, now, zone))}</dl></details></li>\n"
    )


def _who(gpu: Gpu, now: float, zone: tzinfo | None) -> str:
    """Say who is on it, or else for whom it is kept."""
    users = ["owner unknown" if user is None else user for user in gpu.users]
    if users:
        more = f" and {len(users) - TOLD_USERS} more" if len(users) > TOLD_USERS else ""
        return ", ".join(users[:TOLD_USERS]) + more
    current = next((booking for booking in gpu.bookings if booking.phase == "current"), None)
    return "" if current is None else f"for {current.holder} until {short_moment(current.ends_at, now, zone)}"


def _lines(gpu: Gpu, now: float, zone: tzinfo | None) -> list[str]:
    sample, since = gpu.sample, gpu.availability.since
    word, reason = look(gpu.state).word, gpu.availability.reason
    state = reason if reason.startswith(word) else f"{word}: {reason}" if reason else word
    dated = "" if since is None else f", since {short_moment(since, now, zone)} ({span_text(now - since)})"
    lines = [_line("State", f"{state}{dated}", 512)]
    computing = [process for process in gpu.processes if process.kind == "compute"]
    told = [_process(process, now, zone) for process in computing[:TOLD_PROCESSES]]
    if len(computing) > TOLD_PROCESSES:
        told.append(f"and {len(computing) - TOLD_PROCESSES} more processes")
    lines.append(_lists("Users", told or ["nobody"]))
    booked = [_booking(booking, now, zone) for booking in gpu.bookings if booking.phase != "past"]
    if booked:
        lines.append(_lists("Booked", booked))
    if sample.utilization_memory is not None:
        lines.append(_line("Memory controller", percent(sample.utilization_memory)))
    if sample.temperature_celsius is not None:
        lines.append(_line("Temperature", f"{sample.temperature_celsius:.0f} °C"))
    if sample.power_watts is not None:
        limit = "" if sample.power_limit_watts is None else f" of {sample.power_limit_watts:.0f}"
        lines.append(_line("Power", f"{sample.power_watts:.0f}{limit} W"))
    lines += [_line("Model", gpu.facts.name), _line("UUID", gpu.uuid)]
    return lines


def _process(process: UsingProcess, now: float, zone: tzinfo | None) -> str:
    owner = "owner unknown" if process.user is None else process.user
    memory = "" if process.gpu_memory_bytes is None else f", {bytes_text(process.gpu_memory_bytes)} GiB"
    since = process.started_at
    dated = "" if since is None else f", since {short_moment(since, now, zone)} ({span_text(now - since)})"
    gone = ", has ended" if process.is_gone else ""
    return f"{owner}{memory}{dated}{gone} (pid {process.pid})"


def _booking(booking: GpuBooking, now: float, zone: tzinfo | None) -> str:
    title = f" ({booking.title})" if booking.title else ""
    begins, ends = short_moment(booking.starts_at, now, zone), short_moment(booking.ends_at, now, zone)
    return f"{booking.holder}{title}, {begins} – {ends}"


def _line(term: str, text: str, length: int = 200) -> str:
    return f"<dt>{term}</dt><dd>{escape(text, length)}</dd>"


def _lists(term: str, texts: list[str]) -> str:
    items = "".join(f"<li>{escape(text, 300)}</li>" for text in texts)
    return f'<dt>{term}</dt><dd><ul class="lines">{items}</ul></dd>'
