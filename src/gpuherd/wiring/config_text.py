"""The text of gpuherd.toml, kept so that whatever is found wrong with it later can still be told by its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.toml_lines import Path, key_lines

__all__ = ["ConfigText", "parse_path"]

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_KEY = re.compile(r"(?P<path>[a-z]\w*(?:\[\d+\])?(?:\.\w+(?:\[\d+\])?)*)(?:, entry (?P<entry>\d+))?(?=[:,])")


def parse_path(text: str) -> Path:
    """Read ``nodes[0].reach.by``."""
    return tuple(name or int(index) for name, index in _STEP.findall(text))


class ConfigText:
    """A configuration as it was read: what it is called, its text, and which keys the command line gave instead."""

    def __init__(self, name: str, text: str = "", overridden: frozenset[str] = frozenset()) -> None:
        self.name = name
        self.text = text
        self._overridden = overridden

    @cached_property
    def _lines(self) -> dict[Path, int]:
        return key_lines(self.text)

    def place(self, path: Path) -> str:
        """Name the line of a key, such as ``gpuherd.toml:12``: of its table, if it does not stand there itself."""
        if ".".join(map(str, path)) in self._overridden:
            return "the command line"
        while path:
            if path in self._lines:
                return f"{self.name}:{self._lines[path]}"
            path = path[:-1]
        return self.name

    def located(self, message: str, within: str = "") -> str:
        """Put the place before a message that begins with a key; ``within`` is the table that the key is read in.

        A message that begins otherwise names its place already, or has none in this file.
        """
        if message.startswith(self.name):
            return message
        found = _KEY.match(message)
        if within and (found is None or not message.startswith(within)):
            path = parse_path(within)
            if found is not None and (*path, parse_path(found["path"])[0]) in self._lines:
                return f"{self.place((*path, *parse_path(found['path'])))}: {within}.{message}"
            return f"{self.place(path)}: {within}: {message}"
        if found is None:
            return message
        path = parse_path(found["path"])
        if path[:1] not in self._lines and found["path"] not in self._overridden:
            return message
        if found["entry"] is not None:
            path = (*path, int(found["entry"]) - 1)
        return f"{self.place(path)}: {message}"

    @contextmanager
    def locating(self, within: str = "") -> Iterator[None]:
        """Add the place to what is found wrong meanwhile."""
        try:
            yield
        except Misconfigured as error:
            text = str(error)
            located = self.located(text, within)
            if located == text:
                raise
            raise Misconfigured(located) from error
