"""The usage page: figures, the table in its five ways, plots, whom to ask, files."""

from __future__ import annotations

import functools
import json
import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import Complaints
from e2e.hub_process import DemoProcess, HubProcess, ask
from e2e.places import expect_no_overflow, show
from e2e.reports import IDLE, gpu, working
from e2e.reports import report as node_report
from e2e.test_accessibility import violations_in
from e2e.usage_answers import DAY, UsageAnswers, figures, report
from gpuherd.model.history import MissingPart, UsageReport, UsageRow
from gpuherd.model.processes import Process
from support.running import eventually


@pytest.fixture
def answers(page: Page) -> UsageAnswers:
    return UsageAnswers(page)


def _open(page: Page, demo: DemoProcess | HubProcess, what: str = "") -> None:
    show(page, f"{demo.url}?usage{what}")
    expect(page.locator("[data-usage]")).to_have_attribute("aria-busy", "false")


def _names(page: Page) -> list[str]:
    return page.locator("[role=table] [data-key] [role=rowheader]").all_inner_texts()


def test_it_is_reached_from_the_bar_and_by_keys(page: Page, demo: DemoProcess, answers: UsageAnswers) -> None:
    show(page, demo.url)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Usage").click()
    expect(page.locator("[data-figure=hours]")).to_contain_text("GPU-hours used")
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.locator("[data-usage]")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile(r"\?usage$"))
    assert answers.last("usage")["by"] in ("user", "type")


def test_four_figures_are_compared_with_the_time_before(
    page: Page, demo: DemoProcess, answers: UsageAnswers
) -> None:
    _open(page, demo)
    hours = page.locator("[data-figure=hours]")
    expect(hours).to_contain_text("3,103")
    expect(hours).to_contain_text("50 % of 6,206 available GPU-hours")
    expect(hours).to_contain_text(re.compile(r"\+\d+ % before: 1,833"))
    expect(page.locator("[data-figure=efficiency]")).to_contain_text("67 %")
    expect(page.locator("[data-figure=waste]")).to_contain_text("931")
    expect(page.locator("[data-figure=energy]")).to_contain_text("962 kWh")
    (now, before) = (
        next(query for name, query in answers.asked if name == "usage" and query["by"] == by)
        for by in ("user", "type")
    )
    assert float(now["to"]) - float(now["from"]) == pytest.approx(29.5 * DAY, abs=0.6 * DAY)
    assert float(before["to"]) < float(now["to"]) - 29 * DAY


def test_the_table_is_sorted_searched_and_cut_by_the_address(
    page: Page, demo: DemoProcess, answers: UsageAnswers
) -> None:
    _open(page, demo)
    assert _names(page)[:3] == ["ada", "bo", "unknown user"]
    assert page.get_by_role("columnheader", name="GPU-hours").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="User", exact=True).click()
    assert _names(page)[-1] == "unknown user", "what has no name comes last"
    expect(page).to_have_url(re.compile(r"\?usage=name$"))
    page.get_by_role("searchbox", name="Find in this table").fill("D")
    expect(page.locator("[data-key]")).to_have_count(3)
    assert _names(page) == ["ada", "dee", "ida"]
    expect(page.get_by_role("row", name=re.compile("^All"))).to_have_count(0)
    page.get_by_role("navigation", name="By").get_by_role("link", name="Group").click()
    expect(page.get_by_role("table", name="Usage by group")).to_be_visible()
    assert _names(page) == ["speech", "vision", "no group"]
    expect(page).to_have_url(re.compile(r"\?usage=group\.name$"))
    page.go_back()
    expect(page.get_by_role("table", name="Usage by user")).to_be_visible()


def test_a_long_table_shows_some_and_my_own_row(page: Page, demo: DemoProcess) -> None:
    def many(by: str, start: float, end: float) -> UsageReport:
        rows = tuple(
            UsageRow(
                key=f"user{n}", label=f"user{n}", figures=figures(900.0 - n), users=1, devices=1, sessions=1
            )
            for n in range(600)
        )
        return report("user", start, end, rows=rows)

    UsageAnswers(page, many)
    page.add_init_script("localStorage.setItem('gpuherd.me', 'user500')")
    _open(page, demo)
    assert _names(page)[-1] == "user500\nyou"
    expect(page.locator("[data-key]")).to_have_count(26)
    page.get_by_role("button", name="Show all 600 users").click()
    expect(page.locator("[data-key]")).to_have_count(600)


