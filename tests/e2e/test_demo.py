"""The demo herd as its first viewer sees it: under a base path, on screens of every width."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from e2e.hub_process import DemoProcess
from e2e.places import WIDTHS, expect_no_overflow


def _open(page: Page, demo: DemoProcess) -> None:
    page.goto(demo.url)
    expect(page.locator("section[data-node]")).to_have_count(24)
    expect(page.locator('section[data-state="live"]').nth(20)).to_be_attached()


def test_the_herd_is_there_and_lives(page: Page, demo: DemoProcess) -> None:
    _open(page, demo)
    for state in ("free", "busy", "fault"):
        expect(page.locator(f'button[data-state="{state}"] .count')).not_to_have_text("0")
    page.get_by_role("button", name="h100-02").click()
    bars = page.locator('section[aria-label="h100-02"]').get_by_role("meter", name="Utilisation of GPU")
    expect(bars.first).to_be_attached()
    before = bars.evaluate_all("bars => bars.map(bar => bar.getAttribute('aria-valuenow')).join()")
    page.wait_for_function(
        """before => [...document.querySelectorAll('section[aria-label="h100-02"] [role=meter]')]
            .filter(bar => bar.getAttribute('aria-label').startsWith('Utilisation'))
            .map(bar => bar.getAttribute('aria-valuenow')).join() !== before""",
        arg=before,
    )
    expect(page.locator('section[aria-label="h100-02"] [data-pid]').first).to_be_visible()


def test_every_line_of_the_herd_lives(page: Page, demo: DemoProcess) -> None:
    _open(page, demo)
    read = """() => [...document.querySelectorAll('section[data-state=live] [role=meter][aria-label=CPU]')]
        .map(bar => bar.getAttribute('aria-valuenow'))"""
    before = page.evaluate(read)
    assert len(before) > 20
    # Nothing but numbers changes here: a line that only moves with its node's inventory would stand still.
    page.wait_for_function(
        f"before => ({read})().filter((value, i) => value !== before[i]).length >= 20", arg=before
    )


def test_slices_are_rows_of_their_own(page: Page, demo: DemoProcess) -> None:
    _open(page, demo)
    page.get_by_role("button", name="a100-01").click()
    section = page.locator('section[aria-label="a100-01"]')
    expect(section.get_by_text("split into slices").first).to_be_visible()
    expect(section.get_by_text("1g.10gb").first).to_be_visible()


def test_everything_comes_from_below_the_base_path_and_keeps_the_policy(
    page: Page, demo: DemoProcess
) -> None:
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.add_init_script(
        "window.breaches = []; addEventListener('securitypolicyviolation', e => breaches.push(e.violatedDirective))"
    )
    response = page.goto(demo.url)
    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    expect(page.locator("section[data-node]")).to_have_count(24)
    page.get_by_role("button", name="Expand all").click()
    expect(page.get_by_role("meter").first).to_be_visible()
    origin = urlsplit(demo.url)
    for address in addresses:
        parts = urlsplit(address)
        assert (parts.scheme, parts.netloc) == (origin.scheme, origin.netloc), address
        assert parts.path.startswith("/gpus/"), address
    assert f"{demo.url}api/v1/stream" in addresses
    assert page.evaluate("window.breaches") == []


def test_no_width_scrolls_sideways(page: Page, demo: DemoProcess) -> None:
    _open(page, demo)
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator("[data-pid]").first).to_be_attached()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        expect_no_overflow(page, f"{width} wide")
