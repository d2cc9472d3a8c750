"""What the pages of five older monitors show, feature by feature: whoever used one of them misses nothing here.

Each test is named after the number by which docs/migrate/ knows the feature. Where a feature is met in another way its
docstring says how; most often because here colour tells who may have a GPU, and a bar's length how hard it works.
"""

from __future__ import annotations

import re
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Locator, Page, expect

from e2e.hub_process import HubProcess
from e2e.places import overflow, show
from e2e.reports import IDLE, gpu, report, working
from gpuherd.model.hosts import Address
from gpuherd.model.processes import Process
from gpuherd.model.reports import Report
from support.running import PATIENCE_SECONDS

STARTED = time.time() - 7265


def _alpha(beat: int) -> Report:
    """Make a node at work that changes with every beat, so that updates can be seen."""
    made = report(
        [
            (gpu(0, uuid="GPU-a0"), working(0.30 + 0.01 * (beat % 10))),
            (gpu(1, uuid="GPU-a1"), IDLE),
            (gpu(2, uuid="GPU-a2"), working(0.0)),
        ],
        processes=[
            (0, Process(pid=4242, user="ada", command="python train.py --epochs 3", started_at=STARTED)),
            (0, Process(pid=4243, user="bo", command="python eval.py")),
            (2, Process(pid=4244, user="ada", is_gone=True)),
        ],
        cpu_ratio=0.5,
    )
    addresses = (Address("eth0", "192.0.2.11"), Address("ib0", "198.51.100.7"))
    host = msgspec.structs.replace(made.facts.host, addresses=addresses)
    return msgspec.structs.replace(made, facts=msgspec.structs.replace(made.facts, host=host))


