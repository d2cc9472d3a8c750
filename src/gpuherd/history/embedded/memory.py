"""What only the journal holds so far, mirrored so that it can be asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from gpuherd.history.batch import Samples
from gpuherd.history.embedded.kinds import Kind
from gpuherd.history.embedded.rows import Rows, Subjects, joined, packed

__all__ = ["Block", "Memory"]

PACK_ROWS = 4096
"""Samples that are left as they came; so many more are sorted at once."""
BLOCK_ROWS = 131_072
"""Blocks are not joined beyond this, lest the writer waits."""


class Block(NamedTuple):
    """Rows that came from one of the journal's files."""

    file: int
    rows: Rows


class Memory:
    """Rows that are in no file yet. From any thread."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.subjects = Subjects()
        self._lock = threading.Lock()
        self._open: list[Samples] = []
        self._open_rows = 0
        self._open_file = -1
        self._blocks: list[Block] = []
        self._sealing: list[Block] = []

    def take(self, samples: Samples, file: int) -> None:
        """Add samples that the journal has in this file."""
        if not len(samples):
            return
        with self._lock:
            if self._open_file != file:
                self._pack()
                self._open_file = file
            self._open.append(samples)
            self._open_rows += len(samples)
            if self._open_rows >= PACK_ROWS:
                self._pack()

    def blocks(self) -> tuple[Rows, ...]:
        """Give all rows, in blocks that are each sorted; earlier ones first."""
        with self._lock:
            self._pack()
            return tuple(block.rows for block in (*self._sealing, *self._blocks))

    @property
    def size_bytes(self) -> int:
        """What it takes, nearly."""
        with self._lock:
            blocks = sum(block.rows.size_bytes for block in (*self._sealing, *self._blocks))
            return blocks + sum(each.values.nbytes for each in self._open)

    def first_file(self) -> int | None:
        """The first of the journal's files that something in here came from; none if there is nothing."""
        with self._lock:
            files = [block.file for block in (*self._sealing, *self._blocks)]
            return min([*files, *([self._open_file] if self._open else [])], default=None)

    def begin_sealing(self) -> list[Block]:
        """Give all rows, to be written; they stay until ``end_sealing``."""
        with self._lock:
            self._pack()
            self._sealing, self._blocks = [*self._sealing, *self._blocks], []
            return list(self._sealing)

    def end_sealing(self, rest: Sequence[Block]) -> None:
        """Let go of what was to be written, but for the rest."""
        with self._lock:
            self._blocks[:0] = [block for block in rest if len(block.rows)]
            self._sealing = []

    def _pack(self) -> None:
        if self._open:
            self._add(Block(self._open_file, packed(self.kind, self._open, self.subjects)))
            self._open, self._open_rows = [], 0

    def _add(self, block: Block) -> None:
        blocks = self._blocks
        blocks.append(block)
        # Each block is at least twice as long as the next: few blocks, and no row is sorted often.
        while len(blocks) > 1 and _are_alike(blocks[-2], blocks[-1]):
            older, newer = blocks[-2:]
            blocks[-2:] = [Block(newer.file, joined([older.rows, newer.rows]))]


def _are_alike(older: Block, newer: Block) -> bool:
    rows = len(older.rows) + len(newer.rows)
    return older.file == newer.file and len(older.rows) < 2 * len(newer.rows) and rows <= BLOCK_ROWS