def test_a_row_opens_to_the_stays_behind_it(page: Page, demo: DemoProcess, answers: UsageAnswers) -> None:
    _open(page, demo)
    toggle = page.get_by_role("button", name="Sessions of ada: 40")
    toggle.click()
    expect(toggle).to_have_attribute("aria-expanded", "true")
    stays = page.get_by_role("table", name="Sessions, latest first")
    expect(stays.get_by_role("row")).to_have_count(4)
    expect(stays.get_by_role("row").nth(1)).to_contain_text("running")
    expect(page.get_by_text("These are the latest 20")).to_be_visible()
    assert answers.last("usage/sessions")["user"] == "ada"
    toggle.click()
    expect(stays).to_have_count(0)


def test_ranges_are_chosen_and_stand_in_the_address(
    page: Page, demo: DemoProcess, answers: UsageAnswers
) -> None:
    _open(page, demo)
    page.get_by_text("Last month", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?usage=last-month$"))
    expect(page.locator("[data-usage]")).to_have_attribute("aria-busy", "false")
    page.get_by_text("Custom", exact=True).click()
    page.get_by_label("First day").fill("2026-03-10")
    page.get_by_label("Last day").fill("2026-03-01")
    page.get_by_role("button", name="Apply").click()
    assert page.get_by_label("Last day").evaluate("field => field.validity.rangeUnderflow")
    expect(page).to_have_url(re.compile(r"\?usage=last-month$"))
    page.get_by_label("Last day").fill("2026-03-11")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"\?usage=2026-03-10_2026-03-11$"))
    expect(page.get_by_text("From Tue 10 Mar 00:00")).to_be_visible()
    asked = answers.last("usage/over-time")
    assert asked["step"] == "hour"
    assert float(asked["to"]) - float(asked["from"]) == 2 * DAY


def test_plots_are_read_with_keys(page: Page, demo: DemoProcess, answers: UsageAnswers) -> None:
    _open(page, demo, "=7d")
    plot = page.get_by_role("slider", name="GPU-hours over time")
    expect(plot).to_have_attribute("aria-valuetext", re.compile(r"^Whole range: Total [\d.]+, ada [\d.]+"))
    plot.focus()
    plot.press("Home")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("some data is missing"))
    plot.press("End")
    expect(plot).to_have_attribute("aria-valuetext", re.compile(datetime.now(tz=UTC).strftime("%b")))
    page.get_by_text("Busy", exact=True).locator("visible=true").first.click()

    hours = page.get_by_role("grid", name="Share of the GPUs by weekday and hour")
    hours.focus()
    readout = page.locator("[data-readout]")
    expect(readout).to_contain_text(re.compile(r"Monday 00:00–01:00: \d+ % of the GPUs busy"))
    for key in ("ArrowDown",) * 6:
        hours.press(key)
    expect(readout).to_contain_text("Sunday 00:00–01:00: unknown")
    active = hours.get_attribute("aria-activedescendant")
    assert page.locator(f"[id='{active}']").get_attribute("aria-label") == "Sunday 00:00–01:00: unknown"

    distribution = page.get_by_role("region", name="Utilisation of GPUs in use")
    before = distribution.inner_text()
    distribution.get_by_label("Type").select_option("RTX 3090")
    assert distribution.inner_text() != before
    expect(page.get_by_role("region", name="Booked and used")).to_contain_text("60 % of 500 booked")


def test_whom_to_ask_has_the_trend_in_words(page: Page, demo: DemoProcess, answers: UsageAnswers) -> None:
    _open(page, demo)
    ask = page.get_by_role("region", name="Who to ask")
    expect(ask).to_contain_text(
        re.compile(r"Until [^.]*\b21\b[^.]*, the averages are those of the older page\.")
    )
    expect(ask.get_by_role("row").nth(1)).to_contain_text("free")
    expect(ask.get_by_role("row", name=re.compile("^ada"))).to_contain_text("more now")
    expect(ask.get_by_role("row", name=re.compile("^bo"))).to_contain_text("less now")
    expect(ask.get_by_role("row", name=re.compile("^unknown user"))).to_contain_text("the same now")


