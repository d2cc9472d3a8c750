"""What is shown when the hub is away, frozen or new: never old data as live."""

from __future__ import annotations

import signal

from playwright.sync_api import Page, expect

from e2e.conftest import Complaints
from e2e.hub_process import HubProcess
from e2e.reports import IDLE, gpu, report, working

"""Milliseconds: longer than the longest pause between two attempts to connect."""


def test_a_killed_hub_is_noticed_and_its_return_too(
    page: Page, hub: HubProcess, complaints: Complaints
) -> None:
    complaints.may_lose_connection = True
    node = hub.join("alpha")
    node.report(report([(gpu(0), working(0.4)), (gpu(1), IDLE)]))
    page.goto(hub.url)
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    expect(page).to_have_title("1 free · gpuherd")
    expect(page.locator('[data-device="GPU-0"]')).to_be_visible()  # its part of the page is loaded

    hub.signal(signal.SIGKILL)
    expect(page.locator("main")).to_have_attribute("data-live", "false")
    expect(page).to_have_title("not live · gpuherd")
    expect(page.get_by_role("status", name="Connection")).to_contain_text(
        "The connection to the hub was lost"
    )
    expect(page.get_by_role("status", name="Connection")).to_contain_text("this data is")
    expect(page.locator(f'section[data-node="{node.id}"]')).to_contain_text("was live")
    # What was known stays readable, and visibly is not of now.
    expect(page.locator('[data-device="GPU-0"]')).to_be_visible()
    expect(page.locator("main > div")).to_have_css("filter", "grayscale(1)")

    hub.start()
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    expect(page.get_by_role("status", name="Connection")).to_be_empty()
    node.report(report([(gpu(0), working(0.9)), (gpu(1), IDLE)]))
    meter = page.locator('[data-device="GPU-0"]').get_by_role("meter", name="Utilisation")
    expect(meter).to_have_attribute("aria-valuenow", "90")


def test_a_frozen_hub_is_not_live(page: Page, hub: HubProcess) -> None:
    hub.join("alpha").report(report([(gpu(0), IDLE)]))
    page.goto(hub.url)
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    hub.signal(signal.SIGSTOP)
    expect(page.locator("main")).to_have_attribute("data-live", "false")
    expect(page.get_by_role("status", name="Connection")).to_contain_text("The hub does not respond")
    hub.signal(signal.SIGCONT)
    expect(page.locator("main")).to_have_attribute("data-live", "true")


def test_a_sleep_of_the_viewer_is_noticed(page: Page, hub: HubProcess) -> None:
    hub.join("alpha").report(report([(gpu(0), IDLE)]))
    page.goto(hub.url)
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url))
    # Over a sleep the wall clock goes on while the monotonic one stands still.
    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3_600_000; }")
    page.wait_for_function("() => document.querySelector('main').dataset.live === 'false'")
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    # Parts of the page may still have been on their way.
    assert [url for url in streams if "/assets/" not in url] == [f"{hub.url}api/v1/stream"]


def test_a_page_that_was_opened_while_the_hub_starts_connects(
    page: Page, hub: HubProcess, complaints: Complaints
) -> None:
    complaints.may_lose_connection = True
    page.route("**/api/v1/stream", lambda route: route.abort())
    page.goto(hub.url)
    expect(page.get_by_role("heading", name="Not connected to the hub")).to_be_visible()
    page.unroute("**/api/v1/stream")
    expect(page.get_by_role("heading", name="No nodes yet")).to_be_visible()


def test_a_removed_node_disappears(page: Page, hub: HubProcess) -> None:
    for name in ("alpha", "beta"):
        hub.join(name).report(report([(gpu(0, uuid=f"GPU-{name}"), IDLE)]))
    page.goto(hub.url)
    expect(page.get_by_role("button", name="alpha")).to_be_visible()
    hub.remove("alpha")
    expect(page.get_by_role("button", name="alpha")).to_have_count(0)
    expect(page.locator('[data-device="GPU-beta"]')).to_be_visible()
    expect(page).to_have_title("1 free · gpuherd")
