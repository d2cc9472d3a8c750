"""Where each key of a TOML text stands: ``tomllib`` does not tell, so the text is scanned once more for its lines."""

from __future__ import annotations

import re
import tomllib

__all__ = ["Path", "key_lines"]

Path = tuple[str | int, ...]
"""Keys, and positions in arrays: ``("nodes", 0, "reach", "by")``."""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|"
    r"#[^\n]*|\n|[\[\]{}=,.]|[^\s\[\]{}=,.#\"']+",
    re.DOTALL,
)


def key_lines(text: str) -> dict[Path, int]:
    """Give the line of every key, table and element of an array. The text must be valid TOML."""
    return _Scan(text).lines


class _Scan:
    def __init__(self, text: str) -> None:
        self._words: list[tuple[str, int]] = []
        line, end = 1, 0
        for word in _TOKEN.finditer(text):
            line += text.count("\n", end, word.start())
            end = word.start()
            if not word[0].startswith("#"):
                self._words.append((word[0], line))
        self._at = 0
        self._tables: dict[Path, int] = {}
        """How many elements each array of tables has so far."""
        self.lines: dict[Path, int] = {}
        self._document()

    def _peek(self) -> str:
        return self._words[self._at][0] if self._at < len(self._words) else ""

    def _next(self) -> tuple[str, int]:
        word = self._words[self._at] if self._at < len(self._words) else ("", 0)
        self._at += 1
        return word

    def _document(self) -> None:
        table: Path = ()
        while self._at < len(self._words):
            word, line = self._words[self._at]
            if word == "[":
                table = self._header(line)
            elif word == "\n":
                self._at += 1
            else:
                self._pair(table)

    def _header(self, line: int) -> Path:
        self._at += 1
        is_array = self._peek() == "["
        self._at += is_array
        names = self._key("]")
        self._at += is_array
        path: Path = ()
        for place, name in enumerate(names):
            path = (*path, name)
            if is_array and place == len(names) - 1:
                self._tables[path] = self._tables.get(path, -1) + 1
            self.lines.setdefault(path, line)
            if path in self._tables:
                path = (*path, self._tables[path])  # what follows belongs to its last element
        self.lines[path] = line
        return path

    def _pair(self, table: Path) -> None:
        line = self._words[self._at][1]
        path = table
        for name in self._key("="):
            path = (*path, name)
            self.lines.setdefault(path, line)
        self._value(path)

    def _key(self, end: str) -> list[str]:
        names = []
        while (word := self._next()[0]) not in (end, ""):
            if word != ".":
                names.append(_unquoted(word))
        return names

    def _value(self, path: Path) -> None:
        word = self._peek()
        if word == "[":
            self._array(path)
        elif word == "{":
            self._inline_table(path)
        else:
            while self._peek() not in ("\n", ",", "]", "}", ""):
                self._at += 1

    def _array(self, path: Path) -> None:
        self._at += 1
        place = 0
        while (word := self._peek()) not in ("]", ""):
            if word in ("\n", ","):
                self._at += 1
                continue
            element = (*path, place)
            begin = self._at
            self.lines[element] = self._words[begin][1]
            self._value(element)
            self._at = max(self._at, begin + 1)  # A stray brace is no value; the text is no TOML then.
            place += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while (word := self._peek()) not in ("}", ""):
            if word in ("\n", ","):
                self._at += 1
                continue
            self._pair(path)
        self._at += 1


def _unquoted(name: str) -> str:
    if name[:1] not in ('"', "'"):
        return name
    return str(tomllib.loads(f"key = {name}")["key"])
