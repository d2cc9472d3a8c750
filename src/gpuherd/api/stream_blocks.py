"""Events of the live stream as bytes, plain and compressed, each made when first asked for.

A gzip stream may be put together from blocks compressed on their own, as long as each ends on a byte boundary and
refers to nothing before it, which is what a full flush gives. So one block serves every viewer, and the numbers of a
message, compressed once, serve every privacy class.
"""

from __future__ import annotations

import zlib
from typing import Literal

import msgspec

from gpuherd.fleet.changes import FleetChange, OwnCommands
from gpuherd.fleet.editions import Editor, Message
from gpuherd.model.people import PrivacyClass

__all__ = ["GZIP_HEADER", "Block", "Issue", "own_block"]

COMPRESSION_LEVEL = 3
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_encode = msgspec.json.Encoder().encode


def _deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


class Block:
    """Bytes in the forms viewers want them."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self._deflated: bytes | None = None

    def content(self, is_deflated: bool) -> bytes:
        """Give them plain or compressed."""
        if not is_deflated:
            return self.plain
        if self._deflated is None:
            self._deflated = _deflate(self.plain)
        return self._deflated


class Issue:
    """One message for all privacy classes."""

    def __init__(self, event: Literal["snapshot", "change"], change: FleetChange) -> None:
        self.tick = change.tick
        self.after_tick = change.after_tick
        self._message = Message(change)
        self._start = b"event: %b\nid: %d\ndata: " % (event.encode(), change.tick)
        self._numbers: Block | None = None
        self._made: dict[tuple[PrivacyClass, bool], bytes] = {}

    def content(self, privacy: PrivacyClass, editor: Editor, is_deflated: bool) -> bytes:
        """Give the event as a class sees it; ``editor`` is that class's."""
        made = self._made.get((privacy, is_deflated))
        if made is None:
            edition = editor.edition(self._message)
            head = Block(self._start + edition.head)
            made = head.content(is_deflated) + self._end(edition.numbers).content(is_deflated)
            self._made[privacy, is_deflated] = made
        return made

    def _end(self, numbers: bytes) -> Block:
        if numbers is not self._message.numbers:
            return Block(numbers + b"\n\n")
        if self._numbers is None:
            self._numbers = Block(numbers + b"\n\n")
        return self._numbers


def own_block(own: OwnCommands) -> Block:
    """Make the event that tells a person of its own processes."""
    return Block(b"event: own\ndata: %b\n\n" % _encode(own))
