"""How things look in a terminal: colours of states, bars, sizes, spans of time, columns that fit.

Colour is used only where someone looks: on a terminal that is not dumb, and without ``NO_COLOR``. It never tells alone:
every state has a sign and a word. What comes from nodes is cleaned here, so that it cannot act on the terminal.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, TextIO

from gpuherd.client.states import sign_of
from gpuherd.model.text import clean

__all__ = [
    "UNKNOWN",
    "Cell",
    "Screen",
    "ago",
    "bar",
    "bytes_text",
    "clock",
    "fitted",
    "is_terminal",
    "page_out",
    "paint",
    "percent_text",
    "plain_width",
    "share_text",
    "terminal_width",
    "text_width",
]

UNKNOWN = "-"
"""What is not known; never a zero."""

# The page's palette in those of 256 colours that can be read on a dark and on a light background alike, and in the 16
# whose look the user's own terminal decides.
_COLOURS_256 = {
    "free": "38;5;36",
    "busy": "38;5;68",
    "held": "38;5;172",
    "booked": "38;5;134",
    "fault": "38;5;167",
    "stale": "38;5;244",
    "offline": "38;5;244",
    "unknown": "38;5;244",
    "dim": "38;5;244",
    "strong": "1",
}
_COLOURS_16 = {
    "free": "32",
    "busy": "36",
    "held": "33",
    "booked": "35",
    "fault": "31",
    "stale": "90",
    "offline": "90",
    "unknown": "90",
    "dim": "90",
    "strong": "1",
}
READABLE_CELLS = 30
"""Columns that matter less go until the last one has so much room."""
LEAST_CELLS = 12
"""With less it goes itself."""
_PAINT = r"(\x1b\[[0-9;]*m)"
_NARROW = re.compile(r"[ -~\xa1-\xac\xae-\xff…–○■▨◩✕◌━╸┄]*")
"""Text of letters that are one cell wide and draw themselves: ASCII, Latin letters and our own signs."""
_PIECE_LETTERS = 16_384
_TRACK = "┄."
"""What the empty part of a bar is drawn with, the second where there is only ASCII."""
_SIZES = ((2**40, "T"), (2**30, "G"), (2**20, "M"), (2**10, "K"))
_SPANS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Screen(NamedTuple):
    """What is written on: how wide and high it is (0: without an end), how many colours it has, and which letters."""

    width: int = 0
    height: int = 0
    colours: int = 0
    is_unicode: bool = True

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str] = os.environ) -> Screen:
        """Find out what a stream leads to."""
        is_unicode = "utf" in (getattr(stream, "encoding", None) or "utf-8").lower()
        if not stream.isatty():
            return cls(is_unicode=is_unicode)
        width, height = _size(stream, environment)
        return cls(width=width, height=height, colours=_colour_count(environment), is_unicode=is_unicode)

    def paint(self, text: str, state: str | None) -> str:
        """Give text in the colour of a state, or ``dim`` or ``strong``; unchanged where there are no colours."""
        if not self.colours or state is None or not text:
            return text
        code = (_COLOURS_256 if self.colours >= 256 else _COLOURS_16).get(state)
        return text if code is None else f"\x1b[{code}m{text}\x1b[0m"

    def sign(self, state: str) -> str:
        """Give the one letter that stands for a state."""
        return sign_of(state, is_plain=not self.is_unicode)

    def bar(self, ratio: float | None, cells: int = 10) -> str:
        """Draw a share of one; nothing is drawn of what is not known."""
        if ratio is None:
            return " " * cells
        halves = round(min(1.0, max(0.0, ratio)) * cells * 2)
        if ratio > 0 and halves == 0:
            halves = 1  # little is not nothing
        full, half = divmod(halves, 2)
        if not self.is_unicode:
            return "=" * (full + half) + _TRACK[1] * (cells - full - half)
        return "━" * full + "╸" * half + _TRACK[0] * (cells - full - half)

    def bar_cell(self, ratio: float | None, state: str, cells: int = 10) -> Cell:
        """Draw a share of one in a state's colour; nothing at all of what is not known."""
        if ratio is None:
            return Cell()
        text = self.bar(ratio, cells)
        marks = ["dim" if letter in _TRACK else state for letter in text] if self.colours else ()
        return Cell(text, marks=marks)

    def lay_out(
        self,
        rows: Sequence[Sequence[Cell]],
        *,
        indent: int = 0,
        drop: Sequence[int] = (),
        gap: int = 2,
    ) -> list[str]:
        """Lay rows of equal length out in columns; no line is longer than the screen is wide.

        What does not fit goes: first the columns named by ``drop``, in this order, until the last column has room
        enough to be read; then others from the right, but never the first two. The last one left is cut to what room
        there is.
        """
        if not rows:
            return []
        widths = [max(text_width(row[column].text) for row in rows) for column in range(len(rows[0]))]
        shown = [column for column, width in enumerate(widths) if width]
        room = max(1, self.width - indent) if self.width else 0
        going = [column for column in drop if column in shown]
        while room and shown:
            others = _needed(widths, shown[:-1], gap) + (gap if len(shown) > 1 else 0)
            last = widths[shown[-1]]
            least = READABLE_CELLS if going else LEAST_CELLS
            if others + min(last, least) <= room or len(shown) <= 2:
                widths[shown[-1]] = min(last, max(1, room - others))
                break
            shown.remove(going.pop(0) if going else shown[-1])
            going = [column for column in going if column in shown]
        return [self._line(row, widths, shown, indent, gap) for row in rows]

    def _line(
        self, row: Sequence[Cell], widths: Sequence[int], shown: Sequence[int], indent: int, gap: int
    ) -> str:
        parts = []
        for column in shown:
            cell, width = row[column], widths[column]
            text = cell.text
            if len(text) > width or not _NARROW.fullmatch(text):
                text = fitted(text, width).rstrip(" ")
            space = " " * (width - text_width(text))
            if self.colours and (cell.state is not None or cell.marks):
                text = self._painted(text, cell)
            parts.append(space + text if cell.is_right else text + space)
        return self.cut((" " * indent + (" " * gap).join(parts)).rstrip(" "))

    def cut(self, line: str) -> str:
        """Give a line, painted or not, that does not go beyond the screen."""
        if not self.width or len(line) <= self.width // 2 or plain_width(line) <= self.width:
            return line
        room, kept = self.width, []
        for part in re.split(_PAINT, line):
            if part.startswith("\x1b"):
                kept.append(part)
            elif (taken := text_width(part)) < room or not part:
                kept.append(part)
                room -= taken
            else:
                return "".join(
                    [*kept, fitted(part + "…", room).rstrip(" "), "\x1b[0m" if self.colours else ""]
                )
        return "".join(kept)

    def _painted(self, text: str, cell: Cell) -> str:
        if not self.colours or len(cell.marks) < len(text):
            return self.paint(text, cell.state)
        runs = groupby(zip(text, cell.marks, strict=False), key=lambda pair: pair[1])
        return "".join(self.paint("".join(letter for letter, _ in run), mark) for mark, run in runs)