class Beating(threading.Thread):
    """Sends alpha's report once a second."""

    def __init__(self, hub: HubProcess) -> None:
        super().__init__(daemon=True)
        self._node = hub.join("alpha")
        self._ended = threading.Event()

    def run(self) -> None:
        beat = 0
        while not self._ended.wait(1):
            beat += 1
            self._node.report(_alpha(beat))

    def end(self) -> None:
        self._ended.set()
        self.join(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Run a hub with a node at work, one that has fallen silent, one that never spoke, and two that cannot be had."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        folder: Path = tmp_path_factory.mktemp("checklist")
        hub = HubProcess(
            folder,
            config=f"""
[availability]
idle_window_seconds = 3
offline_after_seconds = 20

[display]
order = ["zeta", "alpha"]
[display.nodes]
zeta = "The old one"
[display.gpus]
"NVIDIA Tesla V100-SXM2-32GB" = "Volta"

[[nodes]]
hosts = ["refusing=127.0.0.1:1", "deaf=127.0.0.1:{deaf.getsockname()[1]}"]
reach = {{ by = "xmlrpc", interval_seconds = 1 }}
""",
        )
        hub.start()
        beating = Beating(hub)
        try:
            hub.join("silent").report(
                report(
                    [(gpu(0, uuid="GPU-s0"), working(0.7))],
                    processes=[(0, Process(pid=7, user="bo"))],
                    cpu_ratio=0.9,
                )
            )
            hub.join("zeta").report(
                report([(gpu(0, "NVIDIA Tesla V100-SXM2-32GB", uuid="GPU-z0"), IDLE)], cpu_ratio=0.1)
            )
            hub.join("mute")
            beating.start()
            yield hub
        finally:
            if beating.is_alive():
                beating.end()
            hub.stop()


def _node(page: Page, herd: HubProcess, node: str, search: str = "") -> Locator:
    """Show the herd with all nodes open; gives one of them."""
    page.add_init_script("localStorage.setItem('gpuherd.expansion', '{\"all\": true, \"except\": []}')")
    show(page, herd.url + search)
    found = page.locator(f'[data-node="{node}"]')
    expect(found).to_be_visible()
    return found


def _colour(element: Locator) -> str:
    colour: str = element.evaluate("element => getComputedStyle(element).backgroundColor")
    return colour


def test_s0_6_updates_each_second_and_a_collapsed_header_tells_host_address_and_users(
    page: Page, herd: HubProcess
) -> None:
    show(page, herd.url)
    node = page.locator('[data-node="alpha"]')
    bar = node.get_by_role("meter", name="Utilisation of GPU 0")
    expect(bar).to_be_visible()
    page.evaluate("""() => {
        window.seen = [];
        const bar = document.querySelector('[data-device="GPU-a0"] [role=meter]');
        new MutationObserver(() => seen.push([performance.now(), bar.getAttribute('aria-valuenow')]))
            .observe(bar, {attributes: true, attributeFilter: ['aria-valuenow']});
    }""")
    page.wait_for_function("() => seen.length >= 4")
    times = page.evaluate("() => seen.map(([time]) => time)")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert statistics.median(gaps) < 2500, "each second; a busy machine may be late once"
    node.get_by_role("button", name="alpha").click()
    expect(page.locator('[data-device="GPU-a0"]')).to_have_count(0)
    for text in ("alpha", "192.0.2.11", "ada", "bo"):
        expect(node).to_contain_text(text)
    assert len({_colour(node.locator(".user-colour", has_text=name).first) for name in ("ada", "bo")}) == 2


def test_s0_7_a_gpu_with_its_numbers_and_a_memory_bar_stacked_by_user(page: Page, herd: HubProcess) -> None:
    _node(page, herd, "alpha")
    device = page.locator('[data-device="GPU-a0"]')
    for text in ("0", "A100", "64 °C", "60.0 / 80 GiB"):
        expect(device).to_contain_text(re.compile(re.escape(text).replace("\\ ", r"\s*")))
    expect(device).to_contain_text(re.compile(r"3\d %"))
    memory = device.get_by_role("meter", name="Memory of GPU 0")
    expect(memory).to_have_attribute("aria-valuetext", re.compile(r"\d+ % ada, \d+ % bo"))
    segments = memory.locator(".segment")
    assert segments.count() >= 2
    boxes = [segments.nth(i).bounding_box() for i in range(2)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] + 2
    expect(segments.first).to_have_attribute("title", re.compile("ada.*4242"))


def test_s0_8_a_user_has_one_colour_everywhere(page: Page, herd: HubProcess) -> None:
    node = _node(page, herd, "alpha")
    colours = {
        _colour(node.locator(".users .user-colour", has_text="ada").first),
        _colour(node.locator('[data-pid="4242"] .user-colour').first),
        _colour(page.locator('[data-device="GPU-a0"] .segment').first),
    }
    for place in ("?users", "?node=alpha"):
        show(page, herd.url + place)
        chip = page.locator("main .user-colour", has_text="ada").first
        expect(chip).to_be_visible()
        colours.add(_colour(chip))
    assert len(colours) == 1


def test_s0_9_bars_shimmer_while_there_is_work_unless_motion_is_unwanted(
    page: Page, herd: HubProcess
) -> None:
    _node(page, herd, "alpha")
    animated = """() => Object.fromEntries(['GPU-a0', 'GPU-a1'].map(id => [id,
        (document.querySelector(`[data-device="${id}"]`)?.getAnimations({subtree: true}) ?? [])
            .some(animation => animation instanceof CSSAnimation && animation.playState === 'running')]))"""
    page.wait_for_function(f"() => ({animated})()['GPU-a0']")
    assert page.evaluate(animated) == {"GPU-a0": True, "GPU-a1": False}
    page.emulate_media(reduced_motion="reduce")
    page.wait_for_function(f"() => !({animated})()['GPU-a0']")


def test_s0_10_dark_follows_the_system(page: Page, herd: HubProcess) -> None:
    for scheme, expected in (("dark", "dark"), ("light", "light")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        show(page, herd.url)
        expect(page.locator("html")).to_have_attribute("data-theme", expected)


def test_s0_11_and_s3_8_a_silent_node_is_marked_with_when_it_was_last_seen_and_keeps_its_data(
    page: Page, herd: HubProcess
) -> None:
    """One mark for both: it comes after a few missed reports and stays, long before 500 s."""
    node = _node(page, herd, "silent")
    expect(node).to_have_attribute("data-state", re.compile("stale|offline"))
    expect(node).to_contain_text(re.compile(r"\d+ (s|min) ago"))
    device = page.locator('[data-device="GPU-s0"]')
    expect(device).to_have_attribute("data-state", re.compile("stale|offline"))
    expect(device).to_contain_text("70 %")
    expect(device).to_contain_text("bo")


def test_s1_7_a_node_with_state_model_every_address_and_a_header_that_stays(
    page: Page, herd: HubProcess
) -> None:
    node = _node(page, herd, "alpha")
    expect(node).to_contain_text("live")
    expect(node).to_contain_text("3 × A100")
    expect(node.locator(".address")).to_have_attribute("title", "192.0.2.11 (eth0)\n198.51.100.7 (ib0)")
    device = page.locator('[data-device="GPU-a0"]')
    for name in ("Memory of GPU 0", "Utilisation of GPU 0"):
        expect(device.get_by_role("meter", name=name)).to_be_visible()
    expect(device).to_contain_text("ada")
    page.set_viewport_size({"width": 1280, "height": 400})
    page.mouse.wheel(0, 600)
    expect(page.get_by_role("banner")).to_be_in_viewport(ratio=1)


def test_s1_8_refresh_now_auto_refresh_and_stop(page: Page, herd: HubProcess) -> None:
    show(page, herd.url)
    expect(page.get_by_role("button", name="Refresh now").first).to_be_visible()
    page.get_by_role("button", name="Pause").first.click()
    expect(page.locator("[data-phase]")).to_have_attribute("data-phase", "paused")
    page.get_by_role("group", name="Page controls").get_by_role("button", name="Resume").first.click()
    page.locator("[data-phase]").click()
    page.get_by_role("radio", name="5 s", exact=True).check(force=True)
    expect(page.locator("[data-phase]")).to_contain_text("every 5 s")


def test_s2_6_one_card_per_host(page: Page, herd: HubProcess) -> None:
    show(page, herd.url)
    expect(page.locator("[data-node]")).to_have_count(6)
    ids = page.locator("[data-node]").evaluate_all("nodes => nodes.map(node => node.dataset.node)")
    assert len(set(ids)) == 6


def test_s2_7_taken_or_free_at_a_glance_with_users_and_memory_on_hover(page: Page, herd: HubProcess) -> None:
    """Taken is what works, has memory in use or a process; the old limits stand in [availability]."""
    show(page, herd.url)
    tiles = page.locator('[data-node="alpha"]')
    for label in ("GPU 0: busy", "GPU 1: free"):
        expect(tiles.get_by_role("img", name=label)).to_be_attached()
    expect(tiles.get_by_role("img", name="GPU 2: held idle")).to_be_attached()
    page.get_by_test_id("heat-map").focus()
    tip = page.get_by_role("tooltip")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
        if "ada" in tip.inner_text():
            break
    for text in ("alpha", "ada", "GiB"):
        expect(tip).to_contain_text(text)


def test_s2_8_and_s4_3_renewed_every_so_many_seconds_with_the_last_update_in_the_footer(
    page: Page, herd: HubProcess
) -> None:
    show(page, f"{herd.url}?refresh=60")
    expect(page.locator("[data-phase]")).to_contain_text("every 1 min")
    expect(page.locator("footer")).to_contain_text(re.compile(r"Last update \d\d:\d\d:\d\d"))


def test_s3_7_host_bars_tell_high_levels_apart_and_absolutes_on_hover(page: Page, herd: HubProcess) -> None:
    levels = {"zeta": "low", "alpha": "some", "silent": "high"}
    for name, level in levels.items():
        node = _node(page, herd, name)
        expect(node.locator("[data-level]", has_text="CPU")).to_have_attribute("data-level", level)
    node = _node(page, herd, "alpha")
    expect(node.locator("[data-level]", has_text="RAM")).to_have_attribute("title", "128 GiB of 512 GiB")
    expect(node.locator("[data-level]", has_text="Disk")).to_have_attribute(
        "title", "/scratch: 800 GiB of 1000 GiB"
    )
    expect(node.locator("[data-level]", has_text="CPU")).to_have_attribute("title", re.compile("31.5.*128"))


def test_s3_9_and_s4_5_a_gpu_row_with_short_name_full_name_on_hover_and_both_bars(
    page: Page, herd: HubProcess
) -> None:
    """Length and number tell the level; colour is for who may have the GPU, so a well-used one is no alarm."""
    _node(page, herd, "alpha")
    device = page.locator('[data-device="GPU-a0"]')
    header = device.get_by_role("rowheader")
    expect(header).to_have_text(re.compile(r"0\s+A100 80GB"))
    expect(header).to_have_attribute("title", re.compile("NVIDIA A100-SXM4-80GB"))
    for name in ("Memory of GPU 0", "Utilisation of GPU 0"):
        expect(device.get_by_role("meter", name=name)).to_have_attribute("aria-valuenow", re.compile(r"\d+"))
    expect(device.locator("[data-pid]")).to_have_count(2)


def test_s3_10_processes_with_owner_memory_start_and_a_mark_on_the_dead(page: Page, herd: HubProcess) -> None:
    """Child processes are followed on the node: a process there carries the owner they told."""
    _node(page, herd, "alpha")
    process = page.locator('[data-pid="4242"]')
    for text in ("4242", "ada", "58.0 GiB", "2 h", "python train.py --epochs 3"):
        expect(process).to_contain_text(text)
    year = str(time.gmtime(STARTED).tm_year)
    expect(process.locator(f'[title*="{year}"]')).to_have_count(1)
    expect(process.locator("code")).to_have_attribute("title", "python train.py --epochs 3")
    expect(page.locator('[data-pid="4244"]')).to_contain_text("ended")


def test_s3_11_collapse_one_or_all_also_on_a_phone(page: Page, herd: HubProcess) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, herd.url)
    page.get_by_role("button", name=re.compile("(Expand|Collapse) all")).click()
    page.get_by_role("button", name=re.compile("(Expand|Collapse) all")).click()
    button = page.locator('[data-node="alpha"]').get_by_role("button", name="alpha")
    before = button.get_attribute("aria-expanded")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "false" if before == "true" else "true")
    if before == "true":
        button.click()
    expect(page.locator('[data-device="GPU-a0"]')).to_be_visible()
    assert overflow(page) == 0
    page.reload()
    expect(button).to_have_attribute("aria-expanded", "true")


