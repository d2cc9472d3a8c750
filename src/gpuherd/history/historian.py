"""Keeps the journal and everyone for whom it is kept."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.history.batch import Batch
from gpuherd.history.journal import Journal, JournalFiles
from gpuherd.history.marks import Marks
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import Sink, SinkHealth
from gpuherd.model.errors import Failed, GpuherdError, Misconfigured
from gpuherd.model.text import clip

__all__ = ["Historian", "HistoryHealth", "JournalHealth", "is_remote"]

log = logging.getLogger(__name__)


class JournalHealth(Struct, frozen=True, kw_only=True):
    """State of the journal. While it fails, nodes get no acknowledgements and their samples are not stored."""

    state: Literal["ok", "failing"]
    written_at: Annotated[float | None, Meta(description="Hub time, UTC epoch seconds.")] = None
    files: int = 0
    size_bytes: int = 0
    damaged_records: Annotated[int, Meta(description="Entries that could not be read at the last start.")] = 0
    lost_names: Annotated[int, Meta(description="Devices or sessions left out because of that.")] = 0
    torn_bytes: Annotated[int, Meta(description="Cut off at the last start; never acknowledged.")] = 0
    last_error: str | None = None
    last_error_at: float | None = None


class HistoryHealth(Struct, frozen=True, kw_only=True):
    """State of the history."""

    journal: JournalHealth
    sinks: tuple[SinkHealth, ...]
    waiting_bytes: Annotated[int, Meta(description="Received and not yet written.")] = 0
    is_closed: Annotated[
        bool,
        Meta(
            description="Nothing more is recorded until there is space. The live view continues, and agents send "
            "their samples later."
        ),
    ] = False
    sent_again_samples: Annotated[
        int,
        Meta(
            description="Samples that could not be stored because the disk was full; agents send them again."
        ),
    ] = 0
    lost_samples: Annotated[
        int,
        Meta(description="Samples lost because the disk was full, from nodes that cannot send them again."),
    ] = 0
    too_old_samples: Annotated[
        int,
        Meta(description="Samples that arrived too late: after 8 days, or `raw_days` if that is longer."),
    ] = 0
    uncounted_samples: Annotated[
        int, Meta(description="Samples whose usage could not be counted; the hub's log says why.")
    ] = 0

    def reasons(self) -> tuple[str, ...]:
        """Say what is wrong, for people."""
        wrong = [f"history: {self.journal.last_error}"] if self.journal.state == "failing" else []
        if self.journal.damaged_records:
            wrong.append(
                f"history: {self.journal.damaged_records} entries of the journal could not be read at the "
                "last start; check the disk"
            )
        if self.is_closed:
            wrong.append(
                "history: there is no space for more samples; the live view continues, and agents keep "
                "their samples and send them when there is space"
            )
        wrong += [
            f"history: {sink.name}: {sink.damaged_files} damaged files were moved to history/quarantine and are "
            "missing from charts; check the disk"
            for sink in self.sinks
            if sink.damaged_files
        ]
        wrong += [
            f"history: {sink.name}: {sink.last_error}"
            for sink in self.sinks
            if sink.state == "failing" and sink.last_error is not None
        ]
        return tuple(wrong)


def is_remote(sink: Sink) -> bool:
    """Tell whether a sink's turn lasts as long as someone elsewhere takes to answer."""
    return getattr(sink, "is_remote", False)


def _newest(files: JournalFiles) -> int:
    """Give the newest file that holds anything; those after it were begun when the hub was killed."""
    for number in reversed(files.paths()):
        with contextlib.suppress(Failed):
            if files.read(number).batches:
                return number
    return 0


