"""Read Markdown pages: their prose and their links."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["links_of", "prose_of"]

_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)=\"([^\"]+)\"", re.MULTILINE)


def prose_of(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links_of(page: Path) -> list[str]:
    """Return the links and pictures of a page that stay within the repository."""
    text = re.sub(r"`[^`\n]*`", "", prose_of(page))
    return [target for groups in _LINK.findall(text) for target in groups if target and "://" not in target]
