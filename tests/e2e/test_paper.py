"""A long herd on paper: the list on the screen is drawn where it is seen, but all of it is printed."""

from __future__ import annotations

import copy
import json
import re
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import Complaints
from e2e.hub_process import HubProcess
from e2e.reports import IDLE, gpu, report, working
from gpuherd.model.processes import Process
from support.running import PATIENCE_SECONDS, eventually


def _snapshot(hub: HubProcess) -> dict[str, Any]:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"{hub.url}api/v1/stream", timeout=PATIENCE_SECONDS
    ) as stream:
        lines = iter(stream.readline, b"")
        found: dict[str, Any] = json.loads(next(line for line in lines if line.startswith(b"data: "))[6:])
    return found


def _repeated(snapshot: dict[str, Any], count: int) -> str:
    """Give a stream of one message in which the herd's one node stands many times, under other names."""
    (first,) = snapshot["nodes"]
    per_node = len(first["devices"])
    columns = ("devices", "device_details", "device_states", "hosts", "host_states")
    before = {name: copy.deepcopy(snapshot[name]) for name in columns}
    for i in range(1, count):
        node = copy.deepcopy(first)
        node |= {"row": i, "id": f"node-{i:04d}", "name": f"node-{i:04d}"}
        for device in node["devices"]:
            device["row"] += i * per_node
            device["facts"]["uuid"] += f"-{i}"
        snapshot["nodes"].append(node)
        for name in columns:
            step = i * per_node if name.startswith("device") else i
            for column, values in before[name].items():
                added = [row + step for row in values] if column == "row" else values
                snapshot[name][column].extend(added)
    return f"retry: 60000\nevent: snapshot\ndata: {json.dumps(snapshot)}\n\n"


@pytest.mark.parametrize(("count", "kind"), [(60, "tiles"), (320, "counts")])
def test_all_nodes_of_a_long_herd_are_printed(
    page: Page, hub: HubProcess, complaints: Complaints, count: int, kind: str
) -> None:
    complaints.may_lose_connection = True
    hub.join("node-0000").report(
        report([(gpu(0), working(0.5)), (gpu(1), IDLE)], processes=[(0, Process(pid=1, user="ada"))])
    )
    # The hub works states out once a second.
    known = eventually(lambda: _snapshot(hub), lambda told: "free" in told["device_states"]["state"])
    body = _repeated(known, count)
    page.route("**/api/v1/stream", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    with page.expect_response(re.compile(r"PrintHerd.*\.js")):
        page.goto(hub.url)
    listed = page.locator("section[data-node]")
    expect(listed.first).to_be_visible()
    assert listed.count() < count
    printed = page.locator("[data-paper-node]")
    expect(printed).to_have_count(0)
    page.emulate_media(media="print")
    expect(printed).to_have_count(count)
    expect(page.locator("[data-paper]")).to_have_attribute("data-paper", kind)
    expect(printed.last).to_contain_text(f"node-{count - 1:04d}")
    expect(printed.last).to_contain_text("2 × A100 80GB")
    expect(printed.last).to_contain_text("1 free, 1 busy")
    expect(page.locator('[data-answer="free"]')).to_be_visible()
    expect(listed.first).to_be_hidden()
    note = page.get_by_text("320 nodes, with GPU counts only")
    if kind == "tiles":
        expect(printed.last.get_by_role("img")).to_have_count(2)
        expect(printed.last).to_contain_text("ada")
        expect(note).to_have_count(0)
        page.emulate_media(media="screen")
        expect(printed).to_have_count(0)
        expect(listed.first).to_be_visible()
    else:
        expect(note).to_be_visible()
    # The browser's own way to print ends with the list as it was.
    assert page.pdf(format="A4").startswith(b"%PDF")
    expect(printed).to_have_count(0)


def test_a_short_herd_is_printed_as_it_is_shown(page: Page, hub: HubProcess) -> None:
    hub.join("alpha").report(report([(gpu(0), IDLE)]))
    page.goto(hub.url)
    expect(page.locator("section[data-node]")).to_have_count(1)
    page.emulate_media(media="print")
    expect(page.locator('[data-device="GPU-0"]')).to_contain_text("free")
    expect(page.locator("[data-paper]")).to_have_count(0)
