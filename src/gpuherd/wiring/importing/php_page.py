"""index.php: the shown names of hosts and GPUs, from its two arrays."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from gpuherd.discovery.complaints import quoted
from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import LABEL_LENGTH, clean
from gpuherd.wiring.importing.reading import DisplayEntry, Entry, Note, Reading
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["ARRAY", "PhpPair", "parse_php_array", "read_index_php"]

ARRAY = re.compile(r"\$(?P<name>HOSTS|SHORT_GPU_NAMES)\s*=\s*(?:array\s*\(|\[)", re.IGNORECASE)
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/        # nothing of meaning
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<arrow>=>)|(?P<comma>,)|(?P<end>[)\]])""",
    re.VERBOSE | re.DOTALL,
)
_TABLES = {"HOSTS": "nodes", "SHORT_GPU_NAMES": "gpus"}


class PhpPair(Struct, frozen=True):
    """A key with its value and line."""

    key: str
    value: str
    line: int


def parse_php_array(text: str, start: int, file: str) -> list[PhpPair]:
    """Read ``'key' => 'value', …`` up to the closing bracket; anything but plain text in it is refused."""
    pairs: list[PhpPair] = []
    words: list[str] = []
    has_arrow = False
    position = start
    while True:
        line = text.count("\n", 0, position) + 1
        token = _TOKEN.match(text, position)
        if token is None:
            raise Misconfigured(
                f"{file}:{line}: {quoted(text[position : position + 30])} is not a text in quotation marks"
            )
        position = token.end()
        if token["text"]:
            words.append(_unquoted(token["text"]))
        elif token["arrow"]:
            has_arrow = True
        elif token["comma"] or token["end"]:
            if words:
                if len(words) != 2 or not has_arrow:
                    raise Misconfigured(
                        f"{file}:{line}: {quoted(words[0])} has no name; write 'key' => 'name'"
                    )
                pairs.append(PhpPair(words[0], words[1], line))
            words, has_arrow = [], False
            if token["end"]:
                return pairs


def read_index_php(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take the arrays $HOSTS and $SHORT_GPU_NAMES; the rest of the page is a program and not read."""
    notes: list[Note] = []
    entries: list[Entry] = []
    for found in ARRAY.finditer(text):
        name = found["name"].upper()
        pairs = parse_php_array(text, found.end(), str(file))
        names: dict[str, str] = {}
        for pair in pairs:
            shown = clean(pair.value.strip())
            if (
                not pair.key.strip()
                or not shown
                or len(pair.key) > LABEL_LENGTH
                or clean(pair.key) != pair.key
            ):
                notes.append(Note(pair.line, f"{quoted(pair.key)}: not a name that can be shown", False))
                continue
            names[pair.key] = shown
            notes.append(Note(pair.line, f"{quoted(pair.key)} is shown as {quoted(shown)}"))
        if names and name == "HOSTS":
            entries.append(DisplayEntry(table="", values={"order": list(names)}))
            notes.append(Note(None, "hosts are shown in the order of $HOSTS"))
        if names:
            entries.append(DisplayEntry(table=_TABLES[name], values=dict(names)))
    return Reading(
        file=str(file), what="the names of a PHP monitor's page", notes=tuple(notes), entries=tuple(entries)
    )


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    if text.startswith("'"):
        return re.sub(r"\\(['\\])", r"\1", inner)
    return re.sub(r"\\([\"\\$])", r"\1", inner)
