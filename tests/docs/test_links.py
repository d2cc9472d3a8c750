"""Links lead somewhere: to files that are there and to headings that they have."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from support.markdown import links_of, prose_of

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sim/*.md"), *ROOT.glob("deploy/**/*.md")]
)


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Give what a heading is called in an address, as GitHub and the site do."""
    found: set[str] = set(re.findall(r'(?:id|name)="([^"]+)"', prose_of(page)))
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", prose_of(page), flags=re.MULTILINE):
        shown = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-"))
    return frozenset(found)


@pytest.mark.parametrize("document", PAGES, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    missing = []
    for target in links_of(document):
        path, _, anchor = target.partition("#")
        file = document if not path else (document.parent / path).resolve()
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
            missing.append(target)
    assert missing == []


def test_an_anchor_that_is_not_there_would_be_found() -> None:
    anchors = _anchors(ROOT / "docs/bookings.md")
    assert "times" in anchors
    assert "no-such-heading" not in anchors
    assert "docs/bookings.md" in links_of(ROOT / "README.md")
