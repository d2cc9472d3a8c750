"""A month's report as one page that needs nothing else: no script, no font, no picture from anywhere; it prints well.

Everything that is not written here is escaped, also what was cleaned before.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from html import escape
from zoneinfo import ZoneInfo

from gpuherd.api.past.month_words import Table, daily, headline, hours, key_figures, notes, share, tables
from gpuherd.model.history import MonthlyReport
from gpuherd.model.text import clean

__all__ = ["PAGE_POLICY", "month_page"]

COLOURS = ("#3b6fb6", "#d9822b", "#4a9b5f", "#b5495b", "#7d5fb2", "#8a6d3b", "#3a9da8", "#c2679d", "#9aa3ad")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_STYLE = """
:root { color-scheme: light; }
body { font: 14px/1.45 system-ui, sans-serif; color: #1c2430; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; break-after: avoid; }
p { margin: .2rem 0; color: #4b5768; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid #e3e7ec; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; }
th { font-weight: 600; color: #4b5768; }
tr { break-inside: avoid; }
svg { display: block; max-width: 100%; height: auto; }
svg text { font: 10px system-ui, sans-serif; fill: #4b5768; }
td svg { width: 8rem; height: .7rem; }
.keys td:first-child { width: 55%; }
.legend span { display: inline-block; margin: 0 .9rem .2rem 0; }
.legend svg { display: inline-block; width: .7rem; height: .7rem; margin-right: .3rem; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } h2 { margin-top: 1.2rem; } }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PAGE_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox"
)
"""What a browser lets the page do: apply its one style sheet."""


def month_page(report: MonthlyReport, written_at: float) -> str:
    """Write the report."""
    title = _text(headline(report))
    body = [
        f"<h1>{title}</h1>",
        *(f"<p>{_text(note)}</p>" for note in notes(report, written_at)),
        _keys(report),
    ]
    body += ["<h2>Day by day</h2>", _daily(report)]
    for table in tables(report):
        body += [f"<h2>{_text(table.title)}</h2>", _table(table)]
    body += ["<h2>When the herd is busy</h2>", _hours(report)]
    body += ["<h2>Utilisation of GPUs in use</h2>", _distribution(report)]
    inner = "\n".join(body)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{inner}\n</body>\n</html>\n"
    )


def _text(text: str, length: int = 500) -> str:
    return escape(clean(text, length))


def _keys(report: MonthlyReport) -> str:
    rows = "".join(
        f"<tr><td>{_text(one.name)}</td><td>{_text(one.value)}</td><td>{_text(one.change)}</td></tr>"
        for one in key_figures(report)
    )
    head = "<tr><th></th><th>This month</th><th>Compared with the previous month</th></tr>"
    return f'<table class="keys"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in table.header) + "<th></th>"
    rows = []
    for cells, (busy, held) in zip(table.rows, table.shares, strict=True):
        told = "".join(f"<td>{_text(cell, 128)}</td>" for cell in cells)
        rows.append(f"<tr>{told}<td>{_bar(busy, held)}</td></tr>")
    note = f"<p>{_text(table.note)}</p>" if table.note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{note}"


def _bar(busy: float, held: float) -> str:
    return (
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{_percent(held)}" height="8" fill="#cfd9e6"/>'
        f'<rect width="{_percent(busy)}" height="8" fill="{COLOURS[0]}"/></svg>'
    )


def _percent(part: float) -> str:
    return f"{max(0.0, min(1.0, part)) * 100:.2f}"


def _daily(report: MonthlyReport) -> str:
    """Draw a stacked bar for each day."""
    labels, series = daily(report)
    times = report.by_day.times
    most = max((sum(one[place] for one in series) for place in range(len(times))), default=0.0)
    if most <= 0:
        return "<p>Nobody held a GPU.</p>"
    width, height = 20.0, 140.0
    zone = ZoneInfo(report.zone)
    shapes = [f'<text x="0" y="9">{hours(most)} GPU-hours</text>']
    for place, at in enumerate(times):
        left, top = place * width, height + 14
        for number, values in enumerate(series):
            tall = values[place] / most * height
            top -= tall
            if tall > 0.05:
                colour = COLOURS[-1] if number == len(series) - 1 else COLOURS[number % (len(COLOURS) - 1)]
                shapes.append(
                    f'<rect x="{left + 1:.1f}" y="{top:.2f}" width="{width - 2:.1f}" height="{tall:.2f}" '
                    f'fill="{colour}"/>'
                )
        day = datetime.fromtimestamp(at, zone).day
        shapes.append(
            f'<text x="{left + width / 2:.1f}" y="{height + 26:.1f}" text-anchor="middle">{day}</text>'
        )
    legend = "".join(
        f'<span><svg viewBox="0 0 10 10" width="10" height="10"><rect width="10" height="10" '
        f'fill="{COLOURS[-1] if number == len(labels) - 1 else COLOURS[number % (len(COLOURS) - 1)]}"/></svg>'
        f"{_text(label, 128)}</span>"
        for number, label in enumerate(labels)
    )
    picture = (
        f'<svg viewBox="0 0 {len(times) * width:.0f} {height + 30:.0f}" role="img">{"".join(shapes)}</svg>'
    )
    return f'{picture}<p class="legend">{legend}</p>'


def _hours(report: MonthlyReport) -> str:
    """Draw seven days by 24 hours: the darker, the more devices at work."""
    cell = 22
    shapes = []
    for day, busy in enumerate(report.hours.busy):
        shapes.append(f'<text x="0" y="{day * cell + 32}">{DAYS[day]}</text>')
        for hour, part in enumerate(busy):
            place = f'x="{30 + hour * cell}" y="{day * cell + 18}" width="{cell - 2}" height="{cell - 2}"'
            if part is None:
                shapes.append(f'<rect {place} fill="none" stroke="#e3e7ec"/>')
                continue
            shade = f"{0.08 + 0.92 * max(0.0, min(1.0, part)):.2f}"
            shapes.append(
                f'<rect {place} fill="{COLOURS[0]}" fill-opacity="{shade}"><title>{DAYS[day]} '
                f"{hour:02}:00: {share(part)} busy</title></rect>"
            )
    heads = "".join(f'<text x="{30 + hour * cell}" y="12">{hour}</text>' for hour in range(0, 24, 3))
    size = f"0 0 {30 + 24 * cell} {18 + 7 * cell}"
    return (
        f'<svg viewBox="{size}" role="img">{heads}{"".join(shapes)}</svg><p>Share of devices that were '
        "busy.</p>"
    )


def _distribution(report: MonthlyReport) -> str:
    told = report.distribution
    total = sum(told.hours)
    most = max(told.hours, default=0.0) or 1.0
    rows = "".join(
        f"<tr><td>{low:.0%} to {high:.0%}</td><td>{hours(spent)}</td>"
        f"<td>{share(spent / total if total else None)}</td><td>{_bar(spent / most, spent / most)}</td></tr>"
        for low, high, spent in zip(told.edges[:-1], told.edges[1:], told.hours, strict=True)
    )
    head = "<tr><th>Utilisation</th><th>Device-hours</th><th>Share</th><th></th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
