"""What is wrong with a list, gathered so that one error tells all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import clean

__all__ = ["Complaints", "numbered_lines", "quoted"]

_MOST_SHOWN = 10
_LINE_END = re.compile(r"\r\n|\n|\r")


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Give the lines as an editor counts them, from 1; ``str.splitlines`` would also split at rarer characters."""
    return enumerate(_LINE_END.split(text), 1)


def quoted(text: str) -> str:
    """Show a piece of a file in a message: short, on one line, unable to disguise itself."""
    return f'"{clean(text, 60)}"'


class Complaints:
    """Collects sentences that each begin with their place, such as ``hosts.txt:3: …``."""

    def __init__(self, file: str, *, is_tolerant: bool = False) -> None:
        """``is_tolerant``: nothing is raised, so that what can be read is read."""
        self.file = file
        self.is_tolerant = is_tolerant
        self.sentences: list[str] = []

    def add(self, line: int | None, sentence: str) -> None:
        """Note what is wrong in a line (None: with the whole file) and the remedy."""
        self.sentences.append(f"{self.place(line)}: {sentence}")

    def add_error(self, error: Misconfigured) -> None:
        """Note an error whose text has its place already."""
        self.sentences.append(str(error))

    def place(self, line: int | None) -> str:
        """Name a line of the file."""
        return self.file if line is None else f"{self.file}:{line}"

    def raise_if_any(self) -> None:
        """Raise ``Misconfigured`` with everything that was noted."""
        if not self.sentences or self.is_tolerant:
            return
        shown = self.sentences[:_MOST_SHOWN]
        if len(self.sentences) > len(shown):
            shown.append(f"{len(self.sentences) - len(shown)} more lines of {self.file} cannot be used")
        raise Misconfigured(". ".join(shown))
