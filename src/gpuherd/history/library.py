"""Everything that remembers, opened together in one folder and closed together."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from gpuherd.history.embedded.kinds import SHAPES as SAMPLE_SHAPES
from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.herd.shapes import HERD_SHAPES
from gpuherd.history.herd.sink import HerdSink
from gpuherd.history.historian import Historian
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.history.store import SeriesReader, Sink
from gpuherd.history.tables.tables import Tables
from gpuherd.history.trusted_time import TrustedTime
from gpuherd.history.usage.accountant import Accountant
from gpuherd.history.usage.book import UsageBook
from gpuherd.history.usage.rows import SHAPES as USAGE_SHAPES
from gpuherd.model.errors import Misconfigured

__all__ = ["Library", "OpenSamples", "SampleStore"]


LATEST_DAYS = 8.0
"""What an agent kept for longer is not taken any more, unless single samples are kept for longer."""


class SampleStore(NamedTuple):
    """Where samples go, and who can be asked about them."""

    sink: Sink
    reader: SeriesReader | None
    """None: they are kept where they cannot be asked for."""


OpenSamples = Callable[[Tables, HistorySettings, Path, Callable[[], float]], SampleStore]
"""Makes the store that the settings name: tables, settings, the folder of all history, the wall clock."""


class Library:
    """What a hub remembers: ``open`` before use, ``close`` after the last batch."""

    def __init__(
        self,
        folder: Path,
        settings: HistorySettings,
        usage: UsageSettings,
        *,
        open_samples: OpenSamples,
        pseudonym: Callable[[str], str],
        stay_id: Callable[[str], str] | None = None,
        wall: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
        busy_utilization: float = 0.05,
        busy_memory: float = 0.02,
    ) -> None:
        """``pseudonym``: what a user is called for good when names are no longer kept; ``stay_id``: a stay then."""
        self._folder = folder
        self._settings = settings
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise Misconfigured(
                f"history.folder: cannot create {folder}: {error.strerror}; choose a folder that this user "
                "can write to"
            ) from error
        is_new = not any(file for kind in ("*.parquet", "*.journal") for file in folder.glob(f"*/{kind}"))
        self.tables = Tables(
            folder,
            [*SAMPLE_SHAPES, *HERD_SHAPES, *USAGE_SHAPES],
            query_memory_bytes=settings.query_memory_bytes,
            clock=wall,
            trusted=TrustedTime(folder / "trusted-time.json", is_new=is_new, wall=wall, monotonic=monotonic),
        )
        self.book = UsageBook(
            self.tables,
            settings,
            pseudonym=pseudonym,
            stay_id=stay_id,
            session_gap_seconds=usage.session_gap_seconds,
        )
        herd = HerdSink(self.tables, settings)
        self.herd = HerdReader(self.tables, herd, clock=wall)
        self.samples = open_samples(self.tables, settings, folder, wall)
        self.historian = Historian(folder, settings, [herd, self.book, self.samples.sink], wall=wall)
        self._gap_seconds = usage.session_gap_seconds
        self._busy_utilization = busy_utilization
        self._busy_memory = busy_memory

    def open(self) -> Accountant:
        """Read what the journal holds and is nowhere else yet; give who counts on from there. Blocking."""
        self.historian.open()
        return Accountant(
            self.book,
            session_gap_seconds=self._gap_seconds,
            busy_utilization=self._busy_utilization,
            busy_memory=self._busy_memory,
            names_seconds=self.book.names_seconds,
        )

    @property
    def latest_seconds(self) -> float:
        """How late a sample may come to be kept: each day to which something is added is written anew."""
        return 86_400.0 * max(LATEST_DAYS, self._settings.raw_days)

    def close(self) -> None:
        """Let go of everything; what was not yet in its place is in the journal."""
        self.historian.close()
        self.tables.close()

    def __enter__(self) -> Self:
        """Open; who counts is not needed."""
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
