"""Titles and comments: what people write, without what would redraw its neighbours."""

from __future__ import annotations

from gpuherd.bookings.requests import MAX_COMMENT_LENGTH, MAX_TITLE_LENGTH
from gpuherd.model.text import clean, clip

__all__ = ["clean_comment", "clean_title"]


def clean_title(text: str) -> str:
    """Make a title one line of visible characters."""
    return clean(" ".join(text.split()), MAX_TITLE_LENGTH)


def clean_comment(text: str) -> str:
    """Clean a comment line by line: its line ends are all that stays of what cannot be seen."""
    lines = clip(text, MAX_COMMENT_LENGTH).replace("\r\n", "\n").split("\n")
    return "\n".join(clean(line.replace("\t", " ").rstrip(), MAX_COMMENT_LENGTH) for line in lines).strip()
