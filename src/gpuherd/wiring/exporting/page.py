"""The herd as one page that needs nothing else: no script to be read, no other file, no network.

All that nodes and people have named is text and nothing but text. The page's own style and script are the only ones
that its content policy lets a browser use, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import tzinfo
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from msgspec import Struct

from gpuherd.client.herd_views import Herd, Node
from gpuherd.wiring.exporting.gpu_row import LOOKS, Look, gpu_row, look
from gpuherd.wiring.exporting.markup import escape
from gpuherd.wiring.exporting.moments import long_moment, machine_moment, span_text

__all__ = ["PageSettings", "herd_page"]

NODE_WORDS = {"never": "never reported"}
TOLD_PROBLEMS = 5
TOLD_NOTICES = 20


class PageSettings(Struct, frozen=True, kw_only=True):
    """How the page is written."""

    title: str = "GPUs"
    zone: tzinfo | None = None
    """In which times are shown; none is this machine's."""
    reload_seconds: int | None = None
    old_after_seconds: float = 900.0
    """After this the page, where a script may run, says that it is old."""
    downloads: Sequence[str] = ()
    """Names of files beside the page that hold the same."""
    remark: str | None = None
    """What readers should know about the page itself."""
    live_page: str | None = None
    """Address of the hub's own page."""


def herd_page(herd: Herd, settings: PageSettings) -> bytes:
    """Write the page."""
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    reload = settings.reload_seconds
    attributes = f' data-old-after="{settings.old_after_seconds:.0f}"'
    refresh = ""
    if reload is not None:
        attributes += f' data-reload="{reload}"'
        # With a script it is done when nobody is reading details.
        refresh = f'<noscript><meta http-equiv="refresh" content="{reload}"></noscript>\n'
    parts = [
        f'<!DOCTYPE html>\n<html lang="en"{attributes}>\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        '<meta name="referrer" content="no-referrer">\n',
        refresh,
        '<link rel="icon" href="data:,">\n',
        f"<title>{escape(settings.title)}: {_counted(herd, LOOKS['free']) or 0} free</title>\n",
        f"<style>{style}</style>\n</head>\n<body>\n",
        *_header(herd, settings),
        "<main>\n",
        *(_card(node, herd.time, settings.zone) for node in herd.nodes),
        "</main>\n" if herd.nodes else "<p>No nodes.</p></main>\n",
        *_footer(settings),
        f"<script>{script}</script>\n</body>\n</html>\n",
    ]
    return "".join(parts).encode("utf-8", "replace")


@cache
def _part(name: str) -> str:
    return files("gpuherd.wiring.exporting").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _counted(herd: Herd, shown: Look) -> str:
    """Count the GPUs and slices in a state apart; empty if there are none."""
    kinds = Counter(gpu.facts.kind == "slice" for _, gpu in herd.units() if look(gpu.state) == shown)
    return " + ".join(
        f"{kinds[is_slice]} {noun}{'s' if kinds[is_slice] != 1 else ''}"
        for is_slice, noun in ((False, "GPU"), (True, "slice"))
        if kinds[is_slice]
    )


def _header(herd: Herd, settings: PageSettings) -> list[str]:
    written = long_moment(herd.time, settings.zone)
    parts = [
        f"<header>\n<h1>{escape(settings.title)}</h1>\n",
        f'<p>Last update: <time id="written" datetime="{machine_moment(herd.time)}">{escape(written)}</time></p>\n',
        '<p id="age">This page shows the state at that time, not the current state.</p>\n',
        *_totals(herd),
    ]
    notices = herd.notices[:TOLD_NOTICES]
    if notices:
        lines = "".join(f"<li>{escape(notice.message, 512)}</li>" for notice in notices)
        parts.append(f'<ul class="notices">{lines}</ul>\n')
    return [*parts, "</header>\n"]


def _totals(herd: Herd) -> list[str]:
    chips = [
        f'<li class="{shown.group}">{shown.sign} {counted or 0} {shown.word}</li>'
        for shown in LOOKS.values()
        if (counted := _counted(herd, shown)) or shown.word == "free"
    ]
    for state, count in sorted(Counter(node.state for node in herd.nodes if node.state != "live").items()):
        word = NODE_WORDS.get(state, escape(state))
        chips.append(f'<li class="dark">✕ {count} {"node" if count == 1 else "nodes"} {word}</li>')
    if broken := sum(node.is_in_fault for node in herd.nodes):
        chips.append(f'<li class="fault">✕ {broken} {"node" if broken == 1 else "nodes"} in fault</li>')
    free = Counter(gpu.short_name or gpu.facts.name for _, gpu in herd.units() if gpu.state == "free")
    parts = [f'<ul class="totals">{"".join(chips)}</ul>\n']
    if free:
        models = ", ".join(f"{count} × {escape(name)}" for name, count in free.most_common())
        parts.append(f"<p>Free: {models}</p>\n")
    return parts


def _card(node: Node, now: float, zone: tzinfo | None) -> str:
    units = node.units
    free = sum(gpu.state == "free" for gpu in units)
    count = f"{free} of {len(units)} free" if units else "no GPU known"
    parts = [
        f'<section class="card"><div class="head"><h2>{escape(node.name)}</h2><p>{count}</p></div>\n',
    ]
    if node.state != "live":
        word = NODE_WORDS.get(node.state, escape(node.state))
        parts.append(
            f'<p class="silent"><b>✕ {word}</b>: {escape(node.reason, 512)}{_last(node, now, zone)}</p>\n'
        )
    told = [problem.message for problem in (*node.problems, *node.notes) if problem.message != node.reason]
    parts += [f"<p>{escape(message, 512)}</p>\n" for message in dict.fromkeys(told[:TOLD_PROBLEMS])]
    if units:
        rows = "".join(gpu_row(node, gpu, now, zone) for gpu in units)
        parts.append(f'<ul class="gpus">\n{rows}</ul>')
    return "".join([*parts, "</section>\n"])


def _last(node: Node, now: float, zone: tzinfo | None) -> str:
    if node.received_at is None:
        return ""
    ago = span_text(now - node.received_at)
    return f". Last report {escape(long_moment(node.received_at, zone))}, {ago} before this page was written"


def _footer(settings: PageSettings) -> list[str]:
    parts = ["<footer>\n"]
    if settings.downloads:
        links = ", ".join(
            f'<a href="./{quote(name, errors="replace")}">{escape(name)}</a>' for name in settings.downloads
        )
        parts.append(f"<p>Download: {links}</p>\n")
    if settings.reload_seconds is not None:
        parts.append(f"<p>The page reloads every {settings.reload_seconds} s, unless details are open.</p>\n")
    if settings.remark is not None:
        parts.append(f"<p>{escape(settings.remark, 512)}</p>\n")
    if settings.live_page is not None:
        parts.append(f'<p><a href="{escape(settings.live_page)}">Try the live page</a></p>\n')
    parts.append(
        "<p>Written by gpuherd. Open a GPU to see who is on it, since when, and who has booked it.</p>\n"
    )
    return [*parts, "</footer>\n"]
