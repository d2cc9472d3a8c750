"""Sending the journal to a store outside: until it is confirmed and stays confirmed, the journal is the truth."""

from __future__ import annotations

import logging
import math
import random
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from gpuherd.history.batch import Batch
from gpuherd.history.journal import JournalFiles
from gpuherd.history.outside.backlog import Backlog, Position
from gpuherd.history.store import SinkHealth
from gpuherd.history.tables.disk import write_whole
from gpuherd.model.errors import Failed

__all__ = ["OutsideSink", "Sender", "Sent"]

_TURN_SECONDS = 5.0
"""For how long one turn sends before it lets others have theirs."""
_REQUEST_VALUES = 20_000
_REQUEST_BATCHES = 500
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
_MAX_REWINDS = 5
"""Without anything settled between them: a line that is always cut must not keep the journal for ever."""
_NOTE_SECONDS = 10.0
_PAUSE_SECONDS = 10.0
"""A line that was closed in order is opened again within this time; after a longer one, who knows what has been."""
_log = logging.getLogger(__name__)


class Sent(NamedTuple):
    """What came of sending."""

    values: int
    refused_values: int = 0
    """That the store will never take, and that were dropped."""
    refusal: str | None = None
    is_new_line: bool = False
    """The connection before was closed, or there was none."""


class Sender(Protocol):
    """Who knows how to bring batches to a store."""

    @property
    def place(self) -> str:
        """Where that is, for messages."""

    def send(self, batches: Sequence[Batch]) -> Sent:
        """Bring them there and wait for the answer. ``Failed`` if they are to be sent again."""

    def close(self) -> None:
        """Let go of connections."""


class _Place(msgspec.Struct):
    """What is kept over a restart."""

    settled: int = 0
    file: int = 0
    number: int = 0
    """Up to here it is in the store for good; less than what is true does no harm."""
    checksum: int | None = None
    """Of the other numbers: one that is too high would leave out what was not sent. Older versions wrote none."""

    def sum(self) -> int:
        """Compute the checksum."""
        return zlib.crc32(msgspec.json.encode((self.settled, self.file, self.number)))


class _Confirmed(NamedTuple):
    at: float
    until: Position