class Historian:
    """Writes batches down, hands them to the sinks, and tends these in the background.

    ``append`` is called in one thread, ``tend_own`` in another, ``tend_remote`` in a third, ``health`` in any.
    """

    def __init__(
        self, folder: Path, settings: HistorySettings, sinks: Sequence[Sink], *, wall: Callable[[], float]
    ) -> None:
        """``folder``: of all history; the journal is in a folder of its own below it."""
        self.marks = Marks()
        self._folder = folder / "journal"
        self._settings = settings
        self._sinks = tuple(sinks)
        self._wall = wall
        self._journal: Journal | None = None
        self._tending = threading.Lock()
        self._sending = threading.Lock()
        self._handing = threading.Lock()
        """Held while a batch is written and handed out: a file must not be called complete in between."""
        self._written_at: float | None = None
        self._last_error: str | None = None
        self._last_error_at: float | None = None
        self._size = (0, 0)
        self._damaged = self._torn_bytes = self._lost_names = 0
        self._failed_sinks: dict[str, str] = {}

    def open(self) -> None:
        """Give the sinks what they have not settled, and begin a new file with the first batch; blocking.

        ``Misconfigured`` if the folder cannot be used.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise Misconfigured(
                f"history.folder: cannot create {self._folder}: {error.strerror}; choose a folder that "
                "this user can write to"
            ) from error
        files = JournalFiles(self._folder)
        settled = [sink.settled for sink in self._sinks]
        newest = _newest(files)
        self._replay(files, newest)
        self._journal = Journal(
            self._folder,
            min_free_bytes=self._settings.min_free_bytes,
            first_file=max(settled, default=1),
            newest_file=newest,
            opening=self._opening,
        )
        self._measure(self._journal)

    def _replay(self, files: JournalFiles, newest: int) -> None:
        ids: dict[str, set[int]] = {sink.name: set() for sink in self._sinks}
        for number in files.paths():
            takers = [
                sink for sink in self._sinks if number >= sink.settled and getattr(sink, "wants_replay", True)
            ]
            # Each file begins with all marks: of those that nobody needs, the newest tells them.
            if not takers and number != newest:
                continue
            try:
                reading = files.read(number)
            except Failed as failed:
                log.warning("%s; its samples are lost", failed)
                self._note_error(str(failed))
                self._damaged += 1
                continue
            self._damaged += reading.damaged
            self._torn_bytes += reading.torn_bytes
            self._lost_names += reading.lost_names
            if reading.damaged or reading.lost_names:
                log.warning(
                    "journal file %d is damaged: %d entries and %d names are lost; check the disk",
                    number,
                    reading.damaged,
                    reading.lost_names,
                )
            for batch_id, batch in reading.batches:
                self.marks.raise_to(batch.marks)
                # By sink: who did not get the first copy of a batch that was written twice gets the second.
                self._hand(batch, number, [sink for sink in takers if batch_id not in ids[sink.name]])
                for sink in takers:
                    ids[sink.name].add(batch_id)

    def _opening(self) -> Batch | None:
        """Give what every file begins with: it may be the only one left at the next start."""
        return Batch(written_at=self._wall(), marks=tuple(self.marks)) if len(self.marks) else None

    def append(self, batch: Batch) -> None:
        """Write a batch down, then hand it to the sinks.

        ``Failed`` if it could not be written: then nobody has it, and it is to be given again, the very same.
        """
        journal = self._opened
        with self._handing:
            try:
                file = journal.append(batch)
            except Failed as failed:
                self._note_error(str(failed))
                raise
            self._last_error = None
            self._written_at = self._wall()
            self.marks.raise_to(batch.marks)
            self._hand(batch, file, self._sinks)

    def _hand(self, batch: Batch, file: int, sinks: Sequence[Sink]) -> None:
        for sink in sinks:
            if sink.name in self._failed_sinks:
                continue
            try:
                sink.take(batch, file)
            except Exception as error:
                # It is in the journal: the others go on, and this one rests until it gets it again at the next start.
                # Were it tended, it would settle a file of which it has not all.
                log.exception("history: %s failed to store a batch", sink.name)
                self._failed_sinks[sink.name] = clip(
                    f"could not store a batch ({type(error).__name__}: {error}); restart the hub",
                    400,
                )

    @property
    def _opened(self) -> Journal:
        if self._journal is None:
            raise RuntimeError("the history is not open")
        return self._journal

    def forget(self, node_id: str) -> None:
        """Forget the marks of a removed node; what was remembered of it stays. In the thread that appends."""
        self.marks.forget(node_id)

    def tend(self) -> None:
        """Do all that is due, one after the other; blocking. ``Failed`` as those two."""
        try:
            self.tend_own()
        finally:
            self.tend_remote()

    def tend_own(self) -> None:
        """Do what is due here: files that are complete, the sinks' own work, deleting what all have settled; blocking.

        ``Failed`` names what went wrong, after everyone had a turn.
        """
        with self._tending:
            journal = self._opened
            with self._handing:
                journal.end_due(self._wall())
                open_file = journal.open_file
            wrong = self._tend([sink for sink in self._sinks if not is_remote(sink)], open_file)
            if self._sinks:
                journal.remove_before(min(sink.settled for sink in self._sinks))
            self._measure(journal)
        if wrong:
            raise Failed("; ".join(wrong))

    def tend_remote(self) -> None:
        """Let sinks elsewhere have their turn; blocking for as long as they take to answer. ``Failed`` as above."""
        with self._sending:
            with self._handing:
                open_file = self._opened.open_file
            wrong = self._tend([sink for sink in self._sinks if is_remote(sink)], open_file)
        if wrong:
            raise Failed("; ".join(wrong))

    def _tend(self, sinks: Sequence[Sink], open_file: int) -> list[str]:
        wrong: list[str] = []
        for sink in sinks:
            if sink.name in self._failed_sinks:
                wrong.append(f"{sink.name}: {self._failed_sinks[sink.name]}")
                continue
            try:
                sink.tend(self._wall(), open_file)
            except GpuherdError as error:
                wrong.append(f"{sink.name}: {error}")
            except Exception as error:
                log.exception("history: maintenance of %s failed", sink.name)
                wrong.append(f"{sink.name}: {type(error).__name__}: {error}")
        return wrong

    def _measure(self, journal: Journal) -> None:
        self._size = journal.files.measure()

    def _note_error(self, message: str) -> None:
        self._last_error, self._last_error_at = message, self._wall()

    def journal_health(self) -> JournalHealth:
        """Tell how the journal is doing."""
        files, size_bytes = self._size
        return JournalHealth(
            state="ok" if self._last_error is None else "failing",
            written_at=self._written_at,
            files=files,
            size_bytes=size_bytes,
            damaged_records=self._damaged,
            lost_names=self._lost_names,
            torn_bytes=self._torn_bytes,
            last_error=self._last_error,
            last_error_at=self._last_error_at,
        )

    def sink_health(self) -> tuple[SinkHealth, ...]:
        """Tell how the sinks are doing."""
        return tuple(
            SinkHealth(name=sink.name, state="failing", last_error=self._failed_sinks[sink.name])
            if sink.name in self._failed_sinks
            else sink.health()
            for sink in self._sinks
        )

    def close(self) -> None:
        """Wait for the tending that is under way, then close the journal and the sinks."""
        with self._tending, self._sending:
            if self._journal is not None:
                self._journal.close()
            for sink in self._sinks:
                with contextlib.suppress(GpuherdError):
                    sink.close()
