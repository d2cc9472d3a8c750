"""The frame of the page: theme, pace, keys, title and icon, paper, and what stands where there is nothing to show."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page, Route, expect

from e2e.conftest import Complaints
from e2e.hub_process import DemoProcess, HubProcess, Node
from e2e.reports import IDLE, gpu, report, working

DARK, LIGHT = "rgb(17, 20, 24)", "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Run one hub for all tests that leave it as it is, apart from what its node reports."""
    hub = HubProcess(tmp_path_factory.mktemp("shared"))
    hub.start()
    yield hub
    hub.kill()


def _background(page: Page) -> str:
    colour: str = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    return colour


def _open(page: Page, hub: HubProcess, where: str = "") -> Node:
    """Show one node with a free GPU and one at work."""
    node = hub.node("alpha")
    node.report(report([(gpu(0), working(0.4)), (gpu(1), IDLE)]))
    page.goto(hub.url + where)
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    expect(page).to_have_title(re.compile("(^|· )1 free · gpuherd$"))
    return node


# The head on a phone


@pytest.mark.parametrize("is_logged_in", [True, False])
def test_the_connection_is_told_whole_on_a_phone_or_by_its_lamp_alone(
    page: Page, shared: HubProcess, is_logged_in: bool
) -> None:
    def answer(route: Route) -> None:
        told = route.fetch()
        account = {"name": "anna", "display_name": "Anna Ardent", "role": "user", "linux_names": ["anna"]}
        given = {"is_set_up": True, "account": account if is_logged_in else None}
        route.fulfill(response=told, json={**told.json(), **given})

    page.route("**/api/v1/session", answer)
    _open(page, shared)
    who = page.locator("header .face" if is_logged_in else "header .login")
    expect(who).to_be_visible()
    word, lamp = page.locator("header .connection .word"), page.locator("header .connection .lamp")
    for width in (320, 340, 360, 375, 390, 412, 430, 570):
        page.set_viewport_size({"width": width, "height": 844})
        chip = page.locator("header .connection").bounding_box()
        inner, light = word.bounding_box(), lamp.bounding_box()
        assert chip
        assert inner
        assert light
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, "nothing stands out"
        assert abs(light["y"] + light["height"] / 2 - chip["y"] - chip["height"] / 2) <= 1
        is_beside = inner["y"] + inner["height"] <= chip["y"] + chip["height"]
        if is_beside:
            assert inner["x"] + inner["width"] <= chip["x"] + chip["width"]
            assert word.evaluate("word => word.scrollWidth <= word.clientWidth"), f"cut at {width}"
        else:
            assert inner["y"] >= chip["y"] + chip["height"] - 1, f"half of it is seen at {width}"
        assert is_beside or width < 375, f"there is room for it at {width}"


# Theme


def test_the_theme_follows_the_system_until_chosen_and_is_remembered(page: Page, shared: HubProcess) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(shared.url)
    assert _background(page) == DARK
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert _background(page) == LIGHT
    page.get_by_role("button", name="Theme: System. Switch to Light").click()
    page.get_by_role("button", name="Theme: Light. Switch to Dark").click()
    assert _background(page) == DARK
    page.reload()
    expect(page.get_by_role("button", name="Theme: Dark. Switch to System")).to_be_visible()
    assert _background(page) == DARK
    page.keyboard.press("t")
    assert _background(page) == LIGHT


@pytest.mark.parametrize(("choice", "expected"), [("dark", DARK), ("light", LIGHT)])
def test_a_chosen_theme_is_there_before_the_page_is(
    page: Page, shared: HubProcess, complaints: Complaints, choice: str, expected: str
) -> None:
    complaints.may_lose_connection = True
    page.emulate_media(color_scheme="light" if choice == "dark" else "dark")
    page.add_init_script(f"localStorage.setItem('gpuherd.theme', '{choice}')")
    page.route("**/assets/*.js", lambda route: route.abort())
    page.goto(shared.url)
    assert page.locator("#app > *").count() == 0
    assert _background(page) == expected


# Pace


def test_a_paused_page_stands_still_says_since_when_and_jumps_to_now(page: Page, shared: HubProcess) -> None:
    node = _open(page, shared)
    page.keyboard.press("p")
    expect(page.get_by_role("status", name="Connection")).to_contain_text(
        re.compile(r"Paused: this data is from \d\d:\d\d:\d\d")
    )
    expect(page).to_have_title("paused · gpuherd")
    expect(page.locator("[data-phase]")).to_have_attribute("data-phase", "paused")
    expect(page.locator("main")).to_have_attribute("data-live", "false")
    node.report(report([(gpu(0), IDLE), (gpu(1), IDLE), (gpu(2), IDLE)]))
    # The age of what is shown goes on, so messages have come in by now; nothing else has moved.
    expect(page.get_by_test_id("age")).to_have_text(re.compile(r"^([3-9]|\d\d) s"))
    expect(page.locator('[data-device="GPU-0"]')).to_have_attribute("data-state", "busy")
    expect(page.locator('[data-device="GPU-2"]')).to_have_count(0)
    page.get_by_role("group", name="Page controls").get_by_role("button", name="Resume").click()
    expect(page).to_have_title("3 free · gpuherd")
    expect(page.get_by_role("status", name="Connection")).to_be_empty()


