"""The pages beside the herd: users, a node, a GPU, and their charts of the last minutes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from msgspec import structs
from playwright.sync_api import Browser, Page, Route, expect

from e2e.conftest import Complaints
from e2e.hub_process import DemoProcess, HubProcess, ask
from e2e.places import WIDTHS, expect_no_overflow
from e2e.reports import IDLE, gpu, report, working
from e2e.test_accessibility import violations
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import Process
from gpuherd.model.reports import Problem, Report
from support.running import eventually

PHONE = {"width": 390, "height": 844}
LOST = (
    "GPU 3 has fallen off the bus: look for Xid messages in the kernel log, reseat the card, then reset it or reboot "
    "the machine and tell the vendor what you found"
)
CHARTS = ("Utilisation", "Memory", "Temperature", "Power", "SM clock", "Node")


def _named(name: str, index: int) -> DeviceFacts:
    return gpu(index, uuid=f"GPU-{name}-{index}")


def _alpha() -> Report:
    """Make ada's node: at work on two GPUs, the third is free, the fourth is lost."""
    return report(
        [
            (_named("alpha", 0), working(0.9)),
            (_named("alpha", 1), working(0.7)),
            (_named("alpha", 2), IDLE),
            (_named("alpha", 3), IDLE),
        ],
        processes=[
            (0, Process(pid=11, user="ada", command="python train.py", started_at=time.time() - 7200)),
            (1, Process(pid=12, user="ada", command="python eval.py", job="77", container="jax")),
        ],
        problems=[
            Problem(
                code="gpu_lost",
                message=LOST,
                device_uuid="GPU-alpha-3",
                is_fault=True,
                since=time.time() - 600,
            ),
            Problem(code="note", message="the fan is loud", since=time.time() - 3600),
        ],
    )


def _beta(name: str = "beta") -> Report:
    """Make a node of three owners, one of them unknown."""
    return report(
        [(_named(name, 0), working(0.5)), (_named(name, 1), working(0.4)), (_named(name, 2), IDLE)],
        processes=[
            (0, Process(pid=21, user="ada")),
            (0, Process(pid=22, user="bo")),
            (1, Process(pid=23, user=None)),
        ],
    )


class Herd:
    """A hub with ada's node and another one."""

    def __init__(self, hub: HubProcess) -> None:
        self.hub = hub
        self.url = hub.url
        self.alpha, self.beta = hub.join("alpha"), hub.join("beta")

    def report(self) -> None:
        """Put everything back to how the tests expect it."""
        self.alpha.report(_alpha())
        self.beta.report(_beta())


@pytest.fixture(scope="module")
def known_herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Herd]:
    hub = HubProcess(tmp_path_factory.mktemp("herd"))
    hub.start()
    try:
        yield Herd(hub)
    finally:
        hub.stop()


@pytest.fixture
def herd(known_herd: Herd) -> Herd:
    """Give the one herd of all tests, as each of them wants to find it."""
    known_herd.report()
    return known_herd


def _go(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator("main")).to_have_attribute("data-live", "true")


def _uuid(demo: DemoProcess, node_id: str, position: int) -> str:
    """Give a device of the demo, which needs a moment to report it."""
    devices = eventually(
        lambda: ask(f"{demo.url}api/v1/nodes/{node_id}")["devices"], lambda found: len(found) > position
    )
    return str(devices[position]["facts"]["uuid"])


# -- users -----------------------------------------------------------------------------------------------------


def test_users_with_what_they_hold(page: Page, herd: Herd) -> None:
    _go(page, f"{herd.url}?users")
    ada = page.locator('[data-user="ada"]')
    expect(ada.locator(".devices li")).to_have_text(["alpha/0,1", "beta/0"])
    expect(ada.locator(".memory")).to_have_text("174 GiB")
    expect(ada.locator(".processes")).to_contain_text("3")
    # Two whole GPUs and half of a shared one, of seven.
    expect(ada.locator(".fraction")).to_have_text("36 %")
    expect(ada.get_by_role("img", name="3 busy")).to_be_visible()
    free = page.locator("[data-free]")
    expect(free.locator(".devices li")).to_have_text(["alpha/2", "beta/2"])
    expect(free.locator(".fraction")).to_have_text("29 %")
    rows = page.locator("[data-user]")
    expect(rows).to_have_count(3)
    expect(rows.last).to_contain_text("unknown user")


