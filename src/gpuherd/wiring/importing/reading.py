"""What a file of another tool turns out to be, and what follows from it for gpuherd.toml."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gpuherd.model.targets import Target

__all__ = [
    "MOST_NOTES",
    "BookingsEntry",
    "Entry",
    "FolderEntry",
    "GpustatEntry",
    "KeysEntry",
    "NodesEntry",
    "Note",
    "Reading",
    "note_at",
]

MOST_NOTES = 1000
"""Lines of a file that are told one by one."""


class Note(Struct, frozen=True):
    """One thing that was understood, or not and why. ``line`` is None if it is about the whole file."""

    line: int | None
    sentence: str
    is_taken: bool = True


def note_at(complaint: str, file: str) -> Note:
    """Make a note of a complaint that begins with its place, ``file:line: …``."""
    sentence = complaint.removeprefix(f"{file}:")
    line, _, rest = sentence.partition(": ")
    return Note(int(line), rest, False) if line.isdigit() else Note(None, sentence.strip(), False)


class NodesEntry(Struct, frozen=True, kw_only=True):
    """A ``[[nodes]]`` table. ``targets``: whom it names now, None if that cannot be known here."""

    reach: dict[str, Any]
    find: dict[str, Any] | None = None
    hosts: tuple[str, ...] = ()
    targets: tuple[Target, ...] | None = None


class GpustatEntry(Struct, frozen=True, kw_only=True):
    """The ``[legacy.gpustat]`` table; without networks only a comment that says what is missing."""

    listen: str
    networks: tuple[str, ...]


class FolderEntry(Struct, frozen=True, kw_only=True):
    """A ``[[folders]]`` table."""

    path: str


class KeysEntry(Struct, frozen=True, kw_only=True):
    """Keys of a table such as ``display.nodes``. What is set already stays; some lists grow."""

    table: str
    values: dict[str, Any]


class BookingsEntry(Struct, frozen=True, kw_only=True):
    """The ``[bookings.comments]`` table."""

    file: str
    zone: str


Entry = NodesEntry | GpustatEntry | FolderEntry | KeysEntry | BookingsEntry


class Reading(Struct, frozen=True, kw_only=True):
    """A file and what it says. ``what`` is None if it was not recognised."""

    file: str
    what: str | None
    notes: tuple[Note, ...] = ()
    entries: tuple[Entry, ...] = ()
