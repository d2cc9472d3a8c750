"""A month's report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuherd.api.past.month_words import Table, headline, hours, key_figures, notes, share, tables
from gpuherd.model.history import MonthlyReport
from gpuherd.model.text import clean

__all__ = ["month_text", "plain"]

_MARKS = re.compile(r"([\\`*_\[\]<>&|~!$:@#])")
"""What means something within a line, also to the dialects that know mentions, emoji and formulas."""
_BARE_LINK = re.compile(r"\bwww\.", re.IGNORECASE)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
LABEL_LENGTH = 128


def plain(text: str) -> str:
    """Write a text so that Markdown shows it as it is: no link, no HTML, no other cell."""
    marked = _MARKS.sub(r"\\\1", clean(text, LABEL_LENGTH).strip())
    return _BARE_LINK.sub(lambda found: found[0][:-1] + r"\.", marked) or "\N{NO-BREAK SPACE}"


def month_text(report: MonthlyReport, written_at: float) -> str:
    """Write the report."""
    parts = [
        f"# {headline(report)}",
        "\n".join(f"{note}  " for note in map(_sentence, notes(report, written_at))),
    ]
    figures = [(one.name, one.value, one.change) for one in key_figures(report)]
    parts.append(_table(("", "This month", "Compared with the previous month"), figures))
    for table in tables(report):
        parts += [f"## {table.title}", _told(table)]
    parts += ["## When the herd is busy", _hours(report)]
    parts += ["## Utilisation of GPUs in use", _distribution(report)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _sentence(text: str) -> str:
    # Reasons come from the hub itself; they may name a zone or a file, whose dots and dashes stay readable.
    return re.sub(r"([\\`*_\[\]<>&|#~])", r"\\\1", clean(text, 500))


def _told(table: Table) -> str:
    return _table(table.header, table.rows) + (f"\n\n{plain(table.note)}" if table.note else "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *("--:" for _ in header[1:])], *rows]
    return "\n".join(
        "| " + " | ".join(cell if number == 1 else plain(cell) for cell in line) + " |"
        for number, line in enumerate(lines)
    )


def _hours(report: MonthlyReport) -> str:
    """Give the share of devices at work, three hours at a time: 24 columns are too wide for a page of text."""
    rows = []
    for day, (busy, weights) in enumerate(zip(report.hours.busy, report.hours.hours, strict=True)):
        cells = [DAYS[day]]
        for first in range(0, 24, 3):
            known = [
                (busy[hour], weights[hour]) for hour in range(first, first + 3) if busy[hour] is not None
            ]
            weight = sum(one[1] for one in known)
            mean = None if not weight else sum((one[0] or 0.0) * one[1] for one in known) / weight
            cells.append(share(mean))
        rows.append(cells)
    return _table(["At work", *(f"{hour:02}–{hour + 3:02} h" for hour in range(0, 24, 3))], rows)


def _distribution(report: MonthlyReport) -> str:
    told = report.distribution
    total = sum(told.hours)
    rows = [
        (
            f"{low:.0%} to {high:.0%}",
            hours(spent),
            share(spent / total if total else None),
        )
        for low, high, spent in zip(told.edges[:-1], told.edges[1:], told.hours, strict=True)
    ]
    return _table(("Utilisation", "Device-hours", "Share"), rows)
