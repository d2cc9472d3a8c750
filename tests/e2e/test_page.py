"""What a viewer sees, from an empty hub to a node at work."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect

from e2e.hub_process import HubProcess
from e2e.reports import GIB, IDLE, UNKNOWN, gpu, report, working
from gpuherd.model.processes import Process
from gpuherd.model.reports import Problem

"""Milliseconds: a report needs at most a tick and a frame to be seen, on a slow machine a little more."""


def test_an_empty_hub_says_how_to_add_a_node_and_shows_it_when_it_comes(page: Page, hub: HubProcess) -> None:
    page.goto(hub.url)
    expect(page.get_by_role("heading", name="No nodes yet")).to_be_visible()
    expect(page.get_by_text(f"gpuherd agent --hub {hub.url}")).to_be_visible()
    expect(page.get_by_text("gpuherd demo")).to_be_visible()

    node = hub.join("alpha")
    section = page.locator(f'section[data-node="{node.id}"]')
    expect(section).to_contain_text("never reported")
    # What is not known is not said to be missing.
    expect(section).not_to_contain_text("no GPU")
    node.report(report([(gpu(0), IDLE)]))
    expect(section).to_have_attribute("data-state", "live")
    expect(page).to_have_title("1 free · gpuherd")


def test_a_node_at_work_is_shown_with_its_devices_processes_and_ages(page: Page, hub: HubProcess) -> None:
    node = hub.join("alpha")
    process = Process(
        pid=4242,
        user="user07",
        command="python train.py --epochs 3",
        started_at=time.time() - 7265,
        job="991",
    )
    node.report(report([(gpu(0), working(0.83)), (gpu(1), IDLE)], processes=[(0, process)]))
    page.goto(hub.url)

    busy = page.locator('[data-device="GPU-0"]')
    expect(busy).to_have_attribute("data-state", "busy")
    for text in ("busy", "83 %", "60.0 / 80 GiB", "64 °C", "310 / 400 W"):
        expect(busy).to_contain_text(re.compile(re.escape(text).replace("\\ ", r"\s*")))
    expect(busy).to_contain_text(re.compile(r"busy\s+for \d+ (s|min)"))
    expect(busy.get_by_role("meter", name="Utilisation of GPU 0")).to_have_attribute("aria-valuenow", "83")
    expect(busy.get_by_role("meter", name="Memory of GPU 0")).to_have_attribute("aria-valuenow", "75")

    row = busy.locator('[data-pid="4242"]')
    for text in (
        "user07",
        "4242",
        "58.0 GiB",
        "7.5 cores",
        "2 h 1 min",
        "job 991",
        "python train.py --epochs 3",
    ):
        expect(row).to_contain_text(text)

    free = page.locator('[data-device="GPU-1"]')
    expect(free).to_have_attribute("data-state", "free")
    expect(free.locator("[data-pid]")).to_have_count(0)

    section = page.locator(f'section[data-node="{node.id}"]')
    for text in ("alpha", "550.54.15", "192.0.2.11 (eth0)", "128 threads", "/scratch", "800 GiB of 1000 GiB"):
        expect(section).to_contain_text(text)
    expect(section).to_contain_text(re.compile(r"\d+ s ago"))
    expect(section.get_by_role("meter", name="CPU")).to_have_attribute("aria-valuenow", "25")

    expect(page.get_by_test_id("free-count")).to_have_text("1")
    model = page.locator('[data-model="A100 80GB"]')
    expect(model.locator(".count")).to_have_text("1")
    expect(model).to_contain_text("1 on alpha")
    expect(model.get_by_role("img", name="States: 1 free, 1 busy")).to_be_visible()
    expect(page.locator('button[data-state="busy"] .count')).to_have_text("1")


def test_changes_arrive_by_themselves(page: Page, hub: HubProcess) -> None:
    node = hub.join("alpha")
    node.report(report([(gpu(0), working(0.2))], processes=[(0, Process(pid=11, user="user01"))]))
    page.goto(hub.url)
    device = page.locator('[data-device="GPU-0"]')
    expect(device.get_by_role("meter", name="Utilisation")).to_have_attribute("aria-valuenow", "20")

    node.report(report([(gpu(0), working(0.97))], processes=[(0, Process(pid=12, user="user02"))]))
    expect(device.get_by_role("meter", name="Utilisation")).to_have_attribute("aria-valuenow", "97")
    expect(device).to_contain_text("user02")
    expect(device).not_to_contain_text("user01")

    # The node's own line changes too, with nothing but numbers having changed.
    line = page.locator(f'section[data-node="{node.id}"]')
    expect(line.get_by_role("img", name="GPU 0: busy")).to_be_visible()
    idle = report([(gpu(0), IDLE)], processes=[(0, Process(pid=12, user="user02"))], cpu_ratio=0.66)
    node.report(idle)
    expect(line.get_by_role("meter", name="CPU")).to_have_attribute("aria-valuenow", "66")
    expect(device.get_by_role("meter", name="Utilisation")).to_have_attribute("aria-valuenow", "0")

    node.report(report([(gpu(0), IDLE), (gpu(1), IDLE)]))
    expect(line.get_by_role("img", name="GPU 0: free")).to_be_visible()
    expect(page).to_have_title("2 free · gpuherd")
    expect(device.locator("[data-pid]")).to_have_count(0)


def test_unknown_is_a_dash_and_never_zero(page: Page, hub: HubProcess) -> None:
    hub.join("alpha").report(report([(gpu(0), UNKNOWN)]))
    page.goto(hub.url)
    device = page.locator('[data-device="GPU-0"]')
    expect(device.get_by_role("img", name="Utilisation of GPU 0: unknown")).to_be_visible()
    expect(device).to_contain_text("– / 80 GiB")
    expect(device).not_to_contain_text(re.compile(r"\b0 %"))
    expect(device).not_to_have_attribute("data-state", "free")


def test_a_host_without_a_gpu_says_why_and_points_to_the_doctor(page: Page, hub: HubProcess) -> None:
    why = "no GPU found: libnvidia-ml.so.1 is not installed"
    hub.join("laptop").report(report([], problems=[Problem(code="no_driver", message=why)]))
    page.goto(hub.url)
    section = page.get_by_label("laptop", exact=True)
    expect(section.get_by_text(why)).to_be_visible()
    expect(section).to_contain_text("gpuherd doctor laptop")
    expect(section.get_by_role("meter", name="RAM")).to_have_attribute("aria-valuenow", "25")


def test_a_fault_is_told_in_words(page: Page, hub: HubProcess) -> None:
    problem = Problem(code="gpu_lost", message="GPU 1 is lost: reboot", device_uuid="GPU-1", is_fault=True)
    node = hub.join("alpha")
    node.report(report([(gpu(0), IDLE), (gpu(1), UNKNOWN)], problems=[problem]))
    page.goto(hub.url)
    lost = page.locator('[data-device="GPU-1"]')
    expect(lost).to_have_attribute("data-state", "fault")
    expect(lost.get_by_text("GPU 1 is lost: reboot")).to_be_visible()
    expect(page.locator('[data-device="GPU-0"]')).to_have_attribute("data-state", "free")
    page.get_by_role("button", name="alpha").click()
    expect(
        page.locator(f'section[data-node="{node.id}"]').get_by_text("GPU 1 is lost: reboot")
    ).to_be_visible()


def test_nodes_open_and_close_by_keyboard_and_stay_so(page: Page, hub: HubProcess) -> None:
    hub.join("alpha").report(report([(gpu(0), IDLE)]))
    page.goto(hub.url)
    button = page.get_by_role("button", name="alpha")
    expect(button).to_have_attribute("aria-expanded", "true")
    page.get_by_role("button", name="Collapse all").focus()
    page.keyboard.press("Tab")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(page.locator('[data-device="GPU-0"]')).to_have_count(0)
    page.reload()
    expect(button).to_have_attribute("aria-expanded", "false")
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator('[data-device="GPU-0"]')).to_be_visible()


def test_hostile_text_is_harmless(page: Page, hub: HubProcess) -> None:
    evil = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
    turned = "innocent\u202egnp.exe\u2066"
    endless = "W" * 128
    hub.join('<b>bold</b> & "quoted" \'').report(
        report(
            [
                (gpu(0, name=evil), working(0.5)),
                (gpu(1, name=endless, uuid='"><svg onload=alert(3)>'), working(0.5)),
            ],
            processes=[
                (0, Process(pid=1, user=evil, command=f"{evil} {turned}\x1b[31m", container=evil, job=evil)),
                (1, Process(pid=2, user=endless, command="A" * 512, job=endless)),
            ],
            problems=[Problem(code="xid", message=f"{evil}{turned}"), Problem(code="xid", message="M" * 512)],
            hostname=evil,
        )
    )
    page.goto(hub.url)
    expect(page.locator('[data-pid="1"]')).to_contain_text("<script>alert(2)</script>")
    expect(page.get_by_role("button", name="<b>bold</b>")).to_be_visible()
    assert page.locator("#app img, #app script, #app b, svg[onload]").count() == 0
    hidden = page.evaluate(
        "() => [...document.body.innerText].filter(c => /[\\u202e\\u2066\\u001b]/.test(c)).length"
    )
    assert hidden == 0
    assert _overflow(page) == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert _overflow(page) == 0


def _overflow(page: Page) -> int:
    width: int = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return width


def test_memory_shared_with_the_host_is_named(page: Page, hub: HubProcess) -> None:
    import msgspec

    facts = msgspec.structs.replace(gpu(0), memory_basis="host", memory_total_bytes=120 * GIB)
    hub.join("spark").report(report([(facts, working(0.4))]))
    page.goto(hub.url)
    expect(page.locator('[data-device="GPU-0"]')).to_contain_text("shared with the host")