class Cell(NamedTuple):
    """What stands in one column of one row, and in the colour of which state."""

    text: str = ""
    state: str | None = None
    is_right: bool = False
    marks: Sequence[str] = ()
    """The states of its letters, one by one, if they have several."""


def plain_width(line: str) -> int:
    """Tell how many cells a painted line takes."""
    if "\x1b" not in line:
        return text_width(line)
    return text_width(re.sub(_PAINT, "", line))


def _needed(widths: Sequence[int], shown: Sequence[int], gap: int) -> int:
    return sum(widths[column] for column in shown) + gap * max(0, len(shown) - 1)


def _size(stream: TextIO, environment: Mapping[str, str]) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(stream.fileno())
        width, height = size.columns, size.lines
    except (OSError, ValueError, AttributeError):
        width = height = 0
    columns, lines = environment.get("COLUMNS", ""), environment.get("LINES", "")
    width = int(columns) if columns.isdecimal() and int(columns) else width
    height = int(lines) if lines.isdecimal() and int(lines) else height
    return width or 80, height or 24


def _colour_count(environment: Mapping[str, str]) -> int:
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR") or term in ("", "dumb"):
        return 0
    is_rich = "256" in term or environment.get("COLORTERM") in ("truecolor", "24bit")
    return 256 if is_rich or term in ("alacritty", "foot", "xterm-kitty", "xterm-ghostty", "wezterm") else 16