def test_users_are_sorted_by_what_is_asked(page: Page, herd: Herd) -> None:
    _go(page, f"{herd.url}?users")
    rows = page.locator("[data-user]")
    expect(rows).to_have_count(3)
    read = "rows => rows.map(row => row.dataset.user)"
    assert rows.evaluate_all(read) == ["ada", "bo", ""]
    expect(page.get_by_role("columnheader", name="GPU memory")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="User", exact=True).click()
    expect(
        page.get_by_role("table", name="Users and their GPUs").get_by_role("columnheader", name="User")
    ).to_have_attribute("aria-sort", "ascending")
    assert rows.evaluate_all(read) == ["ada", "bo", ""]
    page.get_by_role("button", name="User", exact=True).click()
    expect(
        page.get_by_role("table", name="Users and their GPUs").get_by_role("columnheader", name="User")
    ).to_have_attribute("aria-sort", "descending")
    assert rows.evaluate_all(read) == ["bo", "ada", ""]


def test_the_order_of_the_users_stands_in_the_address(page: Page, herd: Herd) -> None:
    _go(page, f"{herd.url}?users=-user")
    rows = page.locator("[data-user]")
    expect(rows).to_have_count(3)
    expect(rows.first).to_have_attribute("data-user", "bo")
    expect(
        page.get_by_role("table", name="Users and their GPUs").get_by_role("columnheader", name="User")
    ).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="User", exact=True).click()
    expect(page).to_have_url(f"{herd.url}?users=user")
    expect(rows.first).to_have_attribute("data-user", "ada")
    page.get_by_role("button", name="GPU memory").click()
    expect(page).to_have_url(f"{herd.url}?users")
    page.go_back()
    page.go_back()
    expect(page).to_have_url(f"{herd.url}?users=-user")
    expect(rows.first).to_have_attribute("data-user", "bo")


def test_the_own_row_stands_out_and_is_remembered(page: Page, herd: Herd) -> None:
    _go(page, f"{herd.url}?users")
    bo = page.locator('[data-user="bo"]')
    expect(bo).to_be_visible()
    bo.hover()
    bo.get_by_role("button").click()
    expect(bo).to_have_class(re.compile(r"\bme\b"))
    assert page.evaluate("localStorage.getItem('gpuherd.me')") == "bo"
    _go(page, f"{herd.url}?users")
    expect(bo).to_have_class(re.compile(r"\bme\b"))
    expect(page.locator('[data-user="ada"]')).not_to_have_class(re.compile(r"\bme\b"))
    bo.get_by_role("button", name="remove the mark").click()
    expect(bo).not_to_have_class(re.compile(r"\bme\b"))
    assert page.evaluate("localStorage.getItem('gpuherd.me')") is None


def test_the_title_says_where_one_is(page: Page, herd: Herd) -> None:
    alpha = herd.alpha.id
    places = {
        "?users": "Users",
        "?usage": "Usage",
        "?timeline": "Bookings",
        "?bookings": "My bookings",
        "?q=alpha": "alpha",
        f"?node={alpha}": "alpha",
        "?gpu=GPU-alpha-1": "alpha/1",
        "?gpu=alpha/1": "alpha/1",
        "?user=ada": "ada",
        "?wall": "Wall",
    }
    for place, name in places.items():
        page.goto(herd.url + place)
        expect(page).to_have_title(f"{name} · 2 free · gpuherd")