def test_refresh_now_takes_what_has_come_in_behind_a_paused_page(page: Page, shared: HubProcess) -> None:
    node = _open(page, shared)
    page.keyboard.press("p")
    node.report(report([(gpu(0), IDLE), (gpu(1), IDLE)]))
    expect(page.get_by_test_id("age")).to_have_text(re.compile(r"^([3-9]|\d\d) s"))
    expect(page.locator('[data-device="GPU-0"]')).to_have_attribute("data-state", "busy")
    page.get_by_role("button", name="Refresh now").first.click()
    expect(page.locator('[data-device="GPU-0"]')).to_have_attribute("data-state", "free")
    expect(page.locator("[data-phase]")).to_have_attribute("data-phase", "paused")


def test_refresh_now_of_a_live_page_asks_the_hub_for_everything(page: Page, shared: HubProcess) -> None:
    _open(page, shared)
    with page.expect_request("**/api/v1/stream"):
        page.keyboard.press("r")
    expect(page.locator("main")).to_have_attribute("data-live", "true")


def test_a_page_that_refreshes_every_so_often_does_so_and_can_be_stopped(
    page: Page, shared: HubProcess
) -> None:
    node = _open(page, shared, "?refresh=5")
    expect(page.locator("[data-phase]")).to_contain_text("every 5 s")
    page.evaluate("""() => {
        window.ages = [];
        const age = document.querySelector('[data-testid=age]');
        new MutationObserver(() => ages.push(age.textContent))
            .observe(age, {characterData: true, childList: true, subtree: true});
    }""")
    node.report(report([(gpu(0), IDLE), (gpu(1), IDLE)]))
    expect(page).to_have_title("2 free · gpuherd")
    page.wait_for_function("() => ages.some(age => parseInt(age) >= 3)")
    page.locator("[data-phase]").click()
    page.get_by_role("radio", name="Live").check(force=True)
    expect(page).to_have_url(shared.url)
    expect(page.locator("[data-phase]")).to_contain_text("live")
    page.get_by_role("radio", name="1 min").check(force=True)
    expect(page).to_have_url(f"{shared.url}?refresh=60")


def test_a_page_that_looks_seldom_still_notices_a_lost_hub(
    page: Page, hub: HubProcess, complaints: Complaints
) -> None:
    complaints.may_lose_connection = True
    _open(page, hub)
    page.goto(f"{hub.url}?refresh=3600")
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    hub.signal(signal.SIGKILL)
    expect(page.locator("main")).to_have_attribute("data-live", "false")
    expect(page.get_by_role("status", name="Connection")).to_contain_text(
        "The connection to the hub was lost"
    )


def test_a_paused_page_notices_a_lost_hub(page: Page, hub: HubProcess, complaints: Complaints) -> None:
    complaints.may_lose_connection = True
    _open(page, hub)
    page.keyboard.press("p")
    hub.signal(signal.SIGKILL)
    expect(page.get_by_role("status", name="Connection")).to_contain_text(
        "The connection to the hub was lost"
    )
    page.keyboard.press("p")
    expect(page).to_have_title("not live · gpuherd")


# Times


def test_times_are_in_the_zone_of_the_viewer_which_is_named(page: Page, shared: HubProcess) -> None:
    _open(page, shared)
    session = page.context.new_cdp_session(page)
    for zone, named in (("Asia/Tokyo", "Asia/Tokyo (UTC+9)"), ("UTC", "UTC")):
        session.send("Emulation.setTimezoneOverride", {"timezoneId": zone})
        page.reload()
        expect(page.locator("footer")).to_contain_text(f"Times in {named}")
        expect(page.get_by_test_id("last-update")).to_have_text(re.compile(r"Last update \d\d:\d\d:\d\d"))
        shown = page.evaluate("() => document.querySelector('[data-testid=last-update]').textContent")
        hour = page.evaluate("() => new Date().getHours()")
        assert int(shown.split()[-1].split(":")[0]) in (hour, (hour - 1) % 24)


# Title and icon


