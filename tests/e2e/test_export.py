"""The exported page: read without a script, by keyboard and on a phone, and hurt by nothing that a node names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from e2e.places import DESK, PHONE, expect_no_overflow
from e2e.test_accessibility import violations
from gpuherd.client.herd_views import Gpu, GpuBooking, Herd, Notice, Problem
from gpuherd.wiring.exporting.page import PageSettings, herd_page
from support.shown_herds import GIB, NOW, shown_gpu, shown_herd, shown_node, using

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>" + "W" * 60
STATES = ("free", "busy", "held", "booked", "fault", "stale", "offline", "unknown")


def _herd() -> Herd:
    booking = GpuBooking(id=1, holder="carol", title="thesis", starts_at=int(NOW), ends_at=int(NOW) + 7200)
    every = [_gpu(index, state, bookings=(booking,)) for index, state in enumerate(STATES)]
    strange = _gpu(0, "busy", user=HOSTILE, facts={"name": HOSTILE, "uuid": HOSTILE[:90]})
    return shown_herd(
        shown_node("gpu01.example.org", *every, problems=(Problem(message="GPU 4 is lost"),)),
        shown_node("gpu02.example.org", state="never", reason="gpu02: the host key is not known"),
        shown_node(HOSTILE, strange, state="stale", reason=HOSTILE, received_at=NOW - 600),
        notices=(Notice(message=HOSTILE),),
    )


def _gpu(index: int, state: str, *, user: str = "ada", **values: object) -> Gpu:
    processes = using(user, "bob", gpu_memory_bytes=20 * GIB, started_at=NOW - 7500)
    is_used = state in ("busy", "held")
    return shown_gpu(
        index,
        state,
        processes if is_used else (),
        reason="computing",
        since=NOW - 600,
        utilization_gpu=0.9 if is_used else None,
        memory_used_bytes=40 * GIB,
        temperature_celsius=60.0,
        power_watts=300.0,
        **values,  # type: ignore[arg-type]
    )


@pytest.fixture
def address(tmp_path: Path) -> str:
    file = tmp_path / "index.html"
    settings = PageSettings(
        zone=UTC, downloads=("load_data.csv",), old_after_seconds=900, reload_seconds=3600
    )
    file.write_bytes(herd_page(_herd(), settings))
    return file.as_uri()


def test_everyone_can_read_the_exported_page(page: Page, address: str) -> None:
    page.clock.set_fixed_time(datetime.fromtimestamp(NOW + 120, UTC))
    page.goto(address)
    expect(page.locator("#age")).to_have_text("This page is 2 min old.")
    page.clock.set_fixed_time(datetime.fromtimestamp(NOW + 7200, UTC))
    page.reload()
    expect(page.locator("#age.old")).to_have_text("This page is 2 h old: what it says may no longer be true.")
    for opened in page.locator("summary").all():
        opened.click()
    for theme in ("light", "dark"):
        for width, height in (DESK, PHONE):
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": height})
            assert violations(page) == [], f"{theme}, {width} px"
            expect_no_overflow(page, f"{width} px")
    assert page.title() == "GPUs: 1 GPU free"


def test_it_needs_no_script(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_text("Last update: Mon 2026-11-16 17:02:11 UTC")).to_be_visible()
        card = page.locator("section", has=page.get_by_role("heading", name="gpu01.example.org"))
        expect(card.locator("li.free b")).to_have_text("○ free")
        expect(card.locator("li.taken .who").first).to_have_text("ada, bob")
        expect(page.get_by_text("gpu02: the host key is not known")).to_be_visible()
        details = card.get_by_text("ada, 20 GiB, since 14:57").first
        expect(details).not_to_be_visible()
        card.locator("li.taken summary").first.focus()
        page.keyboard.press("Enter")
        expect(details).to_be_visible()
        expect(card.get_by_text("carol (thesis), 17:02 – 19:02").nth(1)).to_be_visible()
    finally:
        context.close()
