"""A month's report as Markdown and as a page: whatever a node or a person is called, it is only text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from msgspec import structs

from gpuherd.api.past.month_page import PAGE_POLICY, month_page
from gpuherd.api.past.month_text import month_text, plain
from gpuherd.api.past.month_words import key_figures
from gpuherd.model.history import (
    DISTRIBUTION_EDGES,
    BookingUsage,
    Distribution,
    HourMap,
    MissingPart,
    MonthlyReport,
    UsageFigures,
    UsageKey,
    UsageOverTime,
    UsageReport,
    UsageRow,
)
from gpuherd.model.text import clean

OCTOBER = 1_790_812_800.0
HOSTILE = [
    "<script>alert(1)</script>",
    "</style></svg><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "a | b | c",
    "[x](javascript:alert(1))",
    "![x](http://evil/x.png)",
    "http://evil.example",
    "www.evil.example",
    "@everyone :skull: $x$ #1 me@evil.example",
    "back\\slash \\| pipe",
    "`code` **bold** _it_ ~~gone~~ # head",
    "&lt;b&gt; &amp;",
    "line\nbreak\r\n\n# head",
    "\u202eevil\x1b[31m",
    "=cmd()",
]


def figures(hours: float, **changes: float | None) -> UsageFigures:
    return structs.replace(
        UsageFigures(
            gpu_hours=hours,
            busy_hours=hours * 0.75,
            idle_hours=hours * 0.25,
            unknown_hours=0.0,
            efficiency=0.75,
            mean_utilization=0.5,
            memory_gib_hours=hours,
            energy_kwh=hours / 2,
            cost=None,
        ),
        **changes,
    )


def report_by(by: UsageKey, labels: list[str], **changes: object) -> UsageReport:
    rows = tuple(
        UsageRow(key=label, label=label, figures=figures(100.0 / (n + 1)), users=1, devices=1, sessions=1)
        for n, label in enumerate(labels)
    )
    report = UsageReport(start=OCTOBER, end=OCTOBER + 31 * 86_400, by=by, rows=rows, totals=figures(300.0))
    return structs.replace(report, **changes)


def month(labels: list[str], **changes: object) -> MonthlyReport:
    days = [OCTOBER + 86_400 * day for day in range(31)]
    report = MonthlyReport(
        month="2026-10",
        zone="Europe/Berlin",
        is_complete=True,
        by_user=report_by("user", labels, capacity_hours=1000.0),
        by_group=report_by("group", labels),
        by_type=report_by("type", labels),
        by_node=report_by("node", labels),
        previous=figures(200.0),
        hours=HourMap(
            start=OCTOBER,
            end=OCTOBER + 31 * 86_400,
            zone="Europe/Berlin",
            busy=[[0.5] * 23 + [None] for _ in range(7)],
            held=[[0.1] * 24 for _ in range(7)],
            free=[[0.4] * 24 for _ in range(7)],
            hours=[[10.0] * 24 for _ in range(7)],
        ),
        distribution=Distribution(
            start=OCTOBER,
            end=OCTOBER + 31 * 86_400,
            edges=list(DISTRIBUTION_EDGES),
            hours=[1.0] * (len(DISTRIBUTION_EDGES) - 1),
            by_type={},
        ),
        by_day=UsageOverTime(
            start=OCTOBER,
            end=OCTOBER + 31 * 86_400,
            by="user",
            step="day",
            times=days,
            keys=list(labels),
            labels=labels,
            gpu_hours=[[1.0] * 31 for _ in labels],
            busy_hours=[[0.5] * 31 for _ in labels],
            others_gpu_hours=[0.25] * 31,
            others_busy_hours=[0.1] * 31,
        ),
    )
    return structs.replace(report, **changes)


class Page(HTMLParser):
    """What a browser would see: elements, attributes and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_has_nothing_but_what_we_wrote() -> None:
    tame, hostile = Page(month_page(month(["ada"]), OCTOBER)), Page(month_page(month(HOSTILE), OCTOBER))
    assert hostile.tags == tame.tags
    assert hostile.attributes == tame.attributes
    assert not tame.tags & {"script", "img", "link", "iframe", "a", "form", "object"}
    assert not any(name.startswith("on") or name in ("href", "src", "style") for name in tame.attributes)
    assert "<script>alert(1)</script>" in hostile.texts
    assert not any(sign in month_page(month(HOSTILE), OCTOBER) for sign in ("\x1b", "\u202e"))


def test_a_page_may_do_nothing_but_look_good() -> None:
    page = month_page(month(["ada"]), OCTOBER)
    assert PAGE_POLICY.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe-inline" not in PAGE_POLICY
    assert len(re.findall("<style>", page)) == 1
    assert "url(" not in page
    assert "@import" not in page


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_names_as_they_are(text: str) -> None:
    told = plain(text)
    assert "\n" not in told
    assert re.search(r"(?<!\\)(?:\\\\)*[|<>\[\]`*_#&~!:@$]", told) is None
    assert "www." not in told
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", told) == clean(text).strip()


def test_every_row_of_a_table_has_as_many_cells() -> None:
    text = month_text(month(HOSTILE), OCTOBER)
    counts: list[int] = []
    for line in text.splitlines():
        if line.startswith("|"):
            counts.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(counts)) <= 1
            counts = []
    assert text.count("\n## ") == 6  # four tables, hours, distribution: no name has become a heading


def test_the_month_is_compared_with_the_one_before() -> None:
    told = {figure.name: figure for figure in key_figures(month(["ada"]))}
    assert (told["GPU-hours used"].value, told["GPU-hours used"].change) == ("300", "+50%")
    assert told["Efficiency (busy of used)"].change == "unchanged"
    assert told["of these used"].value == "30%"
    assert "Cost" not in told
    unfinished = key_figures(month(["ada"], is_complete=False))
    assert all(
        figure.change == "" for figure in unfinished
    )  # a part of a month is not compared with a whole one
    first = key_figures(month(["ada"], previous=None))
    assert all(figure.change == "" for figure in first)


def test_costs_bookings_and_what_is_missing_are_told() -> None:
    by_user = report_by(
        "user",
        ["ada"],
        currency="EUR",
        totals=figures(300.0, cost=1234.5, idle_cost=100.0),
        bookings=BookingUsage(booked_hours=10.0, used_hours=4.0, others_hours=1.0, unused_hours=5.0),
        missing=(MissingPart(start=OCTOBER, end=OCTOBER + 3600, reason="a file cannot be read"),),
    )
    report = month(["ada"], by_user=by_user, is_complete=False)
    for told in (month_text(report, OCTOBER), month_page(report, OCTOBER)):
        for words in ("1,234.50 EUR", "100.00 EUR", "40%", "a file cannot be read", "not over"):
            assert words in told.replace("\\", "")


def test_a_herd_that_nobody_used() -> None:
    nothing = figures(0.0, efficiency=None, mean_utilization=None, energy_kwh=None)
    empty = report_by("user", [], totals=nothing)
    report = month([], by_user=empty, previous=None)
    assert "Nobody held a GPU." in month_page(
        structs.replace(report, by_day=structs.replace(report.by_day, others_gpu_hours=[0.0] * 31)), OCTOBER
    )
    assert "GPU usage in October 2026" in month_text(report, OCTOBER)