class OutsideSink:
    """A store outside as a sink of the journal.

    What is confirmed is kept ``resend_seconds`` longer and sent again after the store was away: a store that is killed
    may lose what it had confirmed last. So everything arrives at least once, and some of it twice.
    """

    wants_replay: ClassVar[bool] = False  # it reads the journal's files itself
    is_remote: ClassVar[bool] = True  # its turn lasts as long as someone else takes to answer

    def __init__(
        self,
        name: str,
        sender: Sender,
        journal: JournalFiles,
        place: Path,
        *,
        resend_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """``place`` is a file in which it is kept how far this sink has come; its folder must exist."""
        self._name = name
        self._sender = sender
        self._backlog = Backlog(journal)
        self._place = place
        self._resend_seconds = resend_seconds
        self._monotonic = monotonic
        self._uniform = uniform
        kept = _read_place(place)
        self._settled = kept.settled
        self._cursor = max(Position(kept.file, kept.number), Position(kept.settled, 0))
        self._kept_from = self._cursor
        self._reached = self._cursor
        self._confirmed: deque[_Confirmed] = deque()
        self._answered_at: float | None = None
        self._is_away = False
        self._failures = 0
        self._rewinds = 0
        self._not_before = 0.0
        self._noted = self._cursor
        self._noted_at = -math.inf
        self._error: str | None = None
        self._error_at: float | None = None
        self.sent_values = 0
        self.refused_values = 0
        """Since the start: what the store will never take."""

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def settled(self) -> int:
        """The first of the journal's files that is still needed."""
        return self._settled

    def take(self, batch: Batch, file: int) -> None:
        """Keep a batch at hand."""
        self._backlog.take(batch, file)

    def tend(self, now: float, open_file: int) -> None:
        """Send for a while. Blocking for as long as the store takes to answer; never raises for its sake."""
        self._backlog.count_older(self._cursor, open_file)
        until = self._monotonic() + _TURN_SECONDS
        while self._not_before <= (began := self._monotonic()) < until:
            try:
                batches, following = self._gather(open_file)
                if not batches:
                    break
                sent = self._sender.send(batches)
            except (Failed, OSError) as error:
                self._has_failed(error, now)
                break
            self._has_answered(sent, following, began, now)
        self._settle(open_file)

    def health(self) -> SinkHealth:
        """Tell how far behind it is, and why."""
        waiting = self._backlog.waiting(self._cursor)
        return SinkHealth(
            name=self._name,
            state="failing" if self._is_away else "behind" if waiting > _REQUEST_BATCHES else "ok",
            waiting_batches=waiting,
            last_error=self._error,
            last_error_at=self._error_at,
        )

    def close(self) -> None:
        """Let go of connections; what was not settled is sent again after the next start."""
        self._sender.close()

    def _gather(self, open_file: int) -> tuple[list[Batch], Position]:
        batches: list[Batch] = []
        values = 0
        position = self._cursor
        while values < _REQUEST_VALUES and len(batches) < _REQUEST_BATCHES:
            found = self._backlog.at(position, open_file)
            if found is None:
                break
            batch, position = found
            batches.append(batch)
            values += batch.devices.values.size + batch.hosts.values.size
        return batches, position

    def _has_failed(self, error: Failed | OSError, now: float) -> None:
        bound = min(_FIRST_WAIT_SECONDS * 2 ** min(self._failures, 16), _LONGEST_WAIT_SECONDS)
        self._not_before = self._monotonic() + max(self._uniform(0.0, bound), bound / 10)
        self._failures += 1
        self._error = str(error)
        self._error_at = now
        if not self._is_away:
            _log.warning(
                "history: cannot write to %s; keeping samples here and retrying: %s", self._name, error
            )
        self._is_away = True

    def _has_answered(self, sent: Sent, following: Position, began: float, now: float) -> None:
        self.sent_values += sent.values
        if sent.refused_values and following > self._reached:  # else it had taken them before
            self.refused_values += sent.refused_values
            self._error = (
                f"{self._sender.place} refused {sent.refused_values} values for good: {sent.refusal}"
            )
            self._error_at = now
            _log.warning("history: %s", self._error)
        was_elsewhere = (
            sent.is_new_line and self._answered_at is not None and began > self._answered_at + _PAUSE_SECONDS
        )
        if (self._is_away or was_elsewhere) and self._confirmed and self._rewinds < _MAX_REWINDS:
            # It may have been killed and have lost the last of what it had confirmed.
            _log.info("history: %s is back; sending the last confirmed samples again", self._name)
            self._rewinds += 1
            self._confirmed.clear()
            self._cursor = self._kept_from
        else:
            self._cursor = following
            self._reached = max(self._reached, following)
            self._confirmed.append(_Confirmed(self._monotonic(), following))
        self._is_away = False
        self._failures = 0
        self._answered_at = self._monotonic()

    def _settle(self, open_file: int) -> None:
        """Move on behind what has been confirmed for long enough by a store that still answered after that time."""
        if self._answered_at is None:
            return
        while self._confirmed and self._confirmed[0].at + self._resend_seconds <= self._answered_at:
            self._kept_from = self._confirmed.popleft().until
            self._rewinds = 0
        self._backlog.forget(self._kept_from)
        settled = self._backlog.first_file(self._kept_from, open_file)
        is_due = self._monotonic() >= self._noted_at + _NOTE_SECONDS
        if settled > self._settled or (is_due and self._kept_from > self._noted):
            place = _Place(max(settled, self._settled), *self._kept_from)
            try:
                place.checksum = place.sum()
                write_whole(self._place, msgspec.json.encode(place))
            except (
                OSError
            ) as error:  # after a restart it then looks for files that are gone, and goes on behind them
                _log.warning("history: cannot write %s: %s", self._place, error.strerror)
            self._settled, self._noted, self._noted_at = place.settled, self._kept_from, self._monotonic()


def _read_place(place: Path) -> _Place:
    """Read how far it had come; nothing readable means to begin with the oldest, which does no harm."""
    try:
        kept = msgspec.json.decode(place.read_bytes(), type=_Place)
        if kept.checksum not in (None, kept.sum()):
            raise msgspec.DecodeError("its checksum is wrong")  # noqa: TRY301
    except FileNotFoundError:
        return _Place()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        _log.warning("history: cannot read %s; sending the whole journal again: %s", place, error)
        return _Place()
    return kept
