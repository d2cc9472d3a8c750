"""Keeps what was counted: in memory as long as the journal has it, then in files."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Batch, Floats, SessionKey
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SinkHealth
from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.history.tables.writing import Coded, Sortable
from gpuherd.history.usage.notes import HoleNote, aged_holes, forgotten_holes, read_notes
from gpuherd.history.usage.paces import Paces
from gpuherd.history.usage.pages import Page, Rows, joined_rows
from gpuherd.history.usage.register import Register
from gpuherd.history.usage.rows import (
    COMMANDS,
    DAY_SECONDS,
    DAYS,
    SHAPES,
    STANDING,
    USAGE,
    coded,
    key_columns,
    row_columns,
)
from gpuherd.history.usage.standing import NAMES_SECONDS, Standing, kept_stays
from gpuherd.history.usage.upkeep import Upkeep
from gpuherd.model.errors import Failed

__all__ = ["SEAL_SECONDS", "OpenUse", "UsageBook"]

SEAL_SECONDS = 900.0
"""How long use stays in memory and the journal's files are kept for it."""
MAX_ROWS = 400_000
"""Rows in memory before they are written away earlier than that."""
NOW_SECONDS = 60.0
"""A node whose last sample is older than this and than a few of its intervals says nothing about now."""
NAMES_EVERY_SECONDS = 600.0
NAME = "usage"


@dataclass(frozen=True, slots=True)
class OpenUse:
    """What is in memory only, and the files beside it, at one moment."""

    rows: Rows
    commands: dict[SessionKey, tuple[str, float]]
    segments: tuple[Segment, ...]
    days: tuple[Segment, ...]
    """Those that hold the same by days."""


