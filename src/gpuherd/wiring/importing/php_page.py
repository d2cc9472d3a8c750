"""index.php: the shown names of hosts and GPUs, from its two arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gpuherd.discovery.complaints import quoted
from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import LABEL_LENGTH, clean
from gpuherd.wiring.importing.reading import Entry, KeysEntry, Note, Reading, note_at
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["ARRAY", "PhpPair", "parse_php_array", "read_index_php"]

ARRAY = re.compile(
    r"\$(?P<name>HOSTS|SHORT_GPU_NAMES|SHORTER_GPU_NAMES)\s*=\s*(?:array\s*\(|\[)", re.IGNORECASE
)
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/        # nothing of meaning
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<arrow>=>)|(?P<comma>,)|(?P<end>[)\]])""",
    re.VERBOSE | re.DOTALL,
)
# What else the page says that gpuherd cares about: the pattern, what becomes of it, and whether it is taken.
_OTHER_LINES = (
    (
        re.compile(r"^[^/#\n]*\$HOSTS\s*=\s*json_decode", re.MULTILINE),
        "$HOSTS: read from hosts.json, which the hub reads with its folder; import that folder",
        False,
    ),
    (
        re.compile(r"^[^/#\n]*date_default_timezone_set", re.MULTILINE),
        "date_default_timezone_set: the time zone of the dates in the comments.json next to it",
        True,
    ),
)


class PhpPair(Struct, frozen=True):
    """A key with its value and line."""

    key: str
    value: str
    line: int


def parse_php_array(text: str, start: int, file: str) -> Iterator[PhpPair]:
    """Read ``'key' => 'value', …`` up to the closing bracket; at anything but plain text ``Misconfigured``."""
    words: list[str] = []
    has_arrow = False
    position = start
    while True:
        line = text.count("\n", 0, position) + 1
        token = _TOKEN.match(text, position)
        if token is None:
            raise Misconfigured(
                f"{file}:{line}: {quoted(text[position : position + 30])} is not a text in quotation marks; "
                "write 'key' => 'name', and ) at the end"
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
                yield PhpPair(words[0], words[1], line)
            words, has_arrow = [], False
            if token["end"]:
                return


def read_index_php(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take the arrays of names, each up to what is odd in it; the rest of the page is a program and not read."""
    notes: list[Note] = []
    tables: dict[str, dict[str, str]] = {}
    failure: Misconfigured | None = None
    for found in ARRAY.finditer(text):
        name = found["name"].upper()
        names = tables.setdefault(name, {})
        try:
            notes.extend(_take(pair, names) for pair in parse_php_array(text, found.end(), str(file)))
        except Misconfigured as error:
            failure = error
            note = note_at(str(error), str(file))
            notes.append(Note(note.line, f"${name}: not imported from here on: {note.sentence}", False))
    if failure is not None and not any(tables.values()):
        raise failure
    notes += [
        Note(text.count("\n", 0, found.start()) + 1, sentence, is_taken)
        for shape, sentence, is_taken in _OTHER_LINES
        for found in shape.finditer(text)
    ]
    order = list(tables.get("HOSTS", ()))
    if order:
        notes.append(Note(None, "hosts are shown in the order of $HOSTS"))
    if "SHORTER_GPU_NAMES" in tables:
        sentence = (
            "$SHORTER_GPU_NAMES: a GPU has the same name on all screens, taken from $SHORT_GPU_NAMES if "
            "it is there"
        )
        notes.append(Note(None, sentence))
    shorter, short = (tables.get(name, {}) for name in ("SHORTER_GPU_NAMES", "SHORT_GPU_NAMES"))
    left = {_shown_as(gpu, name) for gpu, name in shorter.items() if short.get(gpu, name) != name}
    notes = [
        Note(note.line, f"{note.sentence} on phones only", False) if note.sentence in left else note
        for note in notes
    ]
    gpus = {**shorter, **short}
    entries: list[Entry] = [KeysEntry(table="display", values={"order": order})] if order else []
    for table, shown_names in (("nodes", tables.get("HOSTS")), ("gpus", gpus)):
        if shown_names:
            entries.append(KeysEntry(table=f"display.{table}", values=dict(shown_names)))
    return Reading(
        file=str(file), what="the names of a PHP monitor's page", notes=tuple(notes), entries=tuple(entries)
    )


def _take(pair: PhpPair, names: dict[str, str]) -> Note:
    shown = clean(pair.value.strip())
    if not pair.key.strip() or not shown or len(pair.key) > LABEL_LENGTH or clean(pair.key) != pair.key:
        return Note(pair.line, f"{quoted(pair.key)}: not a displayable name; correct it", False)
    if names.get(pair.key, shown) != shown:
        again = f"{quoted(pair.key)} is in the array twice; keep one, the last is used: {quoted(shown)}"
        names[pair.key] = shown
        return Note(pair.line, again, False)
    names[pair.key] = shown
    return Note(pair.line, _shown_as(pair.key, shown))


def _shown_as(key: str, name: str) -> str:
    return f"{quoted(key)} is shown as {quoted(name)}"


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    if text.startswith("'"):
        return re.sub(r"\\(['\\])", r"\1", inner)
    return re.sub(r"\\([\"\\$])", r"\1", inner)