def test_the_icon_of_the_tab_tells_the_free_count(
    page: Page, hub: HubProcess, complaints: Complaints
) -> None:
    complaints.may_lose_connection = True
    node = _open(page, hub)
    icon = page.locator("link[rel=icon]")
    expect(icon).to_have_attribute("href", re.compile("^data:image/png;base64,"))
    shown = [icon.get_attribute("href") or ""]
    for free in (2, 1):
        node.report(report([(gpu(index), IDLE) for index in range(free)]))
        expect(page).to_have_title(f"{free} free · gpuherd")
        # The icon follows when there is time for it.
        expect(icon).not_to_have_attribute("href", shown[-1])
        shown.append(icon.get_attribute("href") or "")
    hub.signal(signal.SIGKILL)
    expect(page).to_have_title("not live · gpuherd")
    expect(icon).not_to_have_attribute("href", shown[-1])
    shown.append(icon.get_attribute("href") or "")
    assert all(href.startswith("data:image/png;base64,") for href in shown)
    assert len({*shown[1:]}) == 3, "two, one and unknown look different"
    size = page.evaluate("""async () => {
        const image = new Image();
        image.src = document.querySelector('link[rel=icon]').href;
        await image.decode();
        return image.naturalWidth;
    }""")
    assert size == 64


# Keys


def test_a_part_that_cannot_be_loaded_is_told(page: Page, shared: HubProcess, complaints: Complaints) -> None:
    complaints.may_lose_connection = True
    page.route("**/assets/HelpDialog*.js", lambda route: route.abort())
    _open(page, shared)
    page.keyboard.press("?")
    expect(page.get_by_role("alert")).to_contain_text("reload", ignore_case=True)


def test_help_lists_the_keys_keeps_the_focus_and_gives_it_back(page: Page, shared: HubProcess) -> None:
    _open(page, shared)
    opener = page.get_by_role("button", name="Keyboard shortcuts").first
    opener.focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    for key in ("/", "j", "k", "o", "p", "r", "t", "?", "g", "h", "u"):
        expect(dialog.locator("kbd", has_text=re.compile(f"^{re.escape(key)}$")).first).to_be_visible()
    for _ in range(4):
        page.keyboard.press("Tab")
        # Chromium lets Tab out to its own controls, which is the body here; never to the page behind.
        assert page.evaluate(
            "() => document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    page.keyboard.press("p")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(opener).to_be_focused()
    expect(page.locator("[data-phase]")).to_have_attribute("data-phase", "live")


def test_keys_walk_through_the_nodes_and_open_them(page: Page, hub: HubProcess) -> None:
    for name in ("alpha", "beta", "gamma"):
        hub.join(name).report(report([(gpu(0, uuid=f"GPU-{name}"), IDLE)]))
    page.goto(hub.url)
    expect(page.locator("[data-node]")).to_have_count(3)
    buttons = page.locator("[data-node] button[aria-expanded]")
    page.keyboard.press("j")
    expect(buttons.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(buttons.nth(2)).to_be_focused()
    # At the end the page looks whether there is more below; a key that comes meanwhile is worth more.
    page.evaluate("""() => {
        for (const key of ['j', 'k'])
            document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
        return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
    }""")
    expect(buttons.nth(1)).to_be_focused()
    before = buttons.nth(1).get_attribute("aria-expanded")
    page.keyboard.press("o")
    expect(buttons.nth(1)).to_have_attribute("aria-expanded", "false" if before == "true" else "true")
    expect(buttons.nth(1)).to_be_focused()


def test_keys_lead_to_the_pages_and_to_the_search_and_rest_while_one_types(
    page: Page, shared: HubProcess
) -> None:
    _open(page, shared)
    page.keyboard.type("gu")
    expect(page).to_have_url(f"{shared.url}?users")
    expect(page.get_by_role("link", name="Users")).to_have_attribute("aria-current", "page")
    page.keyboard.type("gh")
    expect(page).to_have_url(shared.url)
    page.keyboard.type("gu")
    expect(page.locator("main")).to_have_attribute("data-page", "users")
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    expect(page.locator("main")).to_have_attribute("data-page", "herd")
    page.keyboard.type("gput")
    expect(search).to_have_value("gput")
    expect(page.locator("[data-phase]")).to_have_attribute("data-phase", "live")


def test_a_key_leads_to_the_search_from_an_address_other_than_the_herds(
    page: Page, shared: HubProcess
) -> None:
    _open(page, shared, "?users")
    expect(page.locator("main")).to_have_attribute("data-page", "users")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_the_header_of_a_node_that_keys_lead_to_is_seen_whole(page: Page, demo: DemoProcess) -> None:
    page.goto(demo.url)
    expect(page.locator("[data-node]")).to_have_count(24)
    buttons = page.locator("[data-node] button[aria-expanded]")
    for position in range(8):
        page.keyboard.press("j")
        expect(buttons.nth(position)).to_be_focused()
    box = page.locator("[data-node] > *", has=page.locator("button:focus")).bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= page.evaluate("innerHeight")


def test_keys_walk_past_open_nodes_that_are_higher_than_the_screen(page: Page, demo: DemoProcess) -> None:
    page.set_viewport_size({"width": 1280, "height": 300})
    # By user the list is long, and so drawn only where it is seen.
    page.goto(f"{demo.url}?group=user")
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    page.get_by_role("button", name="Expand all").click()
    expect(page.get_by_role("button", name="Collapse all")).to_be_visible()
    page.keyboard.press("p")  # users of the demo come and go
    expect(page).to_have_title("paused · gpuherd")
    here = "() => document.activeElement.closest('[data-block]')?.dataset.block ?? ''"
    passed = [""]
    for key in "j" * 30 + "k" * 29:
        page.keyboard.press(key)
        page.wait_for_function(f"before => ({here})() !== before", arg=passed[-1])
        passed.append(page.evaluate(here))
    assert passed[31:] == passed[29:0:-1]


def test_the_first_stop_of_the_keyboard_skips_to_the_content(page: Page, shared: HubProcess) -> None:
    _open(page, shared)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page).to_have_url(shared.url)


def test_the_page_has_landmarks_and_headings_in_order(page: Page, demo: DemoProcess) -> None:
    page.goto(demo.url)
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_have_count(1)
    levels = page.evaluate("""() => [...document.querySelectorAll('h1, h2, h3, h4')]
        .filter(heading => heading.checkVisibility()).map(heading => +heading.tagName[1])""")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


# Paper


def test_paper_gets_the_light_palette_and_no_controls(page: Page, shared: HubProcess) -> None:
    page.emulate_media(color_scheme="dark")
    _open(page, shared)
    assert _background(page) == DARK
    page.emulate_media(media="print", color_scheme="dark")
    assert _background(page) == LIGHT
    for label in ("Pause", "Refresh now"):
        expect(page.get_by_role("button", name=label)).to_have_count(0)
    expect(page.locator('[data-device="GPU-1"]')).to_contain_text("free")
    expect(page.locator("footer")).to_contain_text(re.compile(r"Last update \d+ \w+ \d{4}"))
    expect(page.get_by_role("button", name="live")).to_have_count(0)


# The wall


def test_the_wall_answers_without_controls_and_shouts_when_the_stream_is_lost(
    page: Page, hub: HubProcess, complaints: Complaints
) -> None:
    complaints.may_lose_connection = True
    hub.join("alpha").report(report([(gpu(0), working(0.4)), (gpu(1), IDLE)]))
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(f"{hub.url}?wall")
    expect(page.get_by_test_id("wall-free")).to_have_text("1")
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page.locator("[data-node]")).to_have_count(1)
    expect(page.locator(".clock")).to_have_text(re.compile(r"^\d\d:\d\d$"))
    hub.signal(signal.SIGKILL)
    expect(page.get_by_role("alert")).to_contain_text("NOT LIVE")
    size = page.get_by_text("NOT LIVE", exact=True).evaluate(
        "element => parseFloat(getComputedStyle(element).fontSize)"
    )
    assert size > 100
    expect(page.locator(".wall")).to_have_css("filter", "grayscale(1)")


