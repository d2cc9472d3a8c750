"""The page says what is so, to everyone, and runs nothing that a node has named."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest

from gpuherd.client.herd_views import GpuBooking, Herd, Notice, Problem
from gpuherd.wiring.exporting.page import PageSettings, herd_page
from support.shown_herds import GIB, NOW, shown_gpu, shown_herd, shown_node, using

IN_UTC = PageSettings(zone=UTC)
VOID = {"meta", "link", "rect"}


class Reader(HTMLParser):
    """Every element with its attributes, what stands in it, and whether all are closed again."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def _read(herd: Herd, settings: PageSettings = IN_UTC) -> Reader:
    return Reader(herd_page(herd, settings))


def _text(herd: Herd, settings: PageSettings = IN_UTC) -> str:
    return re.sub(
        r"<[^>]*>", " ", herd_page(herd, settings).decode().split("</head>")[1].split("<script>")[0]
    )


@pytest.mark.parametrize(
    ("state", "group", "word"),
    [
        ("free", "free", "○ free"),
        ("busy", "taken", "■ busy"),
        ("held", "taken", "▨ held idle"),
        ("booked", "booked", "◩ booked"),
        ("fault", "fault", "✕ fault"),
        ("stale", "dark", "◌ stale"),
        ("offline", "dark", "◌ offline"),
        ("unknown", "dark", "? unknown"),
        ("of tomorrow", "dark", "? unknown"),
    ],
)
def test_every_state_has_colour_sign_and_word(state: str, group: str, word: str) -> None:
    page = herd_page(shown_herd(shown_node("a", shown_gpu(0, state))), IN_UTC).decode()
    row = page.split('<ul class="gpus">')[1]
    assert f'<li class="{group}">' in row
    assert f"<b>{word}</b>" in row
    assert (": 1 GPU free</title>" in page) == (state == "free")


def test_gpus_and_slices_are_counted_apart() -> None:
    part = {"kind": "slice", "parent_uuid": "GPU-0", "profile": "1g.10gb"}
    herd = shown_herd(
        shown_node("a", shown_gpu(1, "free"), *(shown_gpu(i, "free", facts=part) for i in (2, 3)))
    )
    page = herd_page(herd, IN_UTC).decode()
    assert ": 1 GPU + 2 slices free</title>" in page
    assert "○ 1 GPU + 2 slices free</li>" in page


def test_who_is_on_it_is_seen_without_opening_and_more_when_opened() -> None:
    gpu = shown_gpu(
        3,
        "busy",
        using("ada", "bob", gpu_memory_bytes=20 * GIB, started_at=NOW - 7500),
        reason="computing",
        since=NOW - 600,
        bookings=(
            GpuBooking(
                id=1,
                holder="eve",
                title="thesis",
                starts_at=int(NOW),
                ends_at=int(NOW) + 90_000,
                phase="next",
            ),
        ),
        utilization_gpu=0.97,
        memory_used_bytes=40 * GIB,
    )
    herd = shown_herd(shown_node("gpu01", gpu))
    summary, opened = herd_page(herd, IN_UTC).decode().split("<summary")[1].split("</summary>")
    assert 'title="ada, bob, memory 40 of 80 GiB, computing"' in summary
    assert "load 97 %, 40 of 80 GiB" in summary
    assert ">ada, bob<" in summary
    assert "busy: computing, since 16:52 (10 min)" in opened
    assert "<li>ada, 20 GiB, since 14:57 (2 h) (pid 1000)</li>" in opened
    assert "eve (thesis), 17:02 – Tue 2026-11-17 18:02" in opened


def test_what_is_not_known_is_not_zero() -> None:
    text = _text(shown_herd(shown_node("a", shown_gpu(0, "unknown", facts={"memory_total_bytes": None}))))
    assert "load ? %, ? of ? GiB" in text


