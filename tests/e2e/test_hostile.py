"""Everything a node says is text: markup, control characters, turned writing and endless words do no harm anywhere.

The hub takes out what cannot be seen and cuts what is too long. The page is tested behind it, and then on its own with
what a hub would never send, so that neither relies on the other.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import Complaints
from e2e.hub_process import HubProcess
from e2e.places import DESK, PHONE, expect_no_overflow, places, show
from e2e.reports import IDLE, gpu, report, working
from gpuherd.model.processes import Process
from gpuherd.model.reports import Problem
from gpuherd.model.text import COMMAND_LENGTH, LABEL_LENGTH, SENTENCE_LENGTH
from support.running import PATIENCE_SECONDS

MARKUP = '<img src=x onerror="alert(1)"><script>alert(2)</script><b>bold</b>'
QUOTES = "\"><svg onload=alert(3)>' & {{7*7}} ${7*7} javascript:alert(4)"
ANSI = "\x1b[31mred\x1b[0m\x1b]0;title\x07 \x00\x9b"
BIDI = "innocent\u202egnp.exe\u2066\u2067\u202d"
HIDDEN = "zero\u200bwidth\u200d\ufeff\u2060joiner"
LONG = "W" * 4096
STRINGS = {"markup": MARKUP, "quotes": QUOTES, "ansi": ANSI, "bidi": BIDI, "hidden": HIDDEN, "long": LONG}
LEFT = {
    "markup": "<script>alert(2)</script>",
    "quotes": "{{7*7}} ${7*7}",
    "ansi": "red",
    "bidi": "innocent",
    "hidden": "zero",
    "long": "W" * 100,
}
"""What can be read of each."""
FORBIDDEN = r"[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]"
WIDTHS = {"desk": DESK, "phone": PHONE, "narrow": (320, 640)}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Run a hub with a node for each string, which stands in every place where a node can put one."""
    hub = HubProcess(tmp_path_factory.mktemp("hostile"))
    hub.start()
    try:
        for kind, text in STRINGS.items():
            label, sentence = text[:LABEL_LENGTH], text[:SENTENCE_LENGTH]
            broken = f"{kind}{QUOTES}"
            hub.join(_name(kind)).report(
                report(
                    [
                        (gpu(0, name=label, uuid=f"GPU-{kind}"), working(0.5)),
                        (gpu(1, name=label, uuid=broken), IDLE),
                    ],
                    processes=[
                        (
                            0,
                            Process(
                                pid=1,
                                user=label,
                                command=text[:COMMAND_LENGTH],
                                container=label,
                                job=label,
                            ),
                        ),
                        (0, Process(pid=2, user=f"{kind} {label}"[:LABEL_LENGTH], is_gone=True)),
                    ],
                    problems=[
                        Problem(code="note", message=sentence),
                        Problem(code="lost", message=sentence, device_uuid=broken, is_fault=True),
                    ],
                    hostname=label,
                )
            )
        yield hub
    finally:
        hub.stop()


def _name(kind: str) -> str:
    return f"{kind} {MARKUP}"[:60].strip()


def _watch(page: Page) -> None:
    page.add_init_script(
        "window.breaches = []; addEventListener('securitypolicyviolation', e => breaches.push(e.violatedDirective));"
        "localStorage.setItem('gpuherd.expansion', JSON.stringify({all: true, except: []}))"
    )


def _assert_harmless(page: Page, where: str) -> None:
    made = page.evaluate(
        "() => [...document.querySelectorAll('#app img, #app script, #app b, #app iframe, [onload], [onerror]')]"
        ".map(element => element.outerHTML.slice(0, 200))"
    )
    assert made == [], where
    found = page.evaluate(
        """forbidden => {
            const pattern = new RegExp(forbidden);
            const texts = [document.title, document.body.innerText];
            for (const element of document.querySelectorAll('*'))
                for (const attribute of element.attributes) texts.push(attribute.value);
            return texts.filter(text => pattern.test(text)).map(text => JSON.stringify(text).slice(0, 200));
        }""",
        FORBIDDEN,
    )
    assert found == [], where
    assert page.evaluate("window.breaches") == [], where
    expect_no_overflow(page, where)


