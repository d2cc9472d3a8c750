"""Links lead somewhere: to files that are there and to headings that they have."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sim/*.md"), *ROOT.glob("deploy/**/*.md")]
)
_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)=\"([^\"]+)\"", re.MULTILINE)


def _text(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Give what a heading is called in an address, as GitHub and the site do."""
    found: set[str] = set(re.findall(r'(?:id|name)="([^"]+)"', _text(page)))
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", _text(page), flags=re.MULTILINE):
        shown = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-"))
    return frozenset(found)


def _targets(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", _text(page))
    return [target for groups in _LINK.findall(text) for target in groups if target and "://" not in target]


@pytest.mark.parametrize("document", PAGES, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    missing = []
    for target in _targets(document):
        path, _, anchor = target.partition("#")
        file = document if not path else (document.parent / path).resolve()
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
            missing.append(target)
    assert missing == []


def test_an_anchor_that_is_not_there_would_be_found() -> None:
    anchors = _anchors(ROOT / "docs/bookings.md")
    assert "times" in anchors
    assert "no-such-heading" not in anchors
    assert "docs/bookings.md" in _targets(ROOT / "README.md")