def test_an_offline_node_says_why_and_since_when() -> None:
    silent = shown_node("gpu02", shown_gpu(0, "offline", utilization_gpu=0.3), state="offline",
                        reason="the link is lost", received_at=NOW - 259_200)  # fmt: skip
    never = shown_node("gpu03", state="never", reason="gpu03: the host key is not known; accept it with …")
    text = _text(shown_herd(silent, never))
    assert "offline : the link is lost. Last report Fri 2026-11-13 17:02:11 UTC, 3 d before" in text
    assert "never reported : gpu03: the host key is not known; accept it with …" in text
    assert "last known: load 30 %" in text
    assert "1 node offline" in text
    assert "1 node never reported" in text
    assert "0 free" in text


def test_problems_and_notices_are_told() -> None:
    node = shown_node("a", shown_gpu(0, "fault"), problems=(Problem(message="GPU 0 is lost"),))
    text = _text(shown_herd(node, notices=(Notice(message="hosts.txt cannot be read"),)))
    assert "GPU 0 is lost" in text
    assert "hosts.txt cannot be read" in text


def test_a_herd_without_hosts_is_a_page_too() -> None:
    assert "No nodes." in _text(shown_herd())


def test_the_time_is_told_with_its_zone() -> None:
    berlin = PageSettings(zone=ZoneInfo("Europe/Berlin"))
    assert "Mon 2026-11-16 18:02:11 CET (UTC+01:00)" in _text(shown_herd(), berlin)
    (time,) = _read(shown_herd()).all("time")
    assert time["datetime"] == "2026-11-16T17:02:11Z"


def test_loading_anew_is_asked_for_also_without_a_script() -> None:
    page = _read(shown_herd(), PageSettings(reload_seconds=60))
    assert {"http-equiv": "refresh", "content": "60"} in page.all("meta")
    assert page.all("html")[0]["data-reload"] == "60"
    assert not any(meta.get("http-equiv") == "refresh" for meta in _read(shown_herd()).all("meta"))


def test_only_the_pages_own_style_and_script_may_be_used() -> None:
    page = _read(shown_herd(shown_node("a", shown_gpu(0, "busy", using("ada")))))
    (policy,) = [
        meta["content"] or ""
        for meta in page.all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = page.texts[tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not any("style" in attributes for _, attributes in page.elements)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "' onmouseover='alert(1)",
        "</title></style></script><svg onload=alert(1)>",
        "javascript:alert(1)",
        "&lt;b&gt;&#x202e;",
        "\u202eevil\u2066\x00\x1b[2J",
        "\ud800",
    ],
)
def test_what_nodes_and_people_name_is_text_alone(hostile: str) -> None:
    booking = GpuBooking(id=1, holder=hostile, title=hostile, starts_at=0, ends_at=10**15)
    gpu = shown_gpu(
        0,
        "busy",
        using(hostile),
        reason=hostile,
        since=-1e18,
        bookings=(booking,),
        facts={"name": hostile, "uuid": hostile, "profile": hostile},
    )
    plain = shown_gpu(0, "busy", using("x"), reason="x", bookings=(booking,), facts={"profile": "x"})
    herds = [
        shown_herd(
            shown_node(
                name,
                gpus,
                state="stale",
                reason=name,
                received_at=NOW,
                problems=(Problem(message=name + "!"),),
            ),
            notices=(Notice(message=name),),
        )
        for name, gpus in ((hostile, gpu), ("x", plain))
    ]
    settings = PageSettings(zone=UTC, title=hostile, downloads=(hostile,))
    read, expected = (_read(herd, settings) for herd in herds)
    assert [tag for tag, _ in read.elements] == [tag for tag, _ in expected.elements]
    assert [set(attributes) for _, attributes in read.elements] == [
        set(attributes) for _, attributes in expected.elements
    ]
    page = herd_page(herds[0], settings).decode()
    assert 'href="javascript' not in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]", page)


def test_the_page_asks_for_nothing_else() -> None:
    page = _read(shown_herd(shown_node("a", shown_gpu(0))))
    addresses = [
        attributes[name] for _, attributes in page.elements for name in ("src", "href") if name in attributes
    ]
    assert addresses == ["data:,"]
