"""A herd in which hundreds of people run thousands of processes: tables stay short until one asks for all of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from msgspec import structs
from playwright.sync_api import Page, expect

from e2e.hub_process import HubProcess
from e2e.places import DESK, PHONE, overflow, show
from e2e.reports import gpu, report, working
from gpuherd.model.processes import Process, UseSample
from gpuherd.model.reports import Report

USERS, PROCESSES, GPUS = 500, 2000, 16
SHOWN = 100
MIB = 2**20


def _crowd() -> Report:
    """Make a node whose users have the more memory the lower their number is."""
    started_at = time.time() - 3600
    made = report(
        [(gpu(index, uuid=f"GPU-{index}"), working(0.8, 70)) for index in range(GPUS)],
        processes=[
            (i % GPUS, Process(pid=1000 + i, user=f"user{i % USERS:03d}", started_at=started_at))
            for i in range(PROCESSES)
        ],
    )
    uses = tuple(UseSample(gpu_memory_bytes=(PROCESSES - i % USERS) * MIB) for i in range(PROCESSES))
    return structs.replace(made, sample=structs.replace(made.sample, uses=uses))


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("crowd"))
    hub.start()
    try:
        hub.join("crowd").report(_crowd())
        yield hub
    finally:
        hub.stop()


def test_the_first_hundred_users_and_how_many_there_are_besides(page: Page, crowd: HubProcess) -> None:
    show(page, f"{crowd.url}?users")
    rows = page.locator("[data-user]")
    expect(rows).to_have_count(SHOWN)
    expect(rows.first).to_have_attribute("data-user", "user000")
    expect(page.get_by_text("500 users, 16 GPUs")).to_be_visible()
    expect(page.get_by_text("400 users not shown.")).to_be_visible()
    expect(page.get_by_role("table", name="Users and their GPUs")).to_have_attribute(
        "aria-rowcount", str(USERS + 2)
    )
    page.get_by_role("button", name="Show all 500 users").click()
    expect(rows).to_have_count(USERS)
    expect(page.get_by_text("not shown")).to_have_count(0)
    # It goes on living with all of them.
    update = page.get_by_test_id("last-update")
    before = update.inner_text()
    expect(update).not_to_have_text(before)
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    page.get_by_role("button", name="Show only the first 100").click()
    expect(rows).to_have_count(SHOWN)


def test_the_own_row_is_there_wherever_it_stands(page: Page, crowd: HubProcess) -> None:
    page.add_init_script("localStorage.setItem('gpuherd.me', 'user450')")
    show(page, f"{crowd.url}?users")
    rows = page.locator("[data-user]")
    expect(rows).to_have_count(SHOWN + 1)
    expect(rows.last).to_have_attribute("data-user", "user450")
    expect(rows.last).to_have_class(re.compile(r"\bme\b"))
    expect(page.get_by_text("399 users not shown.")).to_be_visible()


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_node_with_thousands_of_processes(page: Page, crowd: HubProcess, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    show(page, f"{crowd.url}?node=crowd")
    rows = page.locator("[data-pid]")
    expect(rows).to_have_count(SHOWN)
    expect(page.get_by_text("1900 processes not shown.")).to_be_visible()
    # Neither the head nor a card names everyone.
    expect(page.locator("main header").first).to_contain_text("+484")
    card = page.locator("article[data-device]").first
    expect(card.locator(".segment")).to_have_count(25)
    expect(card.get_by_role("meter", name="Memory")).to_have_attribute(
        "aria-valuetext", re.compile("101 smaller processes")
    )
    assert overflow(page) == 0
    if size == DESK:
        page.get_by_role("button", name="Show all 2000 processes").click()
        expect(rows).to_have_count(PROCESSES)
        expect(page.locator("main")).to_have_attribute("data-live", "true")
        page.get_by_role("button", name="Show only the first 100").click()
        expect(rows).to_have_count(SHOWN)
