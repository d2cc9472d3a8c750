"""The start page: three answers, one search, the map of all GPUs, and the list of nodes, GPUs and processes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from e2e.conftest import Complaints
from e2e.hub_process import DemoProcess, HubProcess
from e2e.reports import GIB, IDLE, UNKNOWN, gpu, report, working
from e2e.test_accessibility import violations
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import Process
from gpuherd.model.reports import Problem


def small(index: int, uuid: str) -> DeviceFacts:
    """Describe a GPU of another kind."""
    return DeviceFacts(uuid=uuid, index=index, name="NVIDIA GeForce RTX 4090", memory_total_bytes=24 * GIB)


class TwoNodes:
    """A hub with two nodes: one with five free 80 GB GPUs and one at work, one with small GPUs and trouble."""

    def __init__(self, hub: HubProcess) -> None:
        self.hub = hub
        self._alpha, self._beta = hub.join("alpha"), hub.join("beta")

    def open(self, page: Page) -> None:
        """Let both report, and show them."""
        self._alpha.report(
            report(
                [(gpu(0), working(0.83, memory_gib=70)), *((gpu(i), IDLE) for i in range(1, 6))],
                processes=[
                    (0, Process(pid=4242, user="anna", command="python train.py", started_at=_long_ago())),
                    (0, Process(pid=4243, user="ben", is_gone=True)),
                    (0, Process(pid=4244)),
                ],
            )
        )
        lost = Problem(code="gpu_lost", message="GPU 1 is lost", device_uuid="RTX-1", is_fault=True)
        self._beta.report(report([(small(0, "RTX-0"), IDLE), (small(1, "RTX-1"), UNKNOWN)], problems=[lost]))
        page.goto(self.hub.url)
        expect(page.locator("[data-device]")).to_have_count(8)
        # The hub works states out once a second; until then a node is pale, as one that has not reported.
        expect(page.locator('section[data-node][data-state="live"]')).to_have_count(2)


def _long_ago() -> float:
    return time.time() - 7265


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    """Run one hub for all tests that only look: what its nodes report is the same for each of them."""
    hub = HubProcess(tmp_path_factory.mktemp("two"))
    hub.start()
    yield TwoNodes(hub)
    hub.kill()


@pytest.fixture
def some(page: Page, two_nodes: TwoNodes) -> HubProcess:
    """Open the page of a hub with two nodes."""
    two_nodes.open(page)
    return two_nodes.hub


def _devices(page: Page) -> Locator:
    return page.locator("[data-device]")


def _search(page: Page, text: str) -> None:
    page.get_by_role("searchbox").fill(text)


def test_free_now_tells_how_many_of_which_kind_and_where(page: Page, some: HubProcess) -> None:
    answer = page.locator('[data-answer="free"]')
    expect(answer).to_contain_text("Free now")
    expect(page.get_by_test_id("free-count")).to_have_text("6")
    expect(answer).to_contain_text("1 node with 4+ free")
    models = answer.locator("[data-model]")
    # The largest memory comes first, whatever is free of it.
    expect(models.first).to_have_attribute("data-model", "A100 80GB")
    expect(models.first).to_contain_text("5 on alpha")
    expect(models.nth(1)).to_contain_text("24 GiB")

    models.first.get_by_role("link", name="A100 80GB").click()
    expect(_devices(page)).to_have_count(5)
    expect(page.get_by_role("searchbox")).to_have_value('free type:"A100 80GB"')
    expect(page).to_have_url(re.compile(r"\?q=free"))
    models.first.get_by_role("link", name="A100 80GB").click()
    expect(_devices(page)).to_have_count(8)

    answer.get_by_role("link", name="1 node with 4+ free").click()
    expect(page.locator("[data-node]")).to_have_count(1)


def test_the_node_with_most_free_is_a_click_away(page: Page, some: HubProcess) -> None:
    page.get_by_role("button", name="Collapse all").click()
    expect(_devices(page)).to_have_count(0)
    page.locator('[data-model="A100 80GB"]').get_by_role("link", name="alpha").click()
    expect(page.get_by_role("button", name="alpha")).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("button", name="alpha")).to_be_focused()


def test_next_free_is_not_guessed(page: Page, some: HubProcess) -> None:
    answer = page.locator('[data-answer="next"]')
    expect(answer).to_contain_text("Unknown")
    expect(answer).to_contain_text("No booking ends soon")


def test_what_was_free_is_not_called_free_now_when_the_hub_is_gone(
    page: Page, hub: HubProcess, complaints: Complaints
) -> None:
    TwoNodes(hub).open(page)
    complaints.may_lose_connection = True
    hub.stop()
    expect(page.locator('[data-answer="free"]')).to_contain_text(re.compile(r"Free \d+ s ago"))


def test_held_idle_tells_who_how_many_and_since_when(page: Page, tmp_path: Path) -> None:
    hub = HubProcess(tmp_path, config="[availability]\nidle_window_seconds = 1\n")
    hub.start()
    try:
        node = hub.join("alpha")
        idle = working(0.0, memory_gib=40)
        devices = [(gpu(i), idle) for i in range(3)]
        processes = [(i, Process(pid=i + 1, user="anna" if i < 2 else "ben")) for i in range(3)]
        page.goto(hub.url)
        count = page.get_by_test_id("held-count")
        node.report(report(devices, processes=processes))
        expect(count).to_have_text("3")
        answer = page.locator('[data-answer="held"]')
        first = answer.get_by_role("listitem").first
        expect(first).to_contain_text(re.compile(r"anna\s+2 GPUs\s+for \d+ (s|min)"))
        expect(answer.get_by_role("listitem").nth(1)).to_contain_text(re.compile(r"ben\s+1 GPU"))
        first.get_by_role("link").click()
        expect(page.get_by_role("searchbox")).to_have_value('held user:"anna"')
        expect(_devices(page)).to_have_count(2)
        expect(_devices(page).first).to_contain_text(re.compile(r"held idle\s+for \d+ \w+\s+by\s+anna"))
    finally:
        hub.stop()


SEARCHES = {
    "alpha": 6,
    "anna": 1,
    "user:ANNA": 1,
    "host:al*": 6,
    "rtx4090": 2,
    "free": 6,
    "busy": 1,
    "fault": 1,
    "-free": 2,
    "free mem>=80G": 5,
    "mem<40G": 2,
    "util>50": 1,
    "free>=4": 6,
    "192.0.2.11 rtx": 2,
    "trouble": 1,
    '"two words"': 0,
}


def test_search(page: Page, some: HubProcess) -> None:
    for query, expected in SEARCHES.items():
        _search(page, query)
        expect(page.locator(".found"), query).to_contain_text(f"{expected} of 8 GPUs on ")
        expect(_devices(page), query).to_have_count(expected)


def test_a_search_is_shared_by_its_address_and_cleared_by_escape(page: Page, some: HubProcess) -> None:
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    # Someone who does not know what can be asked finds examples.
    page.get_by_role("button", name="free mem>=80G").click()
    expect(_devices(page)).to_have_count(5)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(field).to_have_value("free mem>=80G")
    expect(_devices(page)).to_have_count(5)
    field.press("Escape")
    expect(field).to_have_value("")
    expect(_devices(page)).to_have_count(8)
    expect(page).to_have_url(some.url)


def test_what_the_search_does_not_understand_is_told_and_left_out(page: Page, some: HubProcess) -> None:
    _search(page, "alpha mem>lots")
    expect(page.get_by_text("“mem>lots” needs a size, such as mem>40G.")).to_be_visible()
    expect(_devices(page)).to_have_count(6)
    _search(page, "nothing-like-this")
    expect(page.get_by_text("No matches.")).to_be_visible()
    page.get_by_role("button", name="show everything").click()
    expect(_devices(page)).to_have_count(8)


def test_chips_filter_and_write_what_they_do(page: Page, some: HubProcess) -> None:
    chips = page.get_by_role("group", name="Filters")
    free = chips.get_by_role("button", name="free 6")
    free.click()
    expect(free).to_have_attribute("aria-pressed", "true")
    expect(_devices(page)).to_have_count(6)
    chips.get_by_role("button", name="fault 1").click()
    expect(page.get_by_role("searchbox")).to_have_value("free,fault")
    expect(_devices(page)).to_have_count(7)
    chips.get_by_role("button", name="≥ 80 GB").click()
    expect(_devices(page)).to_have_count(5)
    chips.get_by_role("button", name="≥ 80 GB").click()
    chips.get_by_role("button", name="RTX 4090").click()
    expect(page.get_by_role("searchbox")).to_have_value('free,fault type:"RTX 4090"')
    expect(_devices(page)).to_have_count(2)
    page.get_by_role("button", name="Clear search").click()
    chips.get_by_role("button", name="Problems 1").click()
    expect(page.get_by_role("searchbox")).to_have_value("problems")
    expect(page.locator("[data-node]")).to_have_count(1)
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.locator("[data-node]")).to_have_count(2)


def test_mine_asks_once_who_i_am(page: Page, some: HubProcess) -> None:
    page.get_by_role("button", name="Mine").click()
    page.get_by_label("Your user name").fill("anna")
    page.keyboard.press("Enter")
    expect(_devices(page)).to_have_count(1)
    page.get_by_role("button", name="Mine (anna)").click()
    expect(_devices(page)).to_have_count(8)
    page.reload()
    page.get_by_role("button", name="Mine (anna)").click()
    expect(_devices(page)).to_have_count(1)


def test_slices_are_counted_apart_and_an_unknown_type_is_offered_nowhere(
    page: Page, demo: DemoProcess
) -> None:
    page.goto(demo.url)
    answer = page.locator('[data-answer="free"]')
    expect(answer.get_by_test_id("free-slices")).to_have_text(re.compile(r"^\+ \d+ slices?$"))
    expect(page.locator("header .size")).to_have_text(
        re.compile(r"^\s*24 nodes\s*·\s*\d+ GPUs and 14 slices\s*$")
    )
    chips = page.get_by_role("group", name="GPU types")
    expect(chips.get_by_role("button", name="L40S")).to_be_visible()
    for part in (chips, answer):
        expect(part).not_to_contain_text("unknown type")
        expect(part.get_by_text("GPU", exact=True)).to_have_count(0)
    page.goto(f"{demo.url}?node=l40s-01")
    expect(page.locator("article[data-device]").filter(has_text="unknown type")).to_have_count(1)
    page.goto(f"{demo.url}?timeline")
    page.get_by_role("button", name="Find a slot").click()
    options = page.get_by_label("GPU type").locator("option")
    expect(options.filter(has_text="L40S")).to_have_count(1)
    expect(options.filter(has_text="unknown")).to_have_count(0)


def test_a_gpu_is_found_as_people_write_it(page: Page, some: HubProcess) -> None:
    for query, count in (("alpha/2", 1), ("alpha/0-2,5", 4), ("beta/1 alpha/1", 0), ("-alpha/0-5", 2)):
        _search(page, query)
        expect(_devices(page)).to_have_count(count)


def test_grouped_by_type_and_by_user_and_sorted(page: Page, some: HubProcess) -> None:
    page.get_by_label("Group").select_option("Type")
    headings = page.locator(".list h3:not(:has(button))")
    expect(headings).to_have_count(2)
    expect(headings.first).to_contain_text("A100 80GB")
    expect(headings.first).to_contain_text("5 of 6 free")
    page.get_by_label("Group").select_option("User")
    expect(headings).to_have_count(4)
    expect(headings.first).to_contain_text("anna")
    expect(headings.last).to_contain_text("Nobody")
    expect(page).to_have_url(re.compile("group=user"))
    page.get_by_label("Group").select_option("Node")
    page.get_by_label("Sort").select_option("Most busy")
    expect(page.locator("[data-node] h3").first).to_contain_text("alpha")
    expect(page).to_have_url(re.compile("sort=busy"))


# --- the map


SOLID = """() => {
    const canvas = document.querySelector('canvas');
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let solid = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i] > 200) solid += 1;
    return solid;
}"""
"""How many pixels of the map are drawn at full strength."""


def test_the_map_draws_every_device_and_dims_what_is_not_meant(page: Page, some: HubProcess) -> None:
    page.wait_for_function(f"() => ({SOLID})() > {8 * 150}")
    before = page.evaluate(SOLID)
    _search(page, "fault")
    expect(_devices(page)).to_have_count(1)
    page.wait_for_function(f"() => ({SOLID})() < {before / 3}")
    assert page.evaluate(SOLID) > 0


def test_the_map_is_as_sharp_as_the_screen(browser: object, some: HubProcess) -> None:
    from playwright.sync_api import Browser

    assert isinstance(browser, Browser)
    for ratio in (1, 1.5, 2):
        context = browser.new_context(device_scale_factor=ratio, viewport={"width": 1000, "height": 800})
        page = context.new_page()
        page.goto(some.url)
        canvas = page.get_by_test_id("heat-map")
        expect(canvas).to_be_visible()
        page.wait_for_function("() => document.querySelector('canvas').height > 20")
        width, shown = canvas.evaluate("c => [c.width, c.getBoundingClientRect().width]")
        assert width == round(shown * ratio)
        context.close()


def test_the_map_tells_what_is_under_the_pointer_and_opens_it(page: Page, some: HubProcess) -> None:
    page.get_by_role("button", name="Collapse all").click()
    canvas = page.get_by_test_id("heat-map")
    canvas.hover(position={"x": 8, "y": 24})
    tip = page.get_by_role("tooltip")
    for text in ("alpha/0", "A100 80GB", "busy", "for ", "83 %", "70.0 / 80 GiB", "anna", "ben"):
        expect(tip).to_contain_text(text)
    canvas.click(position={"x": 8, "y": 24})
    expect(page.locator('[data-device="GPU-0"]')).to_be_in_viewport()


def test_the_map_by_keyboard(page: Page, some: HubProcess) -> None:
    page.get_by_role("button", name="Collapse all").click()
    canvas = page.get_by_test_id("heat-map")
    canvas.focus()
    page.keyboard.press("Home")
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("alpha/0")
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("alpha/1")
    page.keyboard.press("End")
    expect(tip).to_contain_text("beta")
    expect(tip).to_contain_text("GPU 1 is lost")
    expect(page.locator("[aria-live=polite]").filter(has_text="beta/1")).to_be_attached()
    page.keyboard.press("Enter")
    expect(page.locator('[data-device="RTX-1"]')).to_be_in_viewport()


def test_the_map_leads_to_what_the_search_leaves_out(page: Page, some: HubProcess) -> None:
    _search(page, "beta")
    expect(_devices(page)).to_have_count(2)
    page.get_by_test_id("heat-map").click(position={"x": 8, "y": 24})
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.locator('[data-device="GPU-0"]')).to_be_in_viewport()


def test_the_map_leads_there_also_when_nothing_is_found(page: Page, some: HubProcess) -> None:
    page.set_viewport_size({"width": 1280, "height": 500})
    _search(page, "nonsense")
    expect(page.locator("[data-node]")).to_have_count(0)
    expect(page.get_by_role("button", name="Collapse all")).to_have_count(0)
    page.get_by_test_id("heat-map").click(position={"x": 8, "y": 24})
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.locator('[data-device="GPU-0"]')).to_be_in_viewport()


_PAINTED = """([x, y]) => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [22, 26];
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(document.querySelector("canvas"), -x, -y);
    return context.getImageData(0, 0, 22, 26).data.filter((value, i) => i % 4 === 3 && value > 60).length;
}"""
"""How many pixels of a cell of the map are painted, and not only dimly."""


def test_a_node_on_which_no_gpu_can_be_seen_says_why_on_the_map(page: Page, hub: HubProcess) -> None:
    hung = Problem(code="driver_hung", message="the driver does not respond: reboot", is_fault=True)
    hub.join("alpha").report(report([], problems=[hung]))
    hub.join("beta").report(report([(gpu(0), IDLE)]))
    hub.join("gamma").report(report([]))
    page.goto(hub.url)
    expect(page.locator('section[data-node][data-state="live"]')).to_have_count(3)
    canvas = page.get_by_test_id("heat-map")
    expect(canvas).to_have_attribute("aria-label", re.compile("1 GPU free"))
    canvas.focus()
    tip, said = page.get_by_role("tooltip"), page.locator("canvas ~ [aria-live=polite]")

    page.keyboard.press("Home")
    for text in ("alpha", "no GPU found", "fault", "the driver does not respond: reboot"):
        expect(tip).to_contain_text(text)
        expect(said).to_contain_text(text)
    expect(tip).not_to_contain_text("Utilisation")
    cross = page.evaluate(_PAINTED, [0, 16])
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("/0")
    page.keyboard.press("ArrowRight")
    for text in ("gamma", "unknown", "No GPU found on this node"):
        expect(tip).to_contain_text(text)
        expect(said).to_contain_text(text)
    ring = page.locator(".ring").bounding_box()
    place = canvas.bounding_box()
    assert ring
    assert place
    dashes = page.evaluate(_PAINTED, [ring["x"] + 3 - place["x"], ring["y"] + 3 - place["y"]])
    assert cross > dashes > 10, "a cross has more to it than a dashed outline"
    page.keyboard.press("Escape")

    canvas.hover(position={"x": 8, "y": 24})
    expect(tip).to_contain_text("the driver does not respond: reboot")
    assert violations(page) == []
    canvas.click(position={"x": 8, "y": 24})
    expect(page.get_by_role("button", name="alpha")).to_be_focused()

    _search(page, "gamma")
    expect(page.locator("[data-node]")).to_have_count(1)
    page.wait_for_function(f"() => ({_PAINTED})([0, 16]) === 0")
    canvas.hover(position={"x": 8, "y": 24})
    expect(tip).to_contain_text("does not match the search")
    canvas.click(position={"x": 8, "y": 24})
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.get_by_role("button", name="alpha")).to_be_focused()


# --- the list


def test_the_memory_bar_is_stacked_by_process_in_the_colours_of_users(page: Page, some: HubProcess) -> None:
    bar = page.locator('[data-device="GPU-0"]').get_by_role("meter", name="Memory of GPU 0")
    expect(bar).to_have_attribute("aria-valuenow", "88")
    segments = bar.locator(".segment")
    # Each claims 58 of 80 GiB: the second is cut at the end of the bar, the third has no room.
    expect(segments).to_have_count(2)
    expect(segments.first).to_have_text(re.compile(r"73 %\s+anna"))
    expect(segments.first).to_have_attribute("title", re.compile(r"anna · PID 4242 · 58\.0 GiB"))
    colour = "e => getComputedStyle(e).backgroundColor"
    chip = page.locator('[data-pid="4242"] .chip')
    assert segments.first.evaluate(colour) == chip.evaluate(colour)
    header = page.locator('section[aria-label="alpha"] .header .chip').first
    assert header.evaluate(colour) == chip.evaluate(colour)
    assert segments.nth(1).evaluate(colour) != chip.evaluate(colour)


def test_process_lines_tell_the_dead_and_the_unknown(page: Page, some: HubProcess) -> None:
    line = page.locator('[data-pid="4242"]')
    for text in ("anna", "58.0 GiB", "2 h 1 min", "7.5 cores", "9.0 GiB RAM", "python train.py"):
        expect(line).to_contain_text(text)
    expect(page.locator('[data-pid="4243"]')).to_contain_text("ended, memory still held")
    expect(page.locator('[data-pid="4244"]')).to_contain_text("unknown user")


def test_a_collapsed_node_still_tells_the_most(page: Page, some: HubProcess) -> None:
    page.get_by_role("button", name="Collapse all").click()
    alpha = page.locator('section[aria-label="alpha"]')
    for text in (
        "alpha",
        "live",
        "s ago",
        "192.0.2.11",
        "6 × A100 80GB",
        "driver 550.54.15",
        "anna",
        "5 free",
    ):
        expect(alpha).to_contain_text(text)
    expect(alpha.get_by_title("192.0.2.11 (eth0)")).to_be_visible()
    expect(alpha.get_by_role("img", name="GPU 0: busy")).to_be_visible()
    # Full disks are told by level and number, with absolutes on hover; never in the colour of a state.
    expect(alpha.locator('[data-level="high"]')).to_have_attribute("title", "/scratch: 800 GiB of 1000 GiB")
    expect(alpha.locator('[data-level="low"]')).to_have_count(2)
    fills = alpha.locator(".host-bar .fill").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    states = page.evaluate(
        """() => ['free', 'busy', 'held', 'booked', 'fault'].map(state => {
            const e = document.body.appendChild(document.createElement('i'));
            e.style.color = `var(--state-${state})`;
            const colour = getComputedStyle(e).color;
            e.remove();
            return colour;
        })"""
    )
    assert not set(fills) & set(states)
    expect(page.locator('section[aria-label="beta"]')).to_contain_text("GPU 1 is lost")


def test_an_anchor_opens_a_node_and_goes_to_it(page: Page, demo: DemoProcess) -> None:
    page.goto(f"{demo.url}#v100-02")
    button = page.get_by_role("button", name="v100-02")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(button).to_be_in_viewport()
    page.evaluate("location.hash = '#h100-03'")
    button = page.get_by_role("button", name="h100-03")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(button).to_be_in_viewport()


def test_the_name_of_an_open_node_stays_in_sight(page: Page, demo: DemoProcess) -> None:
    page.goto(demo.url)
    page.get_by_role("button", name="a100-01").click()
    section = page.locator('section[aria-label="a100-01"]')
    section.locator("[data-device]").nth(18).scroll_into_view_if_needed()
    page.evaluate("() => window.scrollBy(0, 200)")
    expect(page.get_by_role("button", name="a100-01")).to_be_in_viewport()


def test_slices_stand_under_their_gpu(page: Page, demo: DemoProcess) -> None:
    page.goto(f"{demo.url}?q=host:a100-01")
    rows = page.locator('section[aria-label="a100-01"] [data-device]')
    expect(rows.first).to_contain_text("split into slices")
    expect(rows.nth(1)).to_have_class(re.compile(r"\bslice\b"))
    expect(rows.nth(1)).to_contain_text("0.0")


def test_motion_only_for_those_who_like_it(page: Page, some: HubProcess) -> None:
    fill = page.locator('[data-device="GPU-0"] .bar.working .fill')
    animation = "e => getComputedStyle(e, '::after').animationName"
    page.emulate_media(reduced_motion="no-preference")
    assert "glint" in fill.evaluate(animation)
    assert fill.evaluate("e => getComputedStyle(e).transitionProperty") == "transform"
    page.emulate_media(reduced_motion="reduce")
    assert fill.evaluate(animation) == "none"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everyone_can_read_a_filtered_herd(page: Page, some: HubProcess, theme: Any) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.get_by_role("searchbox").focus()
    expect(page.get_by_role("button", name="free mem>=80G")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Mine").click()
    page.get_by_label("Group").select_option("User")
    _search(page, 'busy,fault mem>lots type:"A100 80GB","RTX 4090"')
    expect(page.get_by_text("needs a size")).to_be_visible()
    expect(_devices(page).first).to_be_visible()
    page.get_by_test_id("heat-map").hover(position={"x": 8, "y": 24})
    expect(page.get_by_role("tooltip")).to_be_visible()
    assert violations(page) == []
    _search(page, "nothing-like-this")
    expect(page.get_by_text("No matches.")).to_be_visible()
    assert violations(page) == []


# --- a large herd


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Run a hub with more nodes than fit into a page: one agent's reports under many names would take too long."""
    hub = HubProcess(tmp_path_factory.mktemp("large"), config=_many_silent_nodes(300))
    hub.start()
    yield hub
    hub.stop()


def _many_silent_nodes(count: int) -> str:
    hosts = ", ".join(f'"n{i:03d}=127.0.0.1:{40000 + i}"' for i in range(count))
    return f'[[nodes]]\nhosts = [{hosts}]\nreach = {{ by = "xmlrpc", interval_seconds = 30 }}\n'


def test_of_a_long_list_only_what_is_near_is_in_the_document(page: Page, large: HubProcess) -> None:
    page.goto(large.url)
    expect(page.get_by_role("button", name="n000")).to_be_visible()
    assert page.locator("[data-node]").count() < 60
    page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
    expect(page.get_by_role("button", name="n299")).to_be_visible()
    assert page.locator("[data-node]").count() < 60
    page.goto(f"{large.url}#n150")
    expect(page.get_by_role("button", name="n150")).to_be_in_viewport()
    expect(page.get_by_role("button", name="n150")).to_have_attribute("aria-expanded", "true")
