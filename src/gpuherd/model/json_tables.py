"""JSON that people write by hand, read with the lines on which its tables and keys are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

__all__ = ["JsonTable", "read_tables"]

# A text is matched whole, so that nothing inside of it counts; nothing is tried twice.
_TOKEN = re.compile(r"""(?P<text>"(?:[^"\\]|\\.)*+")(?P<key>\s*+:)?|(?P<bracket>[{}])|\n""", re.DOTALL)


class JsonTable(dict[str, Any]):
    """An object of a file, the lines of its keys, and which of them it has more than once."""

    def __init__(self, pairs: list[tuple[str, Any]], line: int, key_lines: list[int]) -> None:
        super().__init__(pairs)
        self.line = line
        self.lines = dict(zip((key for key, _ in pairs), key_lines, strict=True))
        """Of a key that is there twice, the last one's."""
        self.doubled: tuple[str, ...] = ()
        if len(self) < len(pairs):
            self.doubled = tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)


def read_tables(text: str, *, strict: bool = True) -> Any:
    """Read JSON like ``json.loads``, and raise the same errors; objects are ``JsonTable``."""
    # Objects are given in the order in which they end, by the scanner as well as by the decoder.
    tables = _scan(text)

    def table(pairs: list[tuple[str, Any]]) -> JsonTable:
        return JsonTable(pairs, *next(tables))

    return json.loads(text, object_pairs_hook=table, strict=strict)


def _scan(text: str) -> Iterator[tuple[int, list[int]]]:
    """Give of each object, at its end, the line on which it begins and those of its keys."""
    line = 1
    begun: list[tuple[int, list[int]]] = []
    for found in _TOKEN.finditer(text):
        if found["bracket"] == "{":
            begun.append((line, []))
        elif found["bracket"] == "}" and begun:
            yield begun.pop()
        elif found["key"] is not None and begun:
            begun[-1][1].append(line)
        line += found[0].count("\n")
