"""What only the journal holds so far, mirrored so that it can be asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpuherd.history.batch import Samples, SeriesKey
from gpuherd.history.embedded.kinds import Kind
from gpuherd.history.embedded.rows import Rows, Subjects, joined, packed

__all__ = ["Block", "Memory"]

PACK_ROWS, PACK_BATCHES = 16_384, 256
"""Samples stay as they came until there are so many, or somebody asks, who does not wait for long then."""
MOST_ROWS = 262_144
"""With more than this nobody has tended them for long: whoever brings more sorts them."""
ALIKE = 4
"""So many blocks of about the same size become one."""
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
        """Held for moments."""
        self._sorting = threading.Lock()
        """Held while samples are sorted into blocks, and by whoever wants to see all of them."""
        self._open: list[Samples] = []
        self._open_rows = 0
        self._open_file = -1
        self._full: list[tuple[int, list[Samples]]] = []
        """Samples of earlier files that are not sorted yet."""
        self._blocks: list[Block] = []
        self._sealing: list[Block] = []

    def take(self, samples: Samples, file: int) -> None:
        """Add samples that the journal has in this file."""
        if not len(samples):
            return
        with self._lock:
            if self._open_file != file:
                self._set_apart()
                self._open_file = file
            self._open.append(samples)
            self._open_rows += len(samples)
            is_too_much = self._open_rows >= MOST_ROWS
        if is_too_much:
            self.sort()

    def sort(self, least_rows: int = 0) -> None:
        """Sort what came, if there is so much of it, or in very many pieces."""
        if self._open_rows >= least_rows or len(self._open) >= PACK_BATCHES or self._full:
            with self._sorting:
                self._pack()

    def look(self, keys: Sequence[SeriesKey]) -> tuple[tuple[Rows, ...], list[int]]:
        """Give all rows, in blocks that are each sorted, earlier ones first; and the numbers subjects have in them."""
        with self._sorting:
            self._pack()
            blocks = tuple(block.rows for block in (*self._sealing, *self._blocks))
            return blocks, [self.subjects.find(key) for key in keys]

    def forget_subjects(self) -> None:
        """Forget those of which there are no rows here. Nobody else may have rows with their numbers."""
        with self._sorting:
            rows = [np.unique(block.rows.subject) for block in (*self._sealing, *self._blocks)]
            self.subjects.keep(np.concatenate((np.empty(0, np.int32), *rows)))

    @property
    def size_bytes(self) -> int:
        """What it takes, nearly."""
        with self._lock:
            waiting = [*self._open, *(each for _, pieces in self._full for each in pieces)]
            blocks = [*self._sealing, *self._blocks]
        return sum(block.rows.size_bytes for block in blocks) + sum(each.values.nbytes for each in waiting)

    def begin_sealing(self) -> list[Block]:
        """Give all rows, to be written; they stay until ``end_sealing``."""
        with self._sorting:
            self._pack()
            self._sealing, self._blocks = [*self._sealing, *self._blocks], []
            return list(self._sealing)

    def end_sealing(self, rest: Sequence[Block]) -> None:
        """Let go of what was to be written, but for the rest."""
        with self._sorting:
            self._blocks = [*(block for block in rest if len(block.rows)), *self._blocks]
            self._sealing = []

    def _set_apart(self) -> None:
        if self._open:
            self._full.append((self._open_file, self._open))
            self._open, self._open_rows = [], 0

    def _pack(self) -> None:
        with self._lock:
            self._set_apart()
            full, self._full = self._full, []
        for file, samples in full:
            self._add(Block(file, packed(self.kind, samples, self.subjects)))

    def _add(self, block: Block) -> None:
        blocks = [*self._blocks, block]
        # A few blocks of each size: no row is sorted often, and there are not many to look through.
        while (alike := _alike(blocks)) >= ALIKE:
            blocks[-alike:] = [Block(block.file, joined([each.rows for each in blocks[-alike:]]))]
        self._blocks = blocks


def _alike(blocks: Sequence[Block]) -> int:
    """Count the last ones that are of about the same size, and not too much together."""
    newest = blocks[-1]
    count = rows = 0
    for block in reversed(blocks):
        rows += len(block.rows)
        if block.file != newest.file or len(block.rows) >= 2 * len(newest.rows) or rows > BLOCK_ROWS:
            break
        count += 1
    return count
