"""Text, bars and spans of time in cells of a terminal. Everything is literal: no markup is ever read out of a text."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment

from gpuherd.tui.palette import Pen

__all__ = [
    "UNKNOWN",
    "Column",
    "Piece",
    "ago",
    "bar",
    "fit",
    "gibibytes",
    "lay_out",
    "percent",
    "spark",
    "width_of",
    "wrap",
]

UNKNOWN = "–"
"""What is not known; never a zero."""
_LEVELS = "▁▂▃▄▅▆▇█"

Piece = Segment
width_of = cell_len


class Column(Struct, frozen=True):
    """A column of a list. Where there is no room, the one with the highest ``goes`` goes first; 0 never does."""

    name: str
    title: str
    least: int
    most: int
    goes: int = 0
    is_right: bool = False


def lay_out(columns: Sequence[Column], width: int, gap: int = 1) -> list[tuple[Column, int]]:
    """Give the columns that fit, and how wide each is."""
    shown = list(columns)
    while len(shown) > 1 and sum(column.least + gap for column in shown) - gap > width:
        last = max(shown, key=lambda column: column.goes)
        if last.goes == 0:
            break
        shown.remove(last)
    spare = max(0, width - sum(column.least + gap for column in shown) + gap)
    widths = [column.least for column in shown]
    while spare > 0:
        growing = [place for place, column in enumerate(shown) if widths[place] < column.most]
        if not growing:
            break
        for place in growing[:spare]:
            widths[place] += 1
        spare -= min(spare, len(growing))
    return list(zip(shown, widths, strict=True))


def fit(text: str, width: int, *, is_right: bool = False) -> str:
    """Give text in exactly so many cells; an ellipsis shows that something is missing."""
    if width <= 0:
        return ""
    length = len(text) if text.isascii() else cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - length) + text if is_right else text + " " * (width - length)


def bar(ratio: float | None, width: int, pen: Pen, state: str) -> list[Piece]:
    """Draw a share of one in a state's colour; nothing of what is not known, and what is little is not nothing."""
    if ratio is None:
        return [Segment(" " * width)]
    halves = round(min(1.0, max(0.0, ratio)) * width * 2)
    if ratio > 0 and halves == 0:
        halves = 1
    full, half = divmod(halves, 2)
    drawn = "━" * full + "╸" * half
    return [
        Segment(drawn, pen.state(state)),
        Segment(("┄" if pen.is_plain else "━") * (width - len(drawn)), pen.track),
    ]


def spark(values: Sequence[float | None], width: int) -> str:
    """Draw shares of one over time, the newest at the right end; what is not known stays empty."""
    drawn = "".join(
        " " if value is None else _LEVELS[min(7, int(min(1.0, max(0.0, value)) * 8))]
        for value in values[-width:]
    )
    return " " * (width - len(drawn)) + drawn


def percent(ratio: float | None) -> str:
    """Show a share of one."""
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f}%"


def gibibytes(mebibytes: float | None) -> str:
    """Show memory in GiB, as finely as matters."""
    if mebibytes is None:
        return UNKNOWN
    size = mebibytes / 1024
    return f"{size:.1f}G" if 0.05 <= size < 9.95 else f"{size:.0f}G"


def ago(seconds: float | None) -> str:
    """Show a span of time in its largest unit: 40 s, 12 min, 5 h, 3 d."""
    if seconds is None:
        return UNKNOWN
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def wrap(text: str, width: int) -> list[str]:
    """Break text into lines of so many cells, between words where it can be done."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        rest = word
        while rest:
            joined = f"{line} {rest}" if line else rest
            if cell_len(joined) <= width:
                line, rest = joined, ""
            elif line:
                lines.append(line)
                line = ""
            else:
                cut = max(1, width)
                while cut > 1 and cell_len(rest[:cut]) > width:
                    cut -= 1
                lines.append(rest[:cut])
                rest = rest[cut:]
    return [*lines, line] if line else lines
