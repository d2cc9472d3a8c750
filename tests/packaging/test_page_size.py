"""The built page is small: what a browser has to load, compressed as the hub sends it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "src" / "gpuherd" / "api" / "page"
SOURCES = Path(__file__).parents[2] / "web" / "src"
MAX_LOOKING_BYTES = 150_000
"""All that someone can load who only looks: every page but those of accounts and bookings."""
MAX_START_BYTES = MAX_LOOKING_BYTES // 2
MAX_ACTING_BYTES = 70_000
"""Logging in, accounts, administration, the timeline and booking; each loaded when it is asked for."""
_SUFFIXES = (".svelte", ".ts", ".css")

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


def _is_for_acting(path: Path) -> bool:
    """Tell whether a part is made from the sources of accounts or bookings; parts are named after their source."""
    name = re.sub(r"-[\w-]{8}\.\w+$", "", path.name)
    folders = (SOURCES / "people", SOURCES / "bookings")
    return any((folder / f"{name}{suffix}").is_file() for folder in folders for suffix in _SUFFIXES) or (
        name.startswith("booking-") and (SOURCES / "lib" / f"{name}.ts").is_file()
    )


def test_each_half_of_it_is_small() -> None:
    parts = [path for path in PAGE.rglob("*") if path.suffix in (".js", ".css", ".html")]
    acting = {path.name: _compressed(path) for path in parts if _is_for_acting(path)}
    looking = {path.name: _compressed(path) for path in parts if not _is_for_acting(path)}
    assert len(looking) >= 3
    assert len(acting) >= 3
    assert sum(looking.values()) <= MAX_LOOKING_BYTES, looking
    assert sum(acting.values()) <= MAX_ACTING_BYTES, acting


def test_the_start_page_is_half_of_the_first_and_carries_no_charts() -> None:
    start = _loaded_at_start()
    assert {path.suffix for path in start} >= {".js", ".css"}
    assert sum(_compressed(path) for path in start) <= MAX_START_BYTES
    assert not [path.name for path in start if b"u-cursor-x" in path.read_bytes()]
    assert [path for path in PAGE.rglob("*.js") if b"u-cursor-x" in path.read_bytes()]