def test_s3_12_display_names_of_hosts_and_gpus(page: Page, herd: HubProcess) -> None:
    node = _node(page, herd, "zeta")
    expect(node).to_contain_text("The old one")
    expect(page.locator('[data-device="GPU-z0"]')).to_contain_text("Volta")


def test_s3_16_who_to_ask_with_fractions_by_memory_share_and_what_is_free(
    page: Page, herd: HubProcess
) -> None:
    """The averages over hours and weeks need history, which this page does not show yet."""
    show(page, f"{herd.url}?users")
    ada = page.locator('[data-user="ada"]')
    expect(ada.locator(".fraction")).to_have_text(re.compile(r"\d+ %"))
    free = page.locator("[data-free]")
    expect(free).to_contain_text("alpha/1")
    expect(free.locator(".fraction")).to_have_text(re.compile(r"\d+ %"))


def test_s4_4_states_with_last_contact_and_the_order_that_was_asked_for(page: Page, herd: HubProcess) -> None:
    expect(_node(page, herd, "alpha")).to_have_attribute("data-state", "live")
    for name, words in (
        ("mute", "never reported"),
        ("refusing", "cannot be reached"),
        ("deaf", "did not respond within"),
    ):
        node = page.locator(f'[data-node="{name}"]')
        expect(node).to_have_attribute("data-state", "never")
        expect(node).to_contain_text(words)
    expect(page.locator('[data-node="silent"]')).to_contain_text(re.compile(r"\d+ (s|min) ago"))
    ids = page.locator("[data-node]").evaluate_all("nodes => nodes.map(node => node.dataset.node)")
    assert ids[:2] == ["zeta", "alpha"]


def test_s4_6_a_table_of_processes_per_host(page: Page, herd: HubProcess) -> None:
    show(page, f"{herd.url}?node=alpha")
    table = page.get_by_role("table", name=re.compile("Processes"))
    row = table.get_by_role("row").filter(has_text="4242")
    for text in ("ada", "58.0 GiB", "2 h", "4242"):
        expect(row).to_contain_text(text)
    for name in ("GPU", "User", "PID"):
        expect(table.get_by_role("columnheader", name=re.compile(f"^{name}")).first).to_be_visible()


def test_s4_7_users_with_memory_processes_and_gpus_by_host_most_memory_first(
    page: Page, herd: HubProcess
) -> None:
    show(page, f"{herd.url}?users")
    ada = page.locator('[data-user="ada"]')
    expect(ada).to_contain_text("alpha/0,2")
    expect(ada.locator(".memory")).to_have_text("116 GiB")
    expect(ada.locator(".processes")).to_contain_text("2")
    assert page.locator("[data-user]").first.get_attribute("data-user") in ("ada", "bo")
    sizes = page.locator("[data-user] .memory").all_inner_texts()
    numbers = [float(text.split()[0]) for text in sizes]
    assert numbers == sorted(numbers, reverse=True)