@dataclass(frozen=True, slots=True)
class CurrentStay:
    """Someone on a device at the last sample of its node."""

    key: SessionKey
    gpus: float
    busy_gpus: float


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where counting stood at the end of a file of the journal, as it was in memory."""

    seen: dict[str, float]
    holes: dict[str, tuple[HoleNote, ...]]
    keys: list[SessionKey | None]
    last: Floats

    def standing(self) -> Standing:
        count = min(len(self.keys), len(self.last))
        numbers = np.flatnonzero(self.last[:count] > -np.inf).tolist()
        stays = {
            key: float(self.last[number]) for number in numbers if (key := self.keys[number]) is not None
        }
        return Standing(self.seen, self.holes, stays)

    def forgetting(self, users: Collection[str]) -> _Mark:
        holes = {node_id: forgotten_holes(each, users) for node_id, each in self.holes.items()}
        keys = [None if key is None or key.user in users else key for key in self.keys]
        return _Mark(self.seen, holes, keys, self.last)


class UsageBook:
    """The sink of use, and the ledger that counting goes on from.

    ``take``, ``standing`` and ``release`` are called in the writer's thread, ``tend`` in another, questions in any.
    """

    def __init__(
        self,
        tables: Tables,
        settings: HistorySettings,
        *,
        pseudonym: Callable[[str], str],
        stay_id: Callable[[str], str] | None = None,
        session_gap_seconds: float = 300.0,
        seal_seconds: float = SEAL_SECONDS,
    ) -> None:
        """``tables`` have ``rows.SHAPES``; ``pseudonym`` gives a user's pseudonym, the same one for ever."""
        self.register = Register()
        self.taken = 0
        self.tables = tables
        self._gap = session_gap_seconds
        self._seal_seconds = seal_seconds
        self._lock = threading.Lock()
        """Of all below: held for moments, never over work on the disk."""
        self._pages: dict[int, Page] = {}
        self._marks: dict[int, _Mark] = {}
        self._file = -1
        self._seen: dict[str, float] = {}
        self._paces = Paces(self._seen)
        self._holes: dict[str, tuple[HoleNote, ...]] = {}
        self._last = np.full(256, -np.inf)
        self._gpus = np.zeros((256, 2))
        self._erased: dict[str, int] = {}
        """Users to be forgotten in the journal's files before a number."""
        self._unapplied: frozenset[str] = frozenset()
        """Of these, those of whom the writer's thread does not know yet."""
        self.names_seconds = min(NAMES_SECONDS, DAY_SECONDS * settings.pseudonymise_after_days)
        """For so long it is kept who was beside holes and on nodes that are gone."""
        self._names_at = -np.inf
        self._changing = threading.Lock()
        """Of whoever replaces files."""
        self._kept = Standing()
        """What the files say of where counting stood."""
        self._sealed_at = -np.inf
        self._last_error: tuple[str, float] | None = None
        self.upkeep = Upkeep(tables, settings, pseudonym, stay_id)
        self._recall()

    # -- sink --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name, for messages and health."""
        return NAME

    @property
    def settled(self) -> int:
        """The first of the journal's files that it still needs."""
        return self.tables.catalogue.settled(NAME)

    def take(self, batch: Batch, file: int) -> None:
        """Take what the journal holds safely."""
        uses = batch.uses
        numbers = uses.numbers
        is_replay = numbers is None
        if numbers is None:
            numbers = np.array([self.register.number(key) for key in uses.keys], np.int64)
        with self._lock:
            if file > self._file:
                if self._file in self._pages:
                    self._marks[self._file] = self._mark()
                self._file = file
            page = self._pages.setdefault(file, Page())
            for node_id, time in batch.seen:
                self._paces.note(node_id, time)
            erased = {user for user, before in self._erased.items() if file < before}
            for node_id, holes in read_notes(batch.notes).items():
                self._holes[node_id] = forgotten_holes(holes, erased) if erased else holes
            if not len(uses):
                return
            self.taken += not is_replay
            self._grow(self.register.capacity)
            page.add(uses, numbers, self.register.capacity)
            number = numbers[uses.session]
            np.maximum.at(self._last, number, uses.last)
            if is_replay and erased:
                page.rename(_unnamed({key for key in uses.keys if key.user in erased}))
                self._end_stays(erased)
            seconds = uses.measures[:, 0]
            is_told = seconds > 0
            shares = uses.measures[is_told, 1:3] / seconds[is_told, None]
            self._gpus[number] = 0.0
            self._gpus[number[is_told]] = shares

    def tend(self, now: float, open_file: int) -> None:
        """Write away what the journal's complete files hold, and look after what is old."""
        with self._changing:
            try:
                self._seal_if_due(now, open_file)
                self._forget_names(now)
                self.upkeep.tend(now)
                # For all tables: there is a book of usage wherever samples are kept.
                self.tables.tend(now)
            except Failed as error:
                self._last_error = (str(error), now)
                raise
            self._last_error = None

    def health(self) -> SinkHealth:
        """Tell how it is doing."""
        error = self._last_error
        return SinkHealth(
            name=NAME,
            state="ok" if error is None else "failing",
            waiting_batches=len(self._pages),
            last_error=None if error is None else error[0],
            last_error_at=None if error is None else error[1],
            size_bytes=self.tables.catalogue.size_bytes(shape.name for shape in SHAPES),
            oldest=self.tables.catalogue.oldest([USAGE.name]),
            unreadable=self.tables.catalogue.unreadable([USAGE.name]),
            damaged_files=self.tables.catalogue.damaged_files(shape.name for shape in SHAPES),
        )

    def close(self) -> None:
        """Nothing is held that the journal does not have."""

    # -- ledger ------------------------------------------------------------------------------------------------

    def standing(self) -> Standing:
        """Tell where counting stands after all that was taken."""
        with self._lock:
            mark = self._mark()
        return mark.standing()

    def apply_erasures(self) -> bool:
        """Forget open stays of users who have been erased; if so, counting is to go on from ``standing`` anew."""
        with self._lock:
            users, self._unapplied = self._unapplied, frozenset()
            # Until now, what they had begun before was counted on.
            if users:
                self._forget(users)
        return bool(users)

    def release(self, in_use: Collection[int]) -> None:
        """Take back all numbers but these and those that stays in memory still go by."""
        with self._lock:
            kept = set(in_use)
            for page in self._pages.values():
                kept.update(page.numbers.tolist())
            numbers = [n for n, key in enumerate(self.register.keys) if key is not None and n not in kept]
            self._last[[n for n in numbers if n < len(self._last)]] = -np.inf
            self.register.retire(numbers)

    # -- for those who ask -------------------------------------------------------------------------------------

    def open_use(self) -> OpenUse:
        """Give what is in memory, and the files that hold all the rest."""
        with self._lock:
            # The list of files says itself what it holds of the journal; pages go only after it says so.
            listed = self.tables.catalogue.snapshot
            settled = listed.manifest.settled.get(NAME, 0)
            pages = [page for file, page in self._pages.items() if file >= settled]
            rows = joined_rows([page.rows() for page in pages if len(page)])
            commands: dict[SessionKey, tuple[str, float]] = {}
            for page in pages:
                commands.update(page.commands)
        return OpenUse(rows, commands, listed.segments(USAGE.name), listed.segments(DAYS.name))

    def is_current(self, use: OpenUse) -> bool:
        """Tell whether the files are still those."""
        listed = self.tables.catalogue.snapshot
        return (use.segments, use.days) == (listed.segments(USAGE.name), listed.segments(DAYS.name))

    def current(self, now: float) -> list[CurrentStay]:
        """Give who is on a device: at the last sample of its node, if that says something about now."""
        with self._lock:
            mark, gpus = self._mark(), self._gpus.copy()
            seen = {
                node_id: time
                for node_id, time in mark.seen.items()
                if self._paces.is_heard(node_id, now, NOW_SECONDS)
            }
        stays = []
        for number in np.flatnonzero(mark.last[: len(mark.keys)] > -np.inf).tolist():
            key = mark.keys[number]
            if key is not None and mark.last[number] == seen.get(key.node_id):
                stays.append(CurrentStay(key, float(gpus[number, 0]), float(gpus[number, 1])))
        return stays

    def is_open(self, key: SessionKey, last: float, now: float) -> bool:
        """Tell whether a stay that was last seen then may still go on: not on a node that is not heard of any more."""
        with self._lock:
            is_heard = self._paces.is_heard(key.node_id, now, self._gap)
            return is_heard and self._seen[key.node_id] - last <= self._gap

    def erase(self, users: Collection[str]) -> None:
        """Forget whose the use of these users was: it becomes an unknown user's, for good.

        What they do from now on is counted as theirs. Blocking; ``Failed`` if files could not be replaced: then some
        may have been and some not; it is to be called again.
        """
        wanted = frozenset(users)
        with self._changing:
            with self._lock:
                # The journal has their names until its files are written away, here or after a crash.
                self._erased |= dict.fromkeys(wanted, self._file + 1)
                self._unapplied |= wanted
                self._forget(wanted)
            self._replace_standing(self._kept.forgetting(wanted))
            self.upkeep.erase(wanted)

    # -- inside ------------------------------------------------------------------------------------------------

    def _grow(self, capacity: int) -> None:
        missing = capacity - len(self._last)
        if missing > 0:
            more = missing + capacity // 2
            self._last = np.concatenate([self._last, np.full(more, -np.inf)])
            self._gpus = np.concatenate([self._gpus, np.zeros((more, 2))])

    def _forget(self, users: Collection[str]) -> None:
        """Forget users in what is in memory only; with the lock."""
        for page in self._pages.values():
            page.rename(_unnamed({key for key in page.rows().keys if key.user in users}))
        for file, mark in self._marks.items():
            self._marks[file] = mark.forgetting(users)
        self._holes = {node_id: forgotten_holes(each, users) for node_id, each in self._holes.items()}
        self._end_stays(users)

    def _end_stays(self, users: Collection[str]) -> None:
        keys = enumerate(self.register.keys[: len(self._last)])
        self._last[[number for number, key in keys if key is not None and key.user in users]] = -np.inf

    def _forget_names(self, now: float) -> None:
        """Forget who was beside holes and on nodes that are gone, and marks of the erased that have done their work."""
        trusted = self.tables.trusted(now)
        if trusted is None or 0 <= trusted - self._names_at < NAMES_EVERY_SECONDS:
            return
        self._names_at = trusted
        since = trusted - self.names_seconds
        with self._lock:
            self._last[self._last < since] = -np.inf
            self._holes = {node_id: aged_holes(each, since) for node_id, each in self._holes.items()}
            settled = self.settled
            marks = {user: file for user, file in self._erased.items() if file > settled}
            is_changed = marks != self._erased
            self._erased = marks
        kept = self._kept.since(since)
        if is_changed or kept != self._kept:
            self._replace_standing(kept)

    def _replace_standing(self, standing: Standing) -> None:
        written = self._write_standing(standing)
        self.tables.commit(add=[written], remove=self.tables.segments(STANDING.name))
        self._kept = standing

    def _mark(self) -> _Mark:
        return _Mark(dict(self._seen), dict(self._holes), list(self.register.keys), self._last.copy())

    def _seal_if_due(self, now: float, open_file: int) -> None:
        with self._lock:
            files = [file for file in self._pages if file < open_file]
            rows = sum(len(self._pages[file]) for file in files)
            due = now - self._sealed_at >= self._seal_seconds or now < self._sealed_at or rows > MAX_ROWS
            if not files or not due:
                return
            pages = [self._pages[file] for file in files]
            sealed = joined_rows([page.rows() for page in pages])
            commands = {key: told for page in pages for key, told in page.commands.items()}
            lengths = [len(page) for page in pages]
            # Where it stood after the last of these files: noted when the next one began, or it is the last.
            mark = self._marks.get(max(files)) or self._mark()
        trusted = self.tables.trusted(now)
        standing = mark.standing()
        if trusted is not None:
            standing = standing.since(trusted - self.names_seconds)
        kept = Standing(standing.seen, standing.holes, kept_stays(standing, self._gap))
        self._erased = {user: file for user, file in self._erased.items() if file > open_file}
        added: list[Segment | None] = []
        try:
            added += self._write_rows(sealed)
            added += self._write_commands(commands)
            added.append(self._write_standing(kept, open_file))
            if lengths != [len(page) for page in pages]:
                raise Failed("history: usage was counted from a journal file that was already complete")
            self.tables.commit(
                add=added, remove=self.tables.segments(STANDING.name), settled={NAME: open_file}
            )
            added.clear()
            with self._lock:
                for file in files:
                    del self._pages[file]
                    self._marks.pop(file, None)
        finally:
            self.tables.discard(*added)
        self._kept = kept
        self._sealed_at = now

    def _write_rows(self, rows: Rows) -> list[Segment | None]:
        columns = row_columns(rows)
        day = rows.slot // DAY_SECONDS
        return [
            self.tables.write(USAGE.name, _chosen(columns, day == each), partition=each * DAY_SECONDS)
            for each in np.unique(day).tolist()
        ]

    def _write_commands(self, commands: dict[SessionKey, tuple[str, float]]) -> list[Segment | None]:
        if not commands:
            return []
        seen_at = np.array([seen for _, seen in commands.values()])
        columns: dict[str, Sortable] = {
            "session": coded([key.id for key in commands]),
            "user": coded([key.user for key in commands]),
            "command": coded([command for command, _ in commands.values()]),
            "seen_at": seen_at,
        }
        day = (seen_at // DAY_SECONDS).astype(np.int64)
        return [
            self.tables.write(COMMANDS.name, _chosen(columns, day == each), partition=each * DAY_SECONDS)
            for each in np.unique(day).tolist()
        ]

    def _write_standing(self, standing: Standing, settled: int | None = None) -> Segment | None:
        nodes, stays, erased = list(standing.seen), list(standing.stays), list(self._erased)
        notes = [
            base64.b64encode(msgspec.msgpack.encode(standing.holes[node])).decode()
            if node in standing.holes
            else None
            for node in nodes
        ]
        padding = [SessionKey("", "", "", None, None, None, np.nan)] * len(nodes)
        marks = [SessionKey("", "", "", user, None, None, np.nan) for user in erased]
        columns = key_columns([*padding, *stays, *marks])
        columns["node_id"] = coded([*nodes, *(stay.node_id for stay in stays), *([""] * len(erased))])
        columns["notes"] = coded([*notes, *([None] * (len(stays) + len(erased)))])
        files = [float(file) for file in self._erased.values()]
        columns["last"] = np.array([*([np.nan] * len(nodes)), *standing.stays.values(), *files])
        columns["seen"] = np.array(
            [*standing.seen.values(), *standing.stays.values(), *([0.0] * len(erased))]
        )
        sink = None if settled is None else {NAME: settled}
        return self.tables.write(STANDING.name, columns, partition=0, settled=sink)

    def _recall(self) -> None:
        """Read where counting stood when something was last written away."""
        answer = self.tables.query("SELECT * FROM {standing}", {"standing": Part(STANDING.name)})
        columns = {name: column.tolist() for name, column in answer.columns.items()}
        stays: dict[SessionKey, float] = {}
        for place, node_id in enumerate(columns["node_id"]):
            uuid, user, last = columns["uuid"][place], columns["user"][place], columns["last"][place]
            if uuid:
                key = SessionKey(
                    node_id,
                    uuid,
                    columns["type"][place],
                    user,
                    columns["container"][place],
                    columns["job"][place],
                    columns["opened_at"][place],
                )
                stays[key] = last
            elif node_id:
                self._seen[node_id] = columns["seen"][place]
                if columns["notes"][place] is not None:
                    notes = base64.b64decode(columns["notes"][place])
                    self._holes[node_id] = msgspec.msgpack.decode(notes, type=tuple[HoleNote, ...])
            elif user is not None:
                self._erased[user] = int(last)
        for key, last in stays.items():
            number = self.register.number(key)
            self._grow(self.register.capacity)
            self._last[number] = last
        self._kept = Standing(dict(self._seen), dict(self._holes), stays)


def _unnamed(keys: Iterable[SessionKey]) -> dict[SessionKey, SessionKey]:
    return {key: key._replace(user=None, container=None, job=None) for key in keys}


def _chosen(columns: Mapping[str, Sortable], rows: NDArray[np.bool_]) -> dict[str, Sortable]:
    return {
        name: Coded(column.codes[rows], column.values) if isinstance(column, Coded) else column[rows]
        for name, column in columns.items()
    }
