"""axe-core finds nothing of weight on any page, in either theme, on a desk and on a phone."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import AXE, Complaints
from e2e.hub_process import DemoProcess, HubProcess
from e2e.places import DESK, PHONE, expect_no_overflow, past_places, places, show

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
SIZES = {"desk": DESK, "phone": PHONE}
COUNTED = ("moderate", "serious", "critical")


def violations(page: Page) -> list[str]:
    """Run axe on what is shown; gives its findings as lines."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: cd web && npm ci")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    # The size of targets is the one rule of its kind that axe leaves out unless asked.
    found: dict[str, Any] = page.evaluate(
        "() => axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})"
    )
    assert len(found["passes"]) > 10
    return [
        f"{violation['id']}: {node['html'][:160]} {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in COUNTED
        for node in violation["nodes"][:3]
    ]


def _prepare(page: Page, theme: Theme, size: str = "desk") -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})


EVERYWHERE: tuple[tuple[Theme, str], ...] = (
    ("light", "desk"),
    ("light", "phone"),
    ("dark", "phone"),
    ("dark", "desk"),
)
ONCE_EACH: tuple[tuple[Theme, str], ...] = (("light", "desk"), ("dark", "phone"))


def violations_in(page: Page, looks: tuple[tuple[Theme, str], ...] = EVERYWHERE) -> dict[str, list[str]]:
    """Look at what is shown, without loading it anew: contrast differs by theme, the size of targets by screen."""
    found = {}
    for theme, size in looks:
        _prepare(page, theme, size)
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        found[f"{theme}, {size}"] = violations(page)
    return {where: lines for where, lines in found.items() if lines}


@pytest.mark.parametrize("name", ["herd", "users", "node", "gpu", "wall"])
def test_everyone_can_read_every_page(page: Page, demo: DemoProcess, name: str) -> None:
    _prepare(page, "light")
    show(page, demo.url + places(demo.url, "h100-02")[name])
    expect(page.locator("main h1, main h2").first).to_be_attached()
    if name in ("node", "gpu"):
        expect(page.locator("figure[data-chart]").first).to_be_visible()
    found = violations_in(page)
    assert found == {}, json.dumps(found, indent=1)


@pytest.mark.parametrize("name", ["user", "gpu over time", "herd over time", "usage"])
def test_everyone_can_read_the_past(page: Page, demo: DemoProcess, name: str) -> None:
    _prepare(page, "light")
    show(page, demo.url + past_places(demo.url, "user03", "h100-02")[name])
    if name == "usage":
        expect(page.locator("[data-usage]")).to_have_attribute("aria-busy", "false")
    else:
        expect(page.locator("[data-points]")).to_be_visible()
    found = violations_in(page, ONCE_EACH)
    assert found == {}, json.dumps(found, indent=1)
    expect_no_overflow(page, f"{name} on a phone")


def test_everyone_can_read_open_nodes_in_every_state(page: Page, demo: DemoProcess) -> None:
    # One node of each kind: slices, a lost GPU, a hung driver, a silent node, a full one.
    names = ("a100-01", "l40s-01", "rtx-04", "v100-01", "h100-01")
    page.add_init_script("localStorage.setItem('gpuherd.expansion', JSON.stringify({all: true, except: []}))")
    _prepare(page, "light")
    show(page, f"{demo.url}?q=host:{','.join(names)}")
    expect(page.locator("section[data-node]")).to_have_count(len(names))
    expect(page.locator("[data-pid]").first).to_be_attached()
    found = violations_in(page, ONCE_EACH)
    assert found == {}, json.dumps(found, indent=1)


def test_everyone_can_read_what_opens(page: Page, demo: DemoProcess) -> None:
    _prepare(page, "light")
    # One node behind it is as good as all of them, and looked at sooner.
    show(page, f"{demo.url}?q=host:h100-02")
    page.locator("[data-phase]").click()
    expect(page.get_by_role("radio", name="Dark")).to_be_attached()
    assert violations_in(page, ONCE_EACH) == {}, "the panel"
    _prepare(page, "light")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations_in(page, ONCE_EACH) == {}, "the keys"
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("p")
    expect(page.get_by_role("status", name="Connection")).to_contain_text("Paused")
    assert violations_in(page, ONCE_EACH) == {}, "paused"


def test_everyone_can_read_the_empty_page(page: Page, hub: HubProcess) -> None:
    page.goto(hub.url)
    expect(page.get_by_role("heading", name="No nodes yet")).to_be_visible()
    found = violations_in(page, ONCE_EACH)
    assert found == {}, json.dumps(found, indent=1)


@pytest.mark.parametrize("name", ["herd", "users", "node", "gpu", "wall"])
def test_everyone_can_read_old_data(page: Page, demo: DemoProcess, complaints: Complaints, name: str) -> None:
    complaints.may_lose_connection = True
    _prepare(page, "light")
    show(page, demo.url + places(demo.url, "h100-02")[name])
    page.route("**/api/v1/stream", lambda route: route.abort())
    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3_600_000; }")
    expect(page.locator("[role=alert], .place > [role=status]")).to_contain_text(
        re.compile("not live", re.IGNORECASE)
    )
    found = {}
    for theme in THEMES:
        _prepare(page, theme)
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        found[theme] = violations(page)
    assert found == {theme: [] for theme in THEMES}, json.dumps(found, indent=1)
