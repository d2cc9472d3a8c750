"""What a file of another tool turns out to be, and what follows from it for gpuherd.toml."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gpuherd.model.targets import Target

__all__ = [
    "BookingsEntry",
    "DisplayEntry",
    "Entry",
    "FolderEntry",
    "GpustatEntry",
    "NodesEntry",
    "Note",
    "Reading",
]


class Note(Struct, frozen=True):
    """One thing that was understood, or not and why. ``line`` is None if it is about the whole file."""

    line: int | None
    sentence: str
    is_taken: bool = True


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


class DisplayEntry(Struct, frozen=True, kw_only=True):
    """Keys of ``[display]`` (``table`` empty) or of a table below it."""

    table: str
    values: dict[str, Any]


class BookingsEntry(Struct, frozen=True, kw_only=True):
    """The ``[bookings.comments]`` table."""

    file: str
    zone: str


Entry = NodesEntry | GpustatEntry | FolderEntry | DisplayEntry | BookingsEntry


class Reading(Struct, frozen=True, kw_only=True):
    """A file and what it says. ``what`` is None if it was not recognised."""

    file: str
    what: str | None
    notes: tuple[Note, ...] = ()
    entries: tuple[Entry, ...] = ()