def is_terminal() -> bool:
    """Tell whether someone looks at the standard output."""
    return sys.stdout.isatty()


def terminal_width() -> int:
    """Give the width of the terminal; 0 if the output goes elsewhere and nothing needs to be left out."""
    return Screen.of(sys.stdout).width


def paint(text: str, state: str | None) -> str:
    """Give text in the colour of a state if the standard output shows colours."""
    return Screen.of(sys.stdout).paint(text, state)


def bar(ratio: float | None, cells: int = 10) -> str:
    """Draw a share of one for the standard output."""
    return Screen.of(sys.stdout).bar(ratio, cells)


def page_out(lines: Iterable[str]) -> None:
    """Write lines to the standard output; letters that it does not have become question marks.

    Piece by piece: of one large write Python does not tell that the reader has gone in the midst of it.
    """
    text = "".join(f"{line}\n" for line in lines)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "replace").decode(encoding)
    for start in range(0, len(text), _PIECE_LETTERS):
        sys.stdout.write(text[start : start + _PIECE_LETTERS])
        sys.stdout.flush()


def text_width(text: str) -> int:
    """Tell how many cells of a terminal a text takes."""
    return len(text) if text.isascii() or _NARROW.fullmatch(text) else _wide_width(text)


@lru_cache(4096)  # bars and signs are the same again and again
def _wide_width(text: str) -> int:
    import unicodedata

    return sum(
        0
        if unicodedata.category(letter) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )


def fitted(text: str, width: int, *, is_right: bool = False) -> str:
    """Give text that takes exactly ``width`` cells; an ellipsis stands for what is cut off."""
    text = _harmless(text, 4 * width + 8)
    taken = text_width(text)
    if taken > width:
        text, taken = _cut(text, width)
    space = " " * (width - taken)
    return space + text if is_right else text + space


_harmless = lru_cache(4096)(clean)


def _cut(text: str, width: int) -> tuple[str, int]:
    if width < 1:
        return "", 0
    taken, kept = 0, []
    for letter in text:
        wide = text_width(letter)
        if taken + wide > width - 1:
            break
        kept.append(letter)
        taken += wide
    return "".join(kept) + "…", taken + 1


def bytes_text(count: int | None) -> str:
    """Show bytes in binary units with about three digits, such as 38.2G; G stands for GiB."""
    if count is None:
        return UNKNOWN
    for size, letter in _SIZES:
        if count >= size:
            number = count / size
            return f"{number:.0f}{letter}" if number >= 99.95 or not count % size else f"{number:.1f}{letter}"
    return f"{count}B"


def share_text(used: int | None, total: int | None) -> str:
    """Show how much of something is used, in one unit, such as 38.2/80G."""
    if total is None:
        return bytes_text(used)
    size, letter = next((unit for unit in _SIZES if total >= unit[0]), (1, "B"))
    whole = f"{total / size:.0f}{letter}"
    return f"{UNKNOWN if used is None else format(used / size, '.1f')}/{whole}"


def percent_text(ratio: float | None) -> str:
    """Show a share of one as 74%."""
    return UNKNOWN if ratio is None else f"{ratio:.0%}"


def ago(seconds: float | None) -> str:
    """Show a span of time at a glance, in one unit: 45 s, 12 min, 3 h, 2 d."""
    if seconds is None:
        return UNKNOWN
    seconds = max(0.0, seconds)
    size, unit = next((span for span in _SPANS if seconds >= span[0]), _SPANS[-1])
    return f"{int(seconds // size)} {unit}"


def clock(at: float, now: float) -> str:
    """Show a time at which something is planned, by the clock on this machine's wall: 18:00, Fri 18:00, 2026-11-20."""
    try:
        then, today = (time.localtime(moment) for moment in (at, now))
        days = (at - now) / 86_400
        if then[:3] == today[:3]:
            return time.strftime("%H:%M", then)
        return time.strftime("%a %H:%M" if -6 < days < 6 else "%Y-%m-%d", then)
    except (OverflowError, ValueError, OSError):
        return "never"
