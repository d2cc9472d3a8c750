"""The list of what counts, as two files that say the same: either may be lost."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gpuherd.history.tables.disk import write_whole
from gpuherd.history.tables.segments import Lost, Segment

__all__ = ["Found", "Manifest", "read_manifest", "write_manifest"]

_log = logging.getLogger(__name__)

_NAMES = ("manifest.json", "manifest-copy.json")
_HEAD = "gpuherd tables 1 "


class Manifest(Struct, frozen=True, kw_only=True):
    """All segments, how far each sink has settled the journal, and what had to be given up."""

    generation: Annotated[int, Meta(ge=0)] = 0
    serial: Annotated[int, Meta(ge=0)] = 0
    """Highest that was given to a segment."""
    settled: dict[str, int] = {}
    segments: tuple[Segment, ...] = ()
    lost: tuple[Lost, ...] = ()


class Found(Struct, frozen=True, kw_only=True):
    """What reading the manifest came to."""

    manifest: Manifest | None
    is_newest: bool
    """False: it is the second copy, which may be one step behind."""
    is_whole: bool
    """Whether both copies are there and say the same."""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make it the one that counts, durably. ``OSError``: the old one counts.

    Files that it no longer lists are to be deleted only afterwards; so a crash between the two copies leaves either of
    them true.
    """
    body = msgspec.json.encode(manifest)
    head = f"{_HEAD}{hashlib.blake2b(body, digest_size=16).hexdigest()}\n"
    content = head.encode() + body + b"\n"
    write_whole(folder / _NAMES[0], content)
    try:
        write_whole(folder / _NAMES[1], content)
    except OSError as error:
        # The change is made: a caller who took this for a failure would delete files that are listed. The old copy
        # does not agree with the files any more, and must not be believed if the first is lost.
        (folder / _NAMES[1]).unlink(missing_ok=True)
        _log.warning("history: cannot write the second copy of the manifest: %s", error)


def read_manifest(folder: Path) -> Found:
    """Find the newest copy that is sound."""
    first, second = (_read(folder / name) for name in _NAMES)
    return Found(
        manifest=second if first is None else first,
        is_newest=first is not None or second is None,
        is_whole=first == second,
    )


def _read(path: Path) -> Manifest | None:
    try:
        return _decode(path.read_bytes())
    except OSError:
        return None


def _decode(content: bytes) -> Manifest | None:
    head, _, body = content.partition(b"\n")
    body = body.removesuffix(b"\n")
    if head.decode("latin-1") != _HEAD + hashlib.blake2b(body, digest_size=16).hexdigest():
        return None
    try:
        return msgspec.json.decode(body, type=Manifest)
    except msgspec.DecodeError:
        return None
