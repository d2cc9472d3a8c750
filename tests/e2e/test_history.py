"""Charts of the past: ranges in the address, zooming, comparing, bands, pictures and tables, for eyes and for ears."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from e2e.conftest import Complaints
from e2e.hub_process import DemoProcess, HubProcess, ask
from e2e.past import Past
from e2e.places import WIDTHS, expect_no_overflow
from e2e.reports import IDLE, gpu, report, working
from e2e.test_accessibility import violations
from gpuherd.model.history import MissingPart
from gpuherd.model.processes import Process
from support.running import PATIENCE_SECONDS, eventually

CHARTS = ("Utilisation", "Memory", "Temperature", "Power", "SM clock", "Node")
DAY = 86_400


@pytest.fixture(scope="module")
def known_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("past"))
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


@pytest.fixture(scope="module")
def herd(known_hub: HubProcess) -> str:
    """Give the address of a hub with one node: ada is at work on its first GPU."""
    known_hub.join("alpha").report(
        report(
            [(gpu(i, uuid=f"GPU-alpha-{i}"), working(0.9) if i == 0 else IDLE) for i in range(3)],
            processes=[(0, Process(pid=11, user="ada", command="python train.py"))],
        )
    )
    return known_hub.url


@pytest.fixture
def past(page: Page) -> Past:
    made = Past()
    made.serve(page)
    return made


def _go(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator("main")).to_have_attribute("data-live", "true")


def _drawn(page: Page, count: int = len(CHARTS)) -> None:
    """Wait until every chart has been drawn from an answer."""
    expect(page.locator("figure[data-chart] canvas")).to_have_count(count)
    expect(page.locator("[data-points]")).to_be_visible()
    expect(page.locator('figure[aria-busy="true"]')).to_have_count(0)


def _pointed_at(
    page: Page, plot: Locator, pattern: str, *, share: float = 0.25, by_finger: bool = False
) -> FloatRect:
    """Point at a share of a chart's width until its tooltip fits, and return where the chart is.

    It moves while the page fills up around it.
    """
    tooltip = page.locator(".tooltip")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        plot.evaluate("plot => plot.scrollIntoView({block: 'center'})")
        box = plot.bounding_box()
        assert box is not None
        point = (box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        if by_finger:
            page.touchscreen.tap(*point)
        else:
            page.mouse.move(*point)
        if any(re.search(pattern, text, re.DOTALL) for text in tooltip.all_inner_texts()):
            return box
        assert time.monotonic() < deadline, f"no tooltip fits {pattern}"
        if not by_finger:
            page.mouse.move(0, 0)


def test_a_range_stands_in_the_address_and_back_leads_back(page: Page, herd: str, past: Past) -> None:
    _go(page, f"{herd}?gpu=GPU-alpha-0")
    expect(page.get_by_role("heading", name=re.compile("Last 15 minutes|Since"))).to_be_visible()
    assert past.asked == []
    page.get_by_role("button", name="24 h", exact=True).click()
    expect(page.get_by_role("heading", name="Last 24 hours")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?gpu=GPU-alpha-0&range=24h$"))
    _drawn(page)
    expect(page.locator("[data-points]")).to_have_text(
        "One point per 5 min · line: mean; band: lowest to highest · from rollups of 1 min"
    )
    page.get_by_role("button", name="Earlier").click()
    expect(page).to_have_url(re.compile(r"range=\d+-\d+$"))
    expect(page.get_by_role("button", name="Later")).to_be_enabled()
    page.get_by_role("button", name="Later").click()
    expect(page).to_have_url(re.compile(r"range=24h$"))
    page.get_by_role("button", name="Live", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?gpu=GPU-alpha-0$"))
    page.go_back()
    expect(page.get_by_role("heading", name="Last 24 hours")).to_be_visible()
    # Links take the range along.
    page.get_by_role("navigation", name="Where you are").get_by_role("link", name="alpha").click()
    expect(page).to_have_url(re.compile(r"\?node=alpha&range=24h$"))
    _drawn(page)


def test_a_drag_zooms_and_one_cursor_tells_values_and_users(page: Page, herd: str, past: Past) -> None:
    _go(page, f"{herd}?gpu=GPU-alpha-0&range=24h")
    _drawn(page)
    plot = page.locator('figure[data-chart="Utilisation"] .u-over')
    # Where ada was, and what the samples behind the point were.
    _pointed_at(page, plot, r"\d\d:\d\d – (\w+ \d+ \w+,? )?\d\d:\d\d.*GPU 0\s*\d+ – \d+\s*\d+ %.*ada")
    expect(page.locator("figure .u-cursor-x:not(.u-off)")).to_have_count(len(CHARTS))
    expect(page.locator(".cursor span")).to_have_count(1)
    _pointed_at(page, plot, "nobody", share=0.02)
    asked = len(past.asked)
    box = _pointed_at(page, plot, "ada")
    middle = box["y"] + box["height"] / 2
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"range=\d+-\d+$"))
    begin, end = (int(part) for part in page.url.split("range=")[1].split("-"))
    assert 0.23 * DAY < end - begin < 0.27 * DAY
    assert 0.7 * DAY < time.time() - begin < 0.8 * DAY
    _drawn(page)
    # The device, its host, and who was there; each once, whatever was pointed at.
    assert sorted(address.split("/api/v1/")[1].split("?")[0] for address in past.asked[asked:]) == [
        "history/devices",
        "history/nodes/alpha",
        "usage/sessions",
    ]
    page.get_by_role("button", name="Reset the zoom").click()
    expect(page).to_have_url(re.compile(r"range=24h$"))


def test_keys_do_all_that_a_mouse_does(page: Page, herd: str, past: Past) -> None:
    _go(page, f"{herd}?gpu=GPU-alpha-0&range=6h")
    _drawn(page)
    cursor = page.get_by_role("slider", name="Power over time")
    cursor.focus()
    page.keyboard.press("Home")
    expect(cursor).to_have_attribute("aria-valuetext", re.compile(r"\d\d:\d\d.*: GPU 0 \d+ W$"))
    first = cursor.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowRight")
    expect(cursor).not_to_have_attribute("aria-valuetext", first or "")
    expect(page.locator(".tooltip")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".tooltip")).to_have_count(0)
    page.keyboard.press("Shift+ArrowLeft")
    expect(page).to_have_url(re.compile(r"range=\d+-\d+$"))
    begin, end = (int(part) for part in page.url.split("range=")[1].split("-"))
    assert abs(end - begin - 6 * 3600) < 2
    expect(cursor).to_be_focused()
    page.keyboard.press("+")
    page.wait_for_function(
        "() => { const [a, b] = location.search.split('range=')[1].split('-'); return b - a < 11000 }"
    )


def test_gaps_stay_gaps_and_are_told_in_words(page: Page, herd: str, past: Past) -> None:
    now = time.time()
    past.gap = (0.5, 2.0)
    past.missing = (MissingPart(start=now - 0.9 * DAY, end=now - 0.8 * DAY, reason="a file cannot be read"),)
    _go(page, f"{herd}?gpu=GPU-alpha-0&range=24h")
    _drawn(page)
    missing = page.get_by_role("list", name="Missing data")
    expect(missing).to_contain_text("a file cannot be read")
    expect(missing).to_contain_text("No data after")
    expect(page.get_by_role("list", name="Utilisation", exact=True)).to_contain_text(
        re.compile(r"GPU 0: \d+ % on average, between \d+ % and \d+ %; known for 50 % of the range\.")
    )
    # The right half has no line: it ends where the values do.
    ends = page.locator('figure[data-chart="Utilisation"]').evaluate(
        """figure => {
            const canvas = figure.querySelector('canvas'), over = figure.querySelector('.u-over');
            const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height})
                .getContext('2d', {willReadFrequently: true});
            copy.drawImage(canvas, 0, 0);
            const scale = canvas.width / canvas.clientWidth;
            const left = over.getBoundingClientRect().left - canvas.getBoundingClientRect().left;
            const {data} = copy.getImageData(left * scale, 0, over.clientWidth * scale, canvas.height);
            const width = Math.floor(over.clientWidth * scale), found = [];
            for (let i = 0; i < data.length; i += 4)
                if (data[i + 3] > 200 && data[i + 2] - data[i] > 60) found.push((i / 4) % width / width);
            return [Math.min(...found), Math.max(...found)];
        }"""
    )
    assert ends[0] < 0.2
    assert 0.4 < ends[1] < 0.55
    page.get_by_label("Utilisation: image or table").click()
    page.get_by_role("button", name="Show as table").click()
    table = page.get_by_role("region", name="Utilisation as table")
    expect(table.locator("tbody tr").first).to_contain_text(re.compile(r"\d+ % \(\d+ – \d+\)"))
    expect(table.locator("tbody tr").last).to_contain_text("–")
    expect(table.locator("tbody tr").last).not_to_contain_text("0 %")


def test_a_gpu_is_compared_with_others_and_with_the_time_before(page: Page, herd: str, past: Past) -> None:
    _go(page, f"{herd}?gpu=GPU-alpha-0&range=7d")
    _drawn(page)
    compare = page.get_by_role("group", name="Compare with")
    compare.get_by_role("button", name="GPU 2").click()
    compare.get_by_role("button", name="Previous period").click()
    expect(page).to_have_url(re.compile(r"compare=GPU-alpha-2%2Cprevious$"))
    lines = page.get_by_role("list", name="Power", exact=True).get_by_role("listitem")
    expect(lines).to_have_text(
        [re.compile("^GPU 0: "), re.compile("^GPU 2: "), re.compile("^GPU 0, previous period: ")]
    )
    spans = [
        tuple(float(re.findall(rf"{name}=([\d.]+)", address)[0]) for name in ("from", "to"))
        for address in past.asked
        if "history/devices" in address
    ]
    assert any(abs(one[1] - other[0]) < 1 for one in spans for other in spans), (
        "the time before was not asked for"
    )
    page.reload()
    expect(compare.get_by_role("button", name="GPU 2")).to_have_attribute("aria-pressed", "true")


def test_what_is_saved_is_a_picture_and_what_is_linked_a_table(page: Page, herd: str, past: Past) -> None:
    _go(page, f"{herd}?gpu=GPU-alpha-0&range=24h")
    _drawn(page)
    page.get_by_label("Power: image or table").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as image").click()
    assert re.fullmatch(
        r"gpuherd-alpha-0-power-\d{8}T\d{4}-\d{8}T\d{4}\.png", download.value.suggested_filename
    )
    data = download.value.path().read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(data) > 3000
    link = page.get_by_role("link", name="CSV")
    expect(link).to_have_attribute(
        "href", re.compile(r"history/devices\?device=alpha%3AGPU-alpha-0&.*format=csv$")
    )
    expect(link).to_have_attribute("download", re.compile(r"^gpuherd-alpha-0-.*\.csv$"))


def test_a_range_can_be_typed_and_what_makes_no_sense_is_said(page: Page, herd: str, past: Past) -> None:
    _go(page, f"{herd}?node=alpha&range=nonsense")
    expect(page.get_by_text("is not valid")).to_be_visible()
    page.get_by_role("button", name="Custom").click()
    page.get_by_label("From", exact=True).fill("2026-01-02 10:00")
    page.get_by_label("To", exact=True).fill("2026-01-02 09:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("The end must be after the start.")).to_be_visible()
    page.get_by_label("To", exact=True).fill("2026-01-02 12:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile(r"range=\d+-\d+$"))
    expect(page.get_by_role("heading", name=re.compile(r"Fri 2 Jan .*10:00 – 12:00"))).to_be_visible()


def test_the_herd_and_a_user_over_time(page: Page, herd: str, past: Past) -> None:
    _go(page, herd)
    button = page.get_by_role("button", name="Over time")
    expect(button).to_have_attribute("aria-expanded", "false")
    assert past.asked == []
    button.click()
    _drawn(page, 3)
    expect(page).to_have_url(re.compile(r"\?over-time$"))
    states = page.get_by_role("list", name="GPUs by state", exact=True).get_by_role("listitem")
    expect(states).to_have_text(
        [re.compile(f"^{state}: ") for state in ("busy", "held idle", "booked", "fault", "offline", "free")]
    )
    page.get_by_label("GPU type").select_option("H100 80GB")
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(e => e.name.includes('type=H100'))"
    )
    page.goto(f"{herd}?users")
    page.get_by_role("link", name="ada").click()
    expect(page).to_have_url(re.compile(r"\?user=ada$"))
    expect(page.get_by_role("heading", name="ada")).to_be_visible()
    _drawn(page, 3)
    expect(page.get_by_text("1 GPU", exact=True)).to_be_visible()
    expect(page.get_by_role("row").nth(1)).to_contain_text(
        re.compile(r"alpha-0.*job 17.*12\.5.*80 %.*3\.3 kWh", re.DOTALL)
    )


def test_everyone_can_read_the_past_at_any_width(page: Page, herd: str, past: Past) -> None:
    past.gap = (0.3, 0.4)
    for place, count in {
        "?gpu=GPU-alpha-0&range=30d&compare=previous": 6,
        "?over-time&range=90d": 3,
        "?user=ada&range=7d": 3,
    }.items():
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        _go(page, f"{herd}{place}")
        _drawn(page, count)
        assert violations(page) == [], place
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        assert violations(page) == [], f"{place}, dark"
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            expect_no_overflow(page, f"{place} at {width}")
        page.set_viewport_size({"width": 1280, "height": 900})


def test_a_finger_moves_the_cursor(herd: str, browser: Browser, browser_context_args: dict[str, Any]) -> None:
    context = browser.new_context(
        **{**browser_context_args, "has_touch": True, "viewport": {"width": 390, "height": 844}}
    )
    try:
        phone = context.new_page()
        Past().serve(phone)
        _go(phone, f"{herd}?gpu=GPU-alpha-0&range=24h")
        _drawn(phone)
        _pointed_at(phone, phone.locator('figure[data-chart="Utilisation"] .u-over'), "ada", by_finger=True)
    finally:
        context.close()


def test_a_hub_that_does_not_answer_is_told_and_asked_again(
    page: Page, herd: str, past: Past, complaints: Complaints
) -> None:
    complaints.may_lose_connection = True
    page.route("**/api/v1/history/**", lambda route: route.abort())
    _go(page, f"{herd}?gpu=GPU-alpha-0&range=24h")
    expect(page.get_by_text("Cannot reach the hub").first).to_be_visible()
    page.unroute("**/api/v1/history/**")
    past.serve(page)
    page.get_by_role("button", name="Try again").click()
    _drawn(page)
    expect(page.get_by_text("Cannot reach the hub")).to_have_count(0)


# -- against what a hub remembers ------------------------------------------------------------------------------


def test_what_a_node_reports_is_in_its_charts_a_moment_later(page: Page, herd: str) -> None:
    question = f"{herd}api/v1/history/devices?device=alpha:GPU-alpha-0&metric=utilization_gpu&from=1h"
    eventually(
        lambda: ask(question)["subjects"][0]["metrics"]["utilization_gpu"]["mean"],
        lambda values: any(value is not None for value in values),
    )
    _go(page, f"{herd}?gpu=GPU-alpha-0&range=1h")
    _drawn(page)
    # One sample is known and nothing around it: neither before nor after is anything made up.
    expect(page.get_by_role("list", name="Utilisation", exact=True)).to_contain_text(
        re.compile(r"GPU 0: 90 % on average, between 90 % and 90 %; known for \d %")
    )
    expect(page.get_by_role("list", name="Missing data")).to_contain_text("No data before")
    expect(page.get_by_role("region", name="States, users and bookings")).to_contain_text("ada")


def test_a_demo_has_a_past_worth_looking_at(page: Page, demo: DemoProcess) -> None:
    _go(page, f"{demo.url}?over-time&range=24h")
    _drawn(page, 3)
    states = page.get_by_role("list", name="GPUs by state", exact=True)
    for state in ("busy", "held idle", "free"):
        expect(states).to_contain_text(re.compile(rf"{state}: [\d.]+ GPUs on average"))
    expect(page.get_by_role("list", name="Power", exact=True)).to_contain_text(
        re.compile(r"[\d.]+ kW on average")
    )
    _go(page, f"{demo.url}?node=h100-02&range=24h")
    _drawn(page)
    lines = page.get_by_role("list", name="Power", exact=True).get_by_role("listitem")
    expect(lines).to_have_count(8)
    expect(lines.first).to_contain_text("W on average")
    expect(page.get_by_text("Could not load")).to_have_count(0)
    page.get_by_role("button", name="Show GPU 0 only").click()
    expect(page.locator("[data-points]")).to_contain_text("band: lowest to highest")
    user = ask(f"{demo.url}api/v1/usage/sessions?from=24h&limit=1")["sessions"][0]["user"]
    _go(page, f"{demo.url}?user={user}&range=24h")
    _drawn(page, 3)
    expect(page.get_by_role("list", name="GPUs in use", exact=True)).to_contain_text("GPUs on average")
    expect(page.get_by_role("region", name="Sessions").get_by_role("row").nth(1)).to_be_visible()