def test_users_change_while_one_looks_and_lead_to_their_gpus(page: Page, herd: Herd) -> None:
    _go(page, f"{herd.url}?users")
    expect(page.locator('[data-user="bo"]')).to_be_visible()
    quiet = report([(_named("beta", index), IDLE) for index in range(3)])
    herd.beta.report(quiet)
    expect(page.locator('[data-user="bo"]')).to_have_count(0)
    ada = page.locator('[data-user="ada"]')
    expect(ada.locator(".devices li")).to_have_text(["alpha/0,1"])
    ada.get_by_role("link", name="1", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?gpu=GPU-alpha-1$"))
    expect(page.get_by_role("heading", name="/1")).to_be_visible()
    page.go_back()
    ada.get_by_role("link", name="alpha").click()
    expect(page).to_have_url(re.compile(r"\?node=alpha$"))


def test_nobody_is_told_apart_from_nothing(page: Page, hub: HubProcess) -> None:
    hub.join("idle").report(report([(gpu(0), IDLE)]))
    _go(page, f"{hub.url}?users")
    expect(page.get_by_text("No one is using a GPU right now.")).to_be_visible()
    expect(page.locator("[data-free] .devices li")).to_have_text(["idle/0"])


# -- a node ----------------------------------------------------------------------------------------------------


def test_a_node_with_everything_of_the_machine(page: Page, herd: Herd) -> None:
    _go(page, f"{herd.url}?node=alpha")
    main = page.locator("main")
    expect(page.get_by_role("heading", name="alpha", exact=True)).to_be_visible()
    for words in (
        "EPYC 7763 · 128 threads",
        "128 GiB of 512 GiB",
        "550.54.15",
        "Debian GNU/Linux 12",
        "192.0.2.11 (eth0)",
        "1 d 1 h",
        "in sync",
        "agent (push)",
        "/scratch",
        "800 GiB of 1000 GiB",
    ):
        expect(main).to_contain_text(words)
    expect(main.get_by_text("the fan is loud")).to_contain_text("the fan is loud")
    expect(main.get_by_label("Problems").first).to_contain_text("for 1 h")
    cards = page.locator("article[data-device]")
    expect(cards).to_have_count(4)
    first = cards.first
    expect(first).to_contain_text("90 %")
    expect(first).to_contain_text("60.0 / 80 GiB")
    expect(first).to_contain_text("64 °C")
    expect(first).to_contain_text("310 / 400 W")
    expect(first).to_contain_text("ada")
    expect(cards.nth(2)).to_have_attribute("data-state", "free")
    expect(cards.nth(3)).to_have_attribute("data-state", "fault")
    reason = cards.nth(3).get_by_text(LOST)
    expect(reason).to_be_visible()
    assert reason.evaluate("e => e.scrollHeight - e.clientHeight") <= 1, "the remedy is not cut off"
    told = _alpha()
    busier = structs.replace(told.sample, devices=(working(0.33), *told.sample.devices[1:]))
    herd.alpha.report(structs.replace(told, sample=busier))
    expect(first).to_contain_text("33 %")


def test_the_processes_of_a_node_can_be_sorted(page: Page, herd: Herd) -> None:
    _go(page, f"{herd.url}?node=beta")
    table = page.get_by_role("table", name="Processes")
    rows = table.locator("[data-pid]")
    expect(rows).to_have_count(3)
    read = "rows => rows.map(row => row.dataset.pid)"
    assert rows.evaluate_all(read) == ["21", "22", "23"]
    table.get_by_role("button", name="User").click()
    table.get_by_role("button", name="User").click()
    expect(table.get_by_role("columnheader", name="User")).to_have_attribute("aria-sort", "descending")
    assert rows.evaluate_all(read) == ["22", "21", "23"]
    table.get_by_role("link", name="GPU 1").click()
    expect(page).to_have_url(re.compile(r"\?gpu=GPU-beta-1$"))


def test_slices_stand_in_the_card_of_their_gpu(page: Page, demo: DemoProcess) -> None:
    _go(page, f"{demo.url}?node=a100-01")
    card = page.locator("article[data-device]").first
    expect(card).to_contain_text("split into slices")
    expect(card.get_by_role("list", name="Slices").locator("[data-device]")).to_have_count(7)
    card.get_by_role("link", name="0.3").click()
    expect(page.get_by_role("heading", name="a100-01/0.3")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^a100-01/0\.3 · .+ · gpuherd$"))
    expect(page.locator("main")).to_contain_text("Slice of")


def test_a_silent_node_says_so_with_its_last_values(page: Page, demo: DemoProcess) -> None:
    _go(page, f"{demo.url}?node=v100-01")
    expect(page.locator("main [data-node-state]").first).not_to_have_attribute("data-node-state", "live")
    expect(page.locator("article[data-device]").first).to_contain_text("GiB")
    expect(page.get_by_text(re.compile(r"No report for \d+ (s|min)"))).to_have_count(1)
    expect(page.locator("main")).not_to_contain_text("its last report is late")


def test_a_node_of_which_nothing_is_known_and_one_without_a_gpu_say_what_to_do(
    page: Page, hub: HubProcess
) -> None:
    hub.join("mute")
    why = "no GPU found: libnvidia-ml.so.1 is not installed"
    hub.join("bare").report(report([], problems=[Problem(code="no_driver", message=why)]))
    _go(page, f"{hub.url}?node=mute")
    main = page.locator("main")
    expect(main).to_contain_text("No data from this node yet")
    expect(main).to_contain_text("Check that its agent is running.")
    expect(main).not_to_contain_text("no GPU")
    expect(main.locator("figure, [role=meter]")).to_have_count(0)
    _go(page, f"{hub.url}?node=bare")
    expect(main).to_contain_text("No GPU found on this node")
    expect(main).to_contain_text(why)
    expect(main).to_contain_text("gpuherd doctor")
    expect(main.locator("figure[data-chart]")).to_have_count(1)
    expect(main.locator('figure[data-chart="Node"]')).to_be_visible()


# -- a GPU -----------------------------------------------------------------------------------------------------


def test_a_gpu_with_its_state_reason_and_facts(page: Page, herd: Herd) -> None:
    told = _alpha()
    hot = structs.replace(
        working(0.9), throttle_reasons=32 | 4, ecc_uncorrected=3, clock_sm_hertz=1.2e9, performance_state=0
    )
    facts = structs.replace(
        told.facts.devices[0],
        pci_bus_id="00000000:3B:00.0",
        clock_sm_max_hertz=1.4e9,
        compute_capability="8.0",
    )
    herd.alpha.report(
        structs.replace(
            told,
            facts=structs.replace(told.facts, devices=(facts, *told.facts.devices[1:])),
            sample=structs.replace(told.sample, devices=(hot, *told.sample.devices[1:])),
        )
    )
    _go(page, f"{herd.url}?gpu=GPU-alpha-0")
    main = page.locator("main")
    expect(main.locator(".big")).to_have_text("fault")
    expect(main.locator(".since")).to_have_text(re.compile(r"^for \d+ (s|min)$"))
    for words in (
        "90 %",
        "60.0 / 80 GiB",
        "310 / 400 W",
        "throttled: thermal",
        "the power limit, heat",
        "3 uncorrected ECC errors",
        "1200 of 1400 MHz",
        "00000000:3B:00.0",
        "GPU-alpha-0",
        "python train.py",
        "2 h",
    ):
        expect(main).to_contain_text(words)
    _go(page, f"{herd.url}?gpu=GPU-alpha-3")
    expect(main.locator(".big")).to_have_text("fault")
    expect(main.locator(".reason")).to_have_text(LOST)
    expect(main).to_contain_text("No processes on this GPU.")
    page.get_by_role("navigation", name="Where you are").get_by_role("link", name="alpha").click()
    expect(page).to_have_url(re.compile(r"\?node=alpha$"))


@pytest.mark.parametrize(
    "place", ["?node=alpha9", "?gpu=GPU-gone", f"?node={quote('<img src=x onerror=alert(1)>')}"]
)
def test_what_is_not_there_says_so_and_leads_back(page: Page, herd: Herd, place: str) -> None:
    _go(page, f"{herd.url}{place}")
    expect(page.get_by_role("heading", name="not found")).to_be_visible()
    if place == "?node=alpha9":
        expect(page.get_by_role("link", name="alpha", exact=True)).to_be_visible()
    page.get_by_role("link", name="Back to the herd").click()
    expect(page).to_have_url(herd.url)


def test_a_node_that_is_removed_while_one_looks(page: Page, herd: Herd) -> None:
    herd.hub.join("gamma").report(_beta("gamma"))
    _go(page, f"{herd.url}?node=gamma")
    expect(page.get_by_role("heading", name="gamma", exact=True)).to_be_visible()
    herd.hub.remove("gamma")
    expect(page.get_by_role("heading", name="Node not found")).to_be_visible()


# -- charts ----------------------------------------------------------------------------------------------------


def _past(uuid: str, columns: dict[str, list[float | None]], times: list[float]) -> dict[str, Any]:
    unknown: list[float | None] = [None] * len(times)
    names = ("utilization_gpu", "memory_used_bytes", "temperature_celsius", "power_watts", "clock_sm_hertz")
    return {
        "node_id": "alpha",
        "interval_seconds": 5,
        "times": times,
        "host": {"cpu_ratio": unknown, "memory_used_bytes": unknown},
        "devices": {uuid: {name: columns.get(name, unknown) for name in names}},
    }


_LINE_COLUMNS = """([title, token]) => {
    // Which columns of the plot have a pixel of the line's colour, as shares of its width.
    const figure = document.querySelector(`figure[data-chart="${title}"]`);
    const canvas = figure?.querySelector('canvas');
    if (!canvas) return []; // The charts are loaded after the page.
    const over = figure.querySelector('.u-over').getBoundingClientRect();
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    // On a copy: the browser objects to reading the same canvas again and again.
    const copyOf = (width, height) => Object.assign(document.createElement('canvas'), {width, height})
        .getContext('2d', {willReadFrequently: true});
    const copy = copyOf(canvas.width, canvas.height);
    copy.drawImage(canvas, 0, 0);
    const probe = copyOf(1, 1);
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(token).trim();
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
    const left = Math.round((over.left - box.left) * scale), width = Math.round(over.width * scale);
    const {data} = copy.getImageData(left, 0, width, canvas.height);
    const found = new Set();
    for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 24)
            found.add((i / 4) % width);
    return [...found].map(column => column / width).sort((a, b) => a - b);
}"""


def test_charts_begin_with_what_the_hub_remembers_and_keep_its_gaps(page: Page, herd: Herd) -> None:
    now = ask(f"{herd.url}api/v1/health")["time"]
    times = [now - 900 + 5 * i for i in range(180)]
    use = [None if 60 <= i < 120 else 0.5 for i in range(180)]

    def answer(route: Route) -> None:
        body = _past("GPU-alpha-0", {"utilization_gpu": use}, times)
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/api/v1/nodes/alpha/recent*", answer)
    _go(page, f"{herd.url}?gpu=GPU-alpha-0")
    chart = page.locator('figure[data-chart="Utilisation"]')
    expect(chart.locator("canvas")).to_be_visible()
    expect(chart.get_by_role("listitem")).to_have_text("GPU 0: now 90 %, between 50 % and 90 %.")
    page.wait_for_function(f"() => ({_LINE_COLUMNS})(['Utilisation', '--series-1']).length > 50")
    columns = page.evaluate(_LINE_COLUMNS, ["Utilisation", "--series-1"])
    assert min(columns) < 0.05
    assert max(columns) > 0.95
    assert [column for column in columns if 0.36 < column < 0.64] == [], "the gap is drawn over"
    assert len([column for column in columns if 0.05 < column < 0.3]) > 20


def test_charts_of_a_real_hub_share_one_cursor(page: Page, demo: DemoProcess) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(
        "window.breaches = []; addEventListener('securitypolicyviolation', e => breaches.push(e.violatedDirective))"
    )
    _go(page, f"{demo.url}?node=h100-02")
    charts = page.locator("figure[data-chart]")
    expect(charts).to_have_count(len(CHARTS))
    for title in CHARTS:
        expect(page.get_by_role("figure", name=title)).to_be_visible()
    # Each line has been summed up for those who do not see it.
    summary = page.get_by_role("list", name="Temperature").get_by_role("listitem")
    expect(summary).to_have_count(8)
    expect(summary.first).to_have_text(re.compile(r"GPU 0: now \d+ °C, between \d+ °C and \d+ °C\."))
    assert len([address for address in asked if "/recent" in address]) == 1
    # All in sight: charts that nobody sees are drawn seldom, and their axes lag behind.
    page.set_viewport_size({"width": 1280, "height": 2400})
    plots = page.locator("figure .u-over")
    expect(plots.last).to_be_in_viewport()
    box = plots.first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    tooltip = page.locator(".tooltip")
    expect(tooltip).to_have_count(1)
    expect(tooltip).to_contain_text(re.compile(r"\d\d:\d\d:\d\d"))
    expect(tooltip).to_contain_text(re.compile(r"GPU \d\s*\d+ %"))
    cursors = page.locator("figure .u-cursor-x").evaluate_all(
        "lines => lines.map(line => [line.style.transform, line.classList.contains('u-off')])"
    )
    assert len(cursors) == len(CHARTS)
    assert {hidden for _, hidden in cursors} == {False}
    # Charts may differ in width by a pixel.
    places = [float(re.findall(r"[\d.]+", place)[0]) for place, _ in cursors]
    assert max(places) - min(places) <= 2, cursors
    page.mouse.move(0, 0)
    expect(tooltip).to_have_count(0)
    assert page.evaluate("window.breaches") == []
    expect(page.get_by_text(re.compile("^Times in .*UTC")).first).to_be_visible()


def _remembered(page: Page, now: float) -> list[float]:
    """Let the hub remember ten minutes of one GPU, whose use climbs from 0 to 59 %."""
    times = [now - 600 + 10 * i for i in range(60)]
    use: list[float | None] = [i / 100 for i in range(60)]
    body = json.dumps(_past("GPU-alpha-0", {"utilization_gpu": use}, times))
    page.route(
        "**/api/v1/nodes/alpha/recent*",
        lambda route: route.fulfill(body=body, content_type="application/json"),
    )
    return times


def test_keys_move_the_cursor_of_all_charts(page: Page, herd: Herd) -> None:
    _remembered(page, ask(f"{herd.url}api/v1/health")["time"])
    _go(page, f"{herd.url}?gpu=GPU-alpha-0")
    cursor = page.get_by_role("slider", name="Utilisation over time")
    expect(page.get_by_role("list", name="Utilisation").get_by_role("listitem")).to_contain_text(
        "between 0 % and 90 %"
    )
    tooltip = page.locator(".tooltip")
    page.get_by_role("button", name="Custom").focus()  # the last one above the charts
    page.keyboard.press("Tab")
    expect(cursor).to_be_focused()
    expect(tooltip).to_contain_text(re.compile(r"GPU 0\s*90 %"))
    page.keyboard.press("Home")
    # What was there then is shown, said to those who cannot see it, and told at every other chart too.
    expect(tooltip).to_contain_text(re.compile(r"\d\d:\d\d:\d\d\s*GPU 0\s*0 %"))
    expect(cursor).to_have_attribute("aria-valuetext", re.compile(r"^\d\d:\d\d:\d\d: GPU 0 0 %$"))
    expect(cursor).to_have_attribute("aria-valuenow", "0")
    expect(page.locator("[data-then]")).to_have_count(len(CHARTS))
    expect(page.locator("figure .u-cursor-x:not(.u-off)")).to_have_count(len(CHARTS))
    for key, value in (("ArrowRight", "1 %"), ("PageUp", "7 %"), ("ArrowLeft", "6 %"), ("PageDown", "0 %")):
        page.keyboard.press(key)
        expect(cursor).to_have_attribute("aria-valuetext", re.compile(f": GPU 0 {value}$"))
    # The next chart takes the moment over; now moves along.
    page.keyboard.press("Tab")
    expect(page.get_by_role("slider", name="Memory over time")).to_be_focused()
    expect(page.locator('figure[data-chart="Utilisation"] [data-then]')).to_contain_text("0 %")
    page.keyboard.press("End")
    expect(tooltip).to_contain_text(re.compile(r"GPU 0\s*60.0 GiB"))
    page.keyboard.press("Escape")
    expect(tooltip).to_have_count(0)
    expect(page.locator("[data-then]")).to_have_count(0)


def test_a_finger_moves_the_cursor_and_lets_it_stand(
    page: Page, herd: Herd, browser: Browser, browser_context_args: dict[str, Any]
) -> None:
    context = browser.new_context(**{**browser_context_args, "has_touch": True, "viewport": PHONE})
    try:
        phone = context.new_page()
        _remembered(phone, ask(f"{herd.url}api/v1/health")["time"])
        _go(phone, f"{herd.url}?gpu=GPU-alpha-0")
        chart = phone.locator('figure[data-chart="Utilisation"]')
        expect(chart.get_by_role("listitem")).to_contain_text("between 0 % and 90 %")
        box = chart.locator(".u-over").bounding_box()
        assert box is not None
        phone.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tooltip = phone.locator(".tooltip")
        expect(tooltip).to_contain_text(re.compile(r"GPU 0\s*(2|3)\d %"))
        expect(phone.locator("[data-then]")).to_have_count(len(CHARTS))
        phone.get_by_role("heading", name="/0").tap()
        expect(tooltip).to_have_count(0)
    finally:
        context.close()


def test_charts_that_are_filling_up_say_since_when(page: Page, herd: Herd) -> None:
    now = ask(f"{herd.url}api/v1/health")["time"]
    times = [now - 60 + 5 * i for i in range(12)]
    body = json.dumps(_past("GPU-alpha-0", {"utilization_gpu": [0.5] * 12}, times))
    page.route(
        "**/api/v1/nodes/alpha/recent*",
        lambda route: route.fulfill(body=body, content_type="application/json"),
    )
    _go(page, f"{herd.url}?gpu=GPU-alpha-0")
    expect(page.get_by_role("heading", name=re.compile(r"^Since \d\d:\d\d$"))).to_be_visible()
    expect(page.get_by_text("Fewer than 15 minutes so far")).to_be_visible()
    # One of at least two minutes is known: half of the chart, at its right.
    page.wait_for_function(
        f"() => {{ const columns = ({_LINE_COLUMNS})(['Utilisation', '--series-1']);"
        " return columns.length > 50 && columns[0] > 0.4 && columns[0] < 0.6; }"
    )


def test_one_line_can_be_looked_at_alone(page: Page, demo: DemoProcess) -> None:
    _go(page, f"{demo.url}?node=h100-02")
    expect(page.locator("figure[data-chart]")).to_have_count(len(CHARTS))
    page.wait_for_function(f"() => ({_LINE_COLUMNS})(['Temperature', '--series-2']).length > 0")
    page.get_by_role("button", name="Show GPU 0 only").click()
    page.wait_for_function(f"() => ({_LINE_COLUMNS})(['Temperature', '--series-2']).length === 0")
    page.get_by_role("button", name="Show all").click()
    page.mouse.move(0, 0)
    page.wait_for_function(f"() => ({_LINE_COLUMNS})(['Temperature', '--series-2']).length > 0")


def test_charts_follow_the_theme_and_the_width(page: Page, demo: DemoProcess) -> None:
    page.emulate_media(color_scheme="light")
    _go(page, f"{demo.url}?node=h100-02")
    page.wait_for_function(f"() => ({_LINE_COLUMNS})(['Node', '--series-1']).length > 0")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        f"""() => document.documentElement.dataset.theme === 'dark'
            && ({_LINE_COLUMNS})(['Node', '--series-1']).length > 0"""
    )
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(
            """count => {
                const figures = [...document.querySelectorAll('figure[data-chart]')];
                return figures.length === count && figures.every(figure => {
                    const canvas = figure.querySelector('canvas')?.getBoundingClientRect();
                    const target = figure.querySelector('.canvas').getBoundingClientRect();
                    return canvas && canvas.width > 120 && Math.abs(canvas.width - target.width) < 2;
                });
            }""",
            arg=len(CHARTS),
        )


def test_without_the_hubs_memory_the_charts_begin_now(page: Page, herd: Herd, complaints: Complaints) -> None:
    complaints.may_lose_connection = True
    page.route("**/recent*", lambda route: route.abort())
    _go(page, f"{herd.url}?node=alpha")
    expect(page.get_by_text("Could not load")).to_be_visible()
    expect(page.get_by_role("list", name="Node").get_by_role("listitem").first).to_have_text(
        "CPU: now 25 %, between 25 % and 25 %."
    )


def test_the_start_page_does_not_carry_the_charts(page: Page, demo: DemoProcess) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    _go(page, demo.url)
    assert not [address for address in asked if "LastMinutes" in address or "/recent" in address]


def test_everyone_can_read_every_kind_of_page(page: Page, demo: DemoProcess) -> None:
    slice_uuid = _uuid(demo, "a100-01", 1)
    for place, ready in {
        # Slices, a lost GPU, a hung driver, a silent node, one that is not there.
        "?node=a100-01": "figure[data-chart]",
        "?node=l40s-01": "figure[data-chart]",
        "?node=rtx-04": "figure[data-chart]",
        "?node=v100-01": "figure[data-chart]",
        "?node=none": "h2",
        f"?gpu={slice_uuid}": "figure[data-chart]",
    }.items():
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        _go(page, f"{demo.url}{place}")
        expect(page.locator(ready).first).to_be_visible()
        assert violations(page) == [], place
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        assert violations(page) == [], f"{place}, dark"


def test_no_width_scrolls_sideways(page: Page, demo: DemoProcess) -> None:
    uuid = _uuid(demo, "h100-02", 0)
    for place, ready in {
        "?users": "[data-user]",
        "?node=a100-01": "figure[data-chart]",
        f"?gpu={uuid}": "figure[data-chart]",
        "?node=none": "h2",
    }.items():
        _go(page, f"{demo.url}{place}")
        expect(page.locator(ready).first).to_be_visible()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            expect_no_overflow(page, f"{place}, {width} wide")
