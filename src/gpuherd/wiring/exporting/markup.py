"""Text that stays text."""

from __future__ import annotations

import html

from gpuherd.model.text import LABEL_LENGTH, clean

__all__ = ["escape"]


def escape(text: str, length: int = LABEL_LENGTH) -> str:
    """Give text for an element or a quoted attribute: no markup, nothing invisible, no longer than ``length``."""
    return html.escape(clean(text, length), quote=True)
