"""Every page there is, as the part of its address behind the hub's own."""

from __future__ import annotations

from urllib.parse import quote

from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from e2e.hub_process import ask
from support.running import PATIENCE_SECONDS, eventually

PHONE = (390, 844)
DESK = (1280, 900)
PATIENCE_MS = PATIENCE_SECONDS * 1000
WIDTHS = (320, 390, 768, 1024, 1600)
"""From the narrowest phone to a wide desk, in pixels."""


def places(url: str, node: str | None = None) -> dict[str, str]:
    """Name the pages of a hub that has nodes; ``node`` and its first GPU stand for all."""
    chosen = eventually(
        lambda: next(
            (
                entry
                for entry in ask(f"{url}api/v1/fleet")["nodes"]
                if entry["devices"] and (node is None or entry["name"] == node)
            ),
            None,
        ),
        lambda found: found is not None,
    )
    assert chosen is not None
    uuid = chosen["devices"][0]["facts"]["uuid"]
    return {
        "herd": "",
        "users": "?users",
        "node": f"?node={quote(chosen['id'], safe='')}",
        "gpu": f"?gpu={quote(uuid, safe='')}",
        "wall": "?wall",
    }


def past_places(url: str, user: str, node: str | None = None) -> dict[str, str]:
    """Name the pages that tell of the past; ``user`` stands for all."""
    now = places(url, node)
    return {
        "usage": "?usage",
        "user": f"?user={quote(user, safe='')}",
        "gpu over time": f"{now['gpu']}&range=24h",
        "herd over time": "?over-time",
    }


def show(page: Page, url: str) -> None:
    """Open a page and wait until it has live data."""
    page.goto(url)
    expect(page.locator("main")).to_have_attribute("data-live", "true")


def overflow(page: Page) -> int:
    """Tell by how many pixels the page is wider than the window."""
    width: int = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return width


def expect_no_overflow(page: Page, where: str) -> None:
    """Give a page whose width has just changed a moment to settle; then it must not scroll sideways."""
    try:
        page.wait_for_function(
            "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
    except PlaywrightTimeout:
        raise AssertionError(f"{where}: {overflow(page)} px too wide: {wide(page)}") from None


def wide(page: Page) -> list[str]:
    """Name what reaches beyond the right edge, for the message of a failed test."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('body *')]
            .filter(element => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
            .slice(0, 10)
            .map(element => `${element.tagName}.${element.className} ${element.textContent.slice(0, 60)}`)"""
    )
    return found