def test_the_wall_turns_pages_when_not_all_nodes_fit(page: Page, demo: DemoProcess) -> None:
    page.set_viewport_size({"width": 300, "height": 300})
    page.goto(f"{demo.url}?wall")
    turn = page.get_by_test_id("wall-turn")
    expect(turn).to_have_text(re.compile(r"\d / [2-9]"))
    read = "() => [...document.querySelectorAll('[data-node]')].map(node => node.dataset.node)"
    before = page.evaluate(read)
    assert 0 < len(before) < 24
    page.wait_for_function(f"before => !({read})().includes(before[0])", arg=before)
    page.set_viewport_size({"width": 1920, "height": 1080})
    expect(page.locator("[data-node]")).to_have_count(24)
    expect(turn).to_have_count(0)


# Nothing to show


def test_an_empty_hub_names_every_way_to_begin(page: Page, hub: HubProcess) -> None:
    page.goto(hub.url)
    expect(page.get_by_role("heading", name="No nodes yet")).to_be_visible()
    for text in ("gpuherd token create", 'by = "ssh"', "gpuherd import hosts.txt", "gpuherd demo"):
        expect(page.get_by_text(text)).to_be_visible()


def test_a_hub_that_cannot_be_reached_is_told_with_what_to_do(
    page: Page, shared: HubProcess, complaints: Complaints
) -> None:
    complaints.may_lose_connection = True
    page.route("**/api/v1/stream", lambda route: route.abort())
    page.goto(shared.url)
    expect(page.get_by_role("heading", name="Not connected to the hub")).to_be_visible()
    expect(page.get_by_text("gpuherd doctor")).to_be_visible()
