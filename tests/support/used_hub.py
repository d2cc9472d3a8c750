"""The part of a hub that counts and keeps use, with a real journal and real files; it can be started anew."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpuherd.history.batch import USE_MEASURES, FrameMark
from gpuherd.history.historian import Historian
from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.history.usage.accountant import Accountant
from gpuherd.history.usage.asking import UsageReader
from gpuherd.history.usage.book import UsageBook
from gpuherd.history.usage.rows import SHAPES
from support.reckoner import Sums, Who, who_of
from support.used_herd import START, Frame, batch_of, device_rows

__all__ = ["UsedHub"]


class UsedHub:
    """Takes samples, counts them, and keeps what was counted."""

    def __init__(
        self, folder: Path, settings: HistorySettings, now: float = START, *, keeps_names: bool = False
    ) -> None:
        """``keeps_names``: of whoever was beside a hole, however long ago by its clock, across restarts too."""
        self.now = now
        self._keeps_names = keeps_names
        self._folder = folder
        self._settings = settings
        self._open()

    def _open(self) -> None:
        self.tables = Tables(self._folder, SHAPES, threads=1, clock=lambda: self.now)
        self.book = UsageBook(self.tables, self._settings, pseudonym=lambda user: f"~{user}")
        if self._keeps_names:
            self.book.names_seconds = math.inf
        self.historian = Historian(self._folder, self._settings, [self.book], wall=lambda: self.now)
        self.historian.open()
        # The plain count that this is compared with remembers whoever was beside a hole for ever.
        self.accountant = Accountant(self.book, names_seconds=math.inf)
        self.reader = UsageReader(self.book, clock=lambda: self.now)

    @property
    def taken(self) -> int:
        """The highest mark that was given with a flush."""
        return max((mark.seq for mark in self.historian.marks), default=0)

    def take(self, frames: Sequence[Frame], mark: int | None = None) -> None:
        """Take a flush."""
        accounts = self.accountant.take([each.sample for each in frames], device_rows(frames))
        marks = () if mark is None else (FrameMark("n", "boot", mark),)
        batch = dataclasses.replace(batch_of(frames, accounts), written_at=self.now, marks=marks)
        self.historian.append(batch)

    def tend(self) -> None:
        """Do what is done in the background."""
        self.historian.tend()

    def restart(self) -> None:
        """Drop everything and begin again with what is on disk."""
        self.close()
        self._open()

    def close(self) -> None:
        """Let go of the folder."""
        self.historian.close()
        self.tables.close()

    def sums(self) -> Sums:
        """Add up all that is kept by whose it is and slot, as the plain count does."""
        use = self.book.open_use()
        rows: list[tuple[Who, int, list[float]]] = [
            (who_of(key), slot, measures)
            for key, slot, measures in zip(
                use.rows.keys, use.rows.slot.tolist(), use.rows.measures.tolist(), strict=True
            )
        ]
        found = self.tables.query("SELECT * FROM {usage}", {"usage": Part("usage")}).columns
        measures_of = np.column_stack([found[name].astype(np.float64) for name in USE_MEASURES]).tolist()
        names = [found[name].tolist() for name in ("node_id", "uuid", "user", "container", "job")]
        rows += [
            ((node_id, uuid, user, container, job), slot, measures)
            for node_id, uuid, user, container, job, slot, measures in zip(
                *names, found["slot"].tolist(), measures_of, strict=True
            )
        ]
        sums: Sums = {}
        for who, slot, measures in rows:
            before = sums.get((who, slot))
            sums[who, slot] = (
                measures
                if before is None
                else [
                    one if np.isnan(other) else other if np.isnan(one) else one + other
                    for one, other in zip(before, measures, strict=True)
                ]
            )
        return sums
