"""Text from a node is hostile: make it short, one line, and unable to disguise itself."""

from __future__ import annotations

import unicodedata
from typing import Annotated

from msgspec import Meta

__all__ = ["COMMAND_LENGTH", "Command", "Identifier", "Label", "clean", "clip", "plain_name", "too_large"]

LABEL_LENGTH = 128
SENTENCE_LENGTH = 512
COMMAND_LENGTH = 512

Identifier = Annotated[str, Meta(min_length=1, max_length=96)]
"""A UUID, a bus address, a boot id: compared, never parsed."""
Label = Annotated[str, Meta(max_length=LABEL_LENGTH)]
"""A name that people read: host, GPU, user."""
Sentence = Annotated[str, Meta(max_length=SENTENCE_LENGTH)]
"""A reason or remedy."""
Command = Annotated[str, Meta(max_length=COMMAND_LENGTH)]
"""A scrubbed and shortened command line."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Letters that draw nothing or redraw their neighbours: controls, format characters (bidi overrides, zero-width
# joiners), surrogates, private use, unassigned, and the line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clip(text: str, length: int) -> str:
    """Cut ``text`` to ``length`` characters, showing with an ellipsis that something is missing."""
    return text if len(text) <= length else text[: length - 1] + "…"


def clean(text: str, length: int = LABEL_LENGTH) -> str:
    """Replace every invisible or control character and cut to ``length``; plain text comes back unchanged."""
    text = clip(text, length)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_REPLACEMENT if unicodedata.category(c) in _HIDDEN_CATEGORIES else c for c in text)


def too_large(content: bytes, limit: int) -> str:
    """Say that a file is larger than ``limit`` bytes, and which line is beyond it."""
    size = f"{limit >> 20} MiB" if limit >= 2**20 else f"{limit >> 10} KiB"
    line = content.count(b"\n", 0, limit) + 1
    return f"is larger than {size}, which ends in line {line}"


def plain_name(name: str) -> str:
    """Normalise a name as loosely as any directory compares it: Active Directory ignores case and accents."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold().strip()
    return plain[:LABEL_LENGTH]
