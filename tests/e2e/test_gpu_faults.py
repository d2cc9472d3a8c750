"""GPUs that are missing or in fault: what the page and the wall say, and what an admin can say of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import structs
from playwright.sync_api import Page, Route, expect

from e2e.conftest import Complaints
from e2e.hub_process import HubProcess
from e2e.places import show
from e2e.reports import IDLE, gpu, report
from gpuherd.model.reports import Problem

PASSWORD = "correct horse battery"
KEPT = gpu(0, uuid="GPU-kept")
PULLED = structs.replace(gpu(1, uuid="GPU-pulled"), serial="132", pci_bus_id="00000000:3B:00.0")
XID = Problem(
    code="xid",
    message="Xid 119, no answer: reset it",
    device_uuid="GPU-kept",
    is_fault=True,
    since=7.0,
    xid=119,
)
HUNG = Problem(code="driver_hung", message="the driver does not respond: reboot", is_fault=True)
DESCRIBED = "GPU 1, A100-SXM4-80GB, serial 132, slot 0000:3b:00.0"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Run a hub with an admin and a member."""
    hub = HubProcess(tmp_path_factory.mktemp("lab"))
    for name, role in {"ada": "admin", "ben": "member"}.items():
        hub.administer("account", "create", name, "--role", role, "--password-file", "-", stdin=PASSWORD)
    hub.start()
    yield hub
    hub.kill()


def _log_in(page: Page, hub: HubProcess, name: str) -> None:
    answer = page.request.post(f"{hub.url}api/v1/session", data={"name": name, "password": PASSWORD})
    assert answer.status == 201, answer.text()


def _pull(hub: HubProcess, name: str) -> str:
    """Let a node report two GPUs, then one of them, which has an Xid; give the node's id."""
    node = hub.node(name)
    node.report(report([(KEPT, IDLE), (PULLED, IDLE)]))
    node.report(report([(KEPT, IDLE)], problems=[XID]))
    return node.id


def test_an_admin_says_that_a_missing_gpu_was_taken_out(
    page: Page, lab: HubProcess, complaints: Complaints
) -> None:
    complaints.may_be_refused = True
    node_id = _pull(lab, "alpha")
    place = f"{lab.url}?gpu=GPU-pulled"
    _log_in(page, lab, "ben")
    show(page, place)
    expect(page.get_by_text("missing since").first).to_contain_text(DESCRIBED)
    button = page.get_by_role("button", name="Forget this GPU; it no longer counts as missing", exact=True)
    expect(button).to_have_count(0)  # not for members

    _log_in(page, lab, "ada")
    show(page, place)
    waiting: list[Route] = []
    page.route("**/forget-gpu", lambda route: waiting.append(route))  # noqa: PLW0108 - it wants a function
    button.click()
    page.get_by_role("button", name="No", exact=True).click()
    button.click()
    page.get_by_role("button", name="It was removed?").click()
    expect(button).to_be_disabled()
    refusal = {"error": {"code": "conflict", "message": "not now, please"}}
    (route,) = waiting  # "No" has asked for nothing
    route.fulfill(status=409, json=refusal)
    expect(page.get_by_role("alert").get_by_text("not now, please")).to_be_visible()

    page.unroute("**/forget-gpu")
    button.click()
    page.get_by_role("button", name="It was removed?").click()
    expect(page.locator(f'.page[data-node="{node_id}"]')).to_be_visible()
    expect(page.locator('[data-device="GPU-kept"]')).to_be_visible()
    expect(page.locator('[data-device="GPU-pulled"]')).to_have_count(0)


def test_an_admin_acknowledges_a_remembered_fault(page: Page, lab: HubProcess) -> None:
    _pull(lab, "beta")
    _log_in(page, lab, "ada")
    show(page, f"{lab.url}?gpu=GPU-kept")
    gpu_page = page.locator('.page[data-device="GPU-kept"]')
    expect(gpu_page).to_have_attribute("data-state", "fault")
    page.get_by_role("button", name="Acknowledge its Xid and ECC errors so far").click()
    page.get_by_role("button", name="Acknowledge?").click()
    expect(gpu_page).to_have_attribute("data-state", "free")
    expect(page.get_by_role("button", name="Acknowledge its Xid")).to_have_count(0)


def test_the_wall_tells_which_gpu_is_missing_and_counts_nodes_in_fault(page: Page, hub: HubProcess) -> None:
    node_id = _pull(hub, "alpha")
    hub.node("beta").report(report([(gpu(0, uuid="GPU-hung"), IDLE)]))
    hub.node("beta").report(report([], problems=[HUNG]))
    hub.node("bare").report(report([], problems=[HUNG]))
    show(page, f"{hub.url}?wall")
    missing = page.locator(f'[data-node="{node_id}"]')
    expect(missing).to_contain_text("1 GPU missing since")
    expect(missing).to_contain_text(DESCRIBED)
    expect(page.locator(f'[data-node="{hub.node("bare").id}"]')).to_contain_text(HUNG.message)
    # All GPUs of alpha are in fault, too: one has an Xid, the other is missing.
    expect(page.get_by_text("3 whole nodes")).to_be_visible()