def test_files_are_of_what_is_shown(page: Page, demo: DemoProcess, answers: UsageAnswers) -> None:
    _open(page, demo, "=node.last-month")
    table = page.get_by_role("group", name="This table, by node")
    asked = answers.last("usage/over-time")
    for name, kind in (("CSV", "csv"), ("JSON", "json")):
        href = table.get_by_role("link", name=name).get_attribute("href") or ""
        assert href.startswith(f"{demo.url}api/v1/usage?by=node")
        assert f"from={asked['from']}&to={asked['to']}" in href
        assert href.endswith(f"format={kind}")
    months = page.get_by_role("group", name="Monthly report")
    months.get_by_role("combobox").select_option(index=2)
    month = months.get_by_role("combobox").input_value()
    link = months.get_by_role("link", name="Web page")
    expect(link).to_have_attribute("href", re.compile(rf"/api/v1/usage/months/{month}\?zone=.*&format=html$"))


def test_what_is_missing_is_said(page: Page, demo: DemoProcess) -> None:
    def begun(by: str, start: float, end: float) -> UsageReport:
        part = MissingPart(start=start, end=end - 3600, reason="history begins here")
        return report("user", start, end, rows=(), missing=(part,))

    UsageAnswers(page, begun)
    _open(page, demo)
    expect(page.locator("[data-missing]")).to_contain_text("history begins here")
    expect(page.get_by_text("No usage in this range")).to_be_visible()
    expect(page.get_by_text(re.compile("^History starts"))).to_be_visible()
    expect(page.locator("[data-figure]")).to_have_count(0)


def test_a_history_that_is_off_says_so(page: Page, demo: DemoProcess, complaints: Complaints) -> None:
    body = {"error": {"code": "history_off", "message": "history is switched off on this hub"}}
    page.route(
        "**/api/v1/usage**",
        lambda route: route.fulfill(status=503, body=json.dumps(body), content_type="application/json"),
    )
    page.route(
        "**/api/v1/usage/**",
        lambda route: route.fulfill(status=503, body=json.dumps(body), content_type="application/json"),
    )
    _open(page, demo)
    expect(page.get_by_role("alert")).to_contain_text("History is switched off on this hub.")
    complaints.messages = [text for text in complaints.messages if "status of 503" not in text]


def test_everyone_can_read_it(page: Page, demo: DemoProcess) -> None:
    UsageAnswers(page, functools.partial(report, currency="EUR"))
    _open(page, demo)
    expect(page.get_by_role("grid")).to_be_visible()
    page.get_by_role("button", name="Sessions of bo: 39").click()
    expect(page.get_by_role("table", name="Sessions")).to_be_visible()
    found = violations_in(page)
    assert found == {}, json.dumps(found, indent=1)
    for width in (320, 390, 768, 1024):
        page.set_viewport_size({"width": width, "height": 844})
        expect_no_overflow(page, f"usage at {width}")


def test_a_real_hub_counts_what_its_nodes_report(page: Page, hub: HubProcess) -> None:
    node = hub.join("alpha")
    devices = [(gpu(0, uuid="GPU-alpha-0"), working(0.9)), (gpu(1, uuid="GPU-alpha-1"), IDLE)]
    processes = [
        (0, Process(pid=11, user="ada", command="python train.py")),
        (1, Process(pid=12, user="bo", command="sleep")),
    ]

    def counted() -> dict[str | None, float]:
        node.report(node_report(devices, processes=processes))
        rows = ask(f"{hub.url}api/v1/usage")["rows"]
        return {row["key"]: row["figures"]["gpu_hours"] for row in rows}

    eventually(counted, lambda rows: rows.get("ada", 0) > 0 and rows.get("bo", 0) > 0)
    _open(page, hub, "=7d")
    for user, at_work in (("ada", "100 %"), ("bo", "0 %")):
        row = page.locator(f"[data-key={user}]")
        expect(row).to_be_visible()
        expect(row.locator(".efficiency")).to_contain_text(at_work)
    expect(page.locator("[data-missing]")).to_contain_text("to")  # nothing is known of the days before
    expect(page.get_by_text("No comparison")).to_be_visible()
    expect(page.get_by_role("grid")).to_be_visible()
    page.get_by_role("navigation", name="By").get_by_role("link", name="Node").click()
    expect(page.get_by_role("rowheader", name="alpha")).to_be_visible()
    csv = page.get_by_role("group", name="This table, by node").get_by_role("link", name="CSV")
    with page.expect_download() as download:
        csv.click()
    assert "alpha" in download.value.path().read_text()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Users").click()
    ask_card = page.get_by_role("region", name="Who to ask")
    expect(ask_card.locator("[data-holder=ada]")).to_be_visible()
