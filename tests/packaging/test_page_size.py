"""The built page is small: what a browser has to load, compressed as the hub sends it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "src" / "gpuherd" / "api" / "page"
SOURCES = Path(__file__).parents[2] / "web" / "src"
MAX_LOOKING_BYTES = 150_000
"""All that someone can load who only looks at now: every page but those of the past, of accounts and of bookings."""
MAX_START_BYTES = MAX_LOOKING_BYTES // 2
MAX_ACTING_BYTES = 70_000
"""Logging in, accounts, administration, the timeline and booking; each loaded when it is asked for."""
MAX_PAST_BYTES = 48_000
"""History charts and reports of usage; the library they draw with is needed for now, too."""
_SUFFIXES = (".svelte", ".svelte.ts", ".ts", ".css")

pytestmark = pytest.mark.skipif(
    not (PAGE / "index.html").is_file(), reason="the page is not built: pip install -e ."
)


def _compressed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 9, mtime=0))


def _loaded_at_start() -> set[Path]:
    """Give what index.html names and, in turn, what those scripts import at once."""
    text = (PAGE / "index.html").read_text()
    waiting = [PAGE / name for name in re.findall(r'(?:src|href)="\./([^"]+)"', text)]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.suffix == ".js":
            # Workers are named by an address instead.
            imports = re.findall(
                r'(?:(?:from|import)\s*["`]\./|new URL\(["`])([\w.-]+\.js)["`]', path.read_text()
            )
            waiting += [path.parent / name for name in imports]
    return found


FOLDERS = {"acting": ("people", "bookings"), "past": ("history", "usage")}
PREFIXES = {"acting": ("booking", "timeline", "zone"), "past": ("history", "usage")}
"""Names of what is in ``lib`` and those who only look at now do not need."""


def _part_of(path: Path) -> str:
    """Tell what a file of the page is for, by the source that it is named after."""
    name = re.sub(r"-[\w-]{8}\.\w+$", "", path.name)
    for part, folders in FOLDERS.items():
        if any(
            (SOURCES / folder / f"{name}{suffix}").is_file() for folder in folders for suffix in _SUFFIXES
        ):
            return part
    if any((SOURCES / "lib" / f"{name}{suffix}").is_file() for suffix in _SUFFIXES):
        for part, prefixes in PREFIXES.items():
            if name.startswith(prefixes):
                return part
    return "looking"


def test_each_part_of_it_is_small() -> None:
    files = [path for path in PAGE.rglob("*") if path.suffix in (".js", ".css", ".html")]
    most = {"looking": MAX_LOOKING_BYTES, "acting": MAX_ACTING_BYTES, "past": MAX_PAST_BYTES}
    for part, bound in most.items():
        sizes = {path.name: _compressed(path) for path in files if _part_of(path) == part}
        assert len(sizes) >= 3, part
        assert sum(sizes.values()) <= bound, (part, sum(sizes.values()), sizes)


def test_the_start_page_is_half_of_the_first_and_carries_no_charts() -> None:
    start = _loaded_at_start()
    assert {path.suffix for path in start} >= {".js", ".css"}
    assert sum(_compressed(path) for path in start) <= MAX_START_BYTES
    assert not [path.name for path in start if b"u-cursor-x" in path.read_bytes()]
    assert [path for path in PAGE.rglob("*.js") if b"u-cursor-x" in path.read_bytes()]
