"""The built page is small: what a browser has to load, compressed as the hub sends it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "src" / "gpuherd" / "api" / "page"
MAX_BYTES = 220_000
"""Every page there is; nobody loads all of them."""
MAX_START_BYTES = 75_000

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


def test_all_of_it_together_is_small() -> None:
    sizes = {
        path.name: _compressed(path) for path in PAGE.rglob("*") if path.suffix in (".js", ".css", ".html")
    }
    assert len(sizes) >= 3
    assert sum(sizes.values()) <= MAX_BYTES, sizes


def test_the_start_page_is_a_third_of_that_and_carries_no_charts() -> None:
    start = _loaded_at_start()
    assert {path.suffix for path in start} >= {".js", ".css"}
    assert sum(_compressed(path) for path in start) <= MAX_START_BYTES
    assert not [path.name for path in start if b"u-cursor-x" in path.read_bytes()]
    assert [path for path in PAGE.rglob("*.js") if b"u-cursor-x" in path.read_bytes()]