@pytest.mark.parametrize("name", ["herd", "users", "node", "gpu", "wall"])
@pytest.mark.promise("text-is-inert")
def test_hostile_text_is_harmless_on_every_page(page: Page, hostile: HubProcess, name: str) -> None:
    _watch(page)
    show(page, hostile.url + places(hostile.url)[name])
    expect(page.locator("main")).to_contain_text("W" * 20 if name == "users" else "<")
    for size, (width, height) in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("() => window.scrollTo(0, 0)")
        _assert_harmless(page, size)
        # What is further down is drawn when it comes into view.
        page.mouse.wheel(0, 100_000)
        _assert_harmless(page, f"{size}, further down")


@pytest.mark.parametrize("kind", STRINGS)
def test_each_string_is_shown_as_text_at_its_node_and_gpu(page: Page, hostile: HubProcess, kind: str) -> None:
    _watch(page)
    page.set_viewport_size({"width": 390, "height": 844})
    pages = places(hostile.url, _name(kind))
    for key in ("node", "gpu"):
        show(page, hostile.url + pages[key])
        expect(page.locator("main")).to_contain_text(LEFT[kind])
        _assert_harmless(page, f"{kind}, {key}")


def test_addresses_written_by_others_do_no_harm(page: Page, hostile: HubProcess) -> None:
    _watch(page)
    for search in (
        "?q=" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        "?node=%3Cscript%3Ealert(1)%3C/script%3E",
        "?gpu=javascript:alert(1)",
        "?group=%00&sort=%E2%80%AE&refresh=1e999",
        "?q=" + "x" * 5000,
        "#%3Cimg%20src=x%20onerror=alert(1)%3E",
    ):
        show(page, hostile.url + search)
        _assert_harmless(page, json.dumps(search))
        expect(page.locator("main")).not_to_be_empty()


def _raw_snapshot(hub: HubProcess) -> str:
    """Give the hub's snapshot as a stream, with every text that came from a node made hostile without any cleaning."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"{hub.url}api/v1/stream", timeout=PATIENCE_SECONDS
    ) as stream:
        lines = iter(stream.readline, b"")
        snapshot = json.loads(next(line for line in lines if line.startswith(b"data: "))[6:])
    everything = MARKUP + QUOTES + ANSI + BIDI + HIDDEN + LONG
    for node in snapshot["nodes"]:
        node["name"] = node["host"]["hostname"] = node["host"]["os"] = everything
        node["problems"] += node["notes"]
        for problem in node["problems"]:
            problem["message"] = everything
        for device in node["devices"]:
            device["short_name"] = device["facts"]["name"] = everything
        for process in node["processes"]:
            for key in ("user", "command", "container", "job"):
                process[key] = everything
    for reasons in (snapshot["device_states"]["reason"], snapshot["host_states"]["reason"]):
        reasons[:] = [everything] * len(reasons)
    for model in snapshot["totals"]["models"]:
        model["short_name"] = everything
    snapshot["notices"] = [{"code": "x", "message": everything, "since": None}]
    return f"retry: 60000\nevent: snapshot\ndata: {json.dumps(snapshot)}\n\n"


def test_the_page_itself_keeps_its_shape_with_four_thousand_letters(
    page: Page, hostile: HubProcess, complaints: Complaints
) -> None:
    # The stream ends after its one message; what is shown stays.
    complaints.may_lose_connection = True
    _watch(page)
    body = _raw_snapshot(hostile)
    page.route("**/api/v1/stream", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    for name, place in places(hostile.url).items():
        page.goto(hostile.url + place)
        expect(page.locator("main")).to_contain_text("<img src=x" if name != "wall" else "<")
        for size, (width, height) in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            expect_no_overflow(page, f"{name}, {size}")
            header = page.locator("header").first.bounding_box()
            assert header is not None
            assert header["height"] < height, (name, size)
        assert page.evaluate("window.breaches") == [], name
        assert page.locator("#app img, #app script, #app b, [onload], [onerror]").count() == 0, name
