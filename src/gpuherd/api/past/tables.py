"""Tables for spreadsheets (RFC 4180), in which nothing is a formula."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

__all__ = ["Cell", "iso", "safe_text", "write_csv"]

Cell = str | float | int | None

_FORMULA = re.compile(
    r"^[\s\x00-\x1f]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]"
)  # the last four are their wide forms
_BREAKS = re.compile(r"[\x00-\x1f\x7f]+")


def write_csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """Write a table as UTF-8 with CRLF; unknown is an empty cell. Numbers are numbers, texts never formulas."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([safe_text(name) for name in header])
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def safe_text(text: str) -> str:
    """Give a text that no spreadsheet takes for a formula: one that begins like one gets an apostrophe before it.

    Also one whose formula would begin after blanks, tabs or line breaks; these become blanks.
    """
    plain = _BREAKS.sub(" ", text)
    is_formula = _FORMULA.match(text) or _FORMULA.match(plain) or text[:1] in ("\t", "\r", "\n")
    return f"'{plain}" if is_formula else plain


def iso(at: float) -> str:
    """Write a moment as ISO 8601 in UTC: people and spreadsheets both read it."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="seconds" if at == int(at) else "milliseconds").replace("+00:00", "Z")


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return safe_text(cell)
    if isinstance(cell, float):
        return "" if not math.isfinite(cell) else f"{cell:.10g}"
    return str(cell)
