# ruff: noqa: S608 - SQL is put together of names in this file only
"""Questions about use: what is in files and what is still in memory, as one."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpuherd.history.batch import USE_MEASURES, Floats, SessionKey
from gpuherd.history.settings import EarlierAverages
from gpuherd.history.tables.engine import Columns
from gpuherd.history.tables.tables import Part
from gpuherd.history.usage.answers import (
    BookedSpan,
    BookedUse,
    Device,
    Key,
    MovingMeans,
    Stay,
    Stays,
    UseFilter,
    UseRow,
    UserSpan,
    UseSteps,
    UseSums,
    UseTable,
)
from gpuherd.history.usage.averages import DAY, REACH, TWO_HOURS, WEEK, moving_mean, weights
from gpuherd.history.usage.book import OpenUse, UsageBook
from gpuherd.history.usage.booked import Presence, booked_use
from gpuherd.history.usage.counting import JOULES
from gpuherd.history.usage.rows import COMMANDS, KEY_COLUMNS
from gpuherd.history.usage.slots import HOUR_SECONDS, SLOT_SECONDS, ceiled, floored
from gpuherd.history.usage.table_rows import (
    MAX_ROWS,
    MAX_USERS,
    SUMS,
    TOTALS,
    KeyPlaces,
    UsedKeys,
    key_places,
    largest_users,
    table_rows,
)
from gpuherd.history.usage.view import KeysOf, UseView, objects
from gpuherd.history.usage.watching import Watching, watched_slots
from gpuherd.model.errors import Failed
from gpuherd.model.history import UsageKey
from gpuherd.model.people import person_key

__all__ = [
    "BookedSpan",
    "BookedUse",
    "Device",
    "Key",
    "KeysOf",
    "MovingMeans",
    "Stay",
    "Stays",
    "UsageReader",
    "UseFilter",
    "UseRow",
    "UseSteps",
    "UseSums",
    "UseTable",
    "UserSpan",
    "moving_mean",
]

DEADLINE_SECONDS = 10.0
MAX_STAYS = 250_000
EVERYTHING = UseFilter()

_PARTS = ", ".join(f"sum({name} * part) AS {name}" for name in USE_MEASURES)


class UsageReader:
    """Answers from the book. From any thread, several at a time; blocking; ``Failed`` if there is no answer in time."""

    def __init__(
        self, book: UsageBook, *, herd: Watching | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """``herd`` knows when there was nobody to be seen; without it, only time from the first use on is known."""
        self._book = book
        self._tables = book.tables
        self._herd = herd
        self._clock = clock
        self._view = UseView(book, (lambda: None) if herd is None else herd.begins_at)

    def figures(
        self,
        by: UsageKey,
        start: float,
        end: float,
        *,
        where: UseFilter = EVERYTHING,
        keys_of: KeysOf | None = None,
        limit: int = MAX_ROWS,
        deadline: float = DEADLINE_SECONDS,
    ) -> UseTable:
        """Add up use by a key. ``keys_of``: what users count as; with several keys in each of them, in totals once."""
        places, beyond = self._key_places(start, end, where, keys_of, deadline)
        keyed = UsedKeys.of(by, is_placed=places is not None)
        answers, span = self._view.ask(
            [keyed.rows(limit), *TOTALS],
            start,
            end,
            where,
            arrays={} if places is None else {"key_places": places.table},
            by_days=True,
            deadline=deadline,
        )
        told, totals, counts = (answer.columns for answer in answers)
        rows, total, count = table_rows(told, totals, counts, None if places is None else places.keys)
        named = tuple(dataclasses.replace(row, key=_read_key(row.key, by)) for row in rows)
        omitted = count - len(rows) + beyond
        return UseTable(span.start, span.end, named, total, span.begins_at, answers[0].missing, omitted)

    def over_time(
        self,
        by: UsageKey,
        edges: ArrayLike,
        *,
        where: UseFilter = EVERYTHING,
        keys_of: KeysOf | None = None,
        deadline: float = DEADLINE_SECONDS,
    ) -> UseSteps:
        """Add up use by a key in steps; a slot that a bound cuts is split as if it had been the same throughout."""
        bounds = np.asarray(edges, np.float64)
        if len(bounds) < 2 or not (np.diff(bounds) > 0).all():
            raise ValueError("steps need bounds that grow")
        places, _ = self._key_places(float(bounds[0]), float(bounds[-1]), where, keys_of, deadline)
        keyed = UsedKeys.of(by, is_placed=places is not None)
        by_key = (
            f"SELECT place, any_value(name) AS name, step, {_PARTS} FROM ({keyed.view}) "
            "JOIN pieces USING (slot, slot_seconds) GROUP BY place, step"
        )
        by_step = (
            f"SELECT step, {_PARTS} FROM ({{view}}) JOIN pieces USING (slot, slot_seconds) GROUP BY step"
        )
        arrays = {"pieces": _step_pieces(bounds)}
        if places is not None:
            arrays["key_places"] = places.table
        (found, every), span = self._view.ask(
            [by_key, by_step], float(bounds[0]), float(bounds[-1]), where, arrays=arrays, deadline=deadline
        )
        steps = len(bounds) - 1
        totals = _nothing(1, steps)
        totals[0, every.columns["step"]] = _measures(every.columns)
        numbers, key = np.unique(found.columns["place"], return_inverse=True)
        told = _nothing(len(numbers), steps)
        told[key, found.columns["step"]] = _measures(found.columns)
        names = np.empty(len(numbers), object)
        names[key] = found.columns["name"]
        if places is not None:
            names[:] = [places.keys[number] for number in numbers.tolist()]
        order = np.argsort(-told[:, :, 1].sum(axis=1), kind="stable")
        keys = tuple(_read_key(name, by) for name in names[order].tolist())
        return UseSteps(bounds, keys, told[order], totals[0], span.begins_at, found.missing)

    def stays(
        self,
        start: float,
        end: float,
        *,
        where: UseFilter = EVERYTHING,
        limit: int = 1000,
        ids: Collection[str] | None = None,
        deadline: float = DEADLINE_SECONDS,
    ) -> Stays:
        """List stays in a range, those that were last seen latest first; ``ids``: only these."""
        limit = min(limit, MAX_STAYS)
        keys = ", ".join(f'"{name}"' for name in ("session", *KEY_COLUMNS))
        chosen = "" if ids is None else " WHERE session IN (SELECT id FROM ids)"
        arrays = {} if ids is None else {"ids": {"id": objects(sorted(ids))}}
        sql = (
            f"SELECT {keys}, min(opened_at) AS opened_at, min(first) AS first, max(last) AS last, {SUMS} "
            f"FROM ({{view}}){chosen} GROUP BY {keys} ORDER BY last DESC, session LIMIT {limit + 1:d}"
        )
        (found,), span = self._view.ask(
            [sql], start, end, where, arrays=arrays, by_days=True, deadline=deadline
        )
        columns = {name: column.tolist() for name, column in found.columns.items()}
        measures = np.column_stack([found.columns[name].astype(np.float64) for name in USE_MEASURES])
        count = min(limit, len(columns["session"]))
        commands = self._commands(columns["session"][:count], span.use, deadline)
        now = self._clock()
        stays = []
        for row in range(count):
            key = SessionKey._make(columns[name][row] for name in (*KEY_COLUMNS, "opened_at"))
            stays.append(
                Stay(
                    id=columns["session"][row],
                    key=key,
                    first=columns["first"][row],
                    last=columns["last"][row],
                    is_open=self._book.is_open(key, columns["last"][row], now),
                    sums=UseSums.of(measures[row].tolist()),
                    command=commands.get(columns["session"][row]),
                )
            )
        return Stays(span.start, span.end, tuple(stays), len(columns["session"]) <= limit, found.missing)

    def spans(
        self, devices: Collection[Device], start: float, end: float, *, deadline: float = DEADLINE_SECONDS
    ) -> tuple[UserSpan, ...]:
        """Tell who was on these devices when: stretches without a slot in which they were not seen, by time."""
        sql = (
            'SELECT node_id, uuid, "user", container, job, session, slot, slot_seconds, min(first) AS first, '
            "max(last) AS last, sum(gpu_seconds) AS gpu_seconds FROM ({view}) "
            "GROUP BY ALL ORDER BY session, slot"
        )
        (found,), _ = self._view.ask(
            [sql], start, end, UseFilter(devices=frozenset(devices)), deadline=deadline
        )
        columns = [found.columns[name].tolist() for name in found.columns]
        spans: list[UserSpan] = []
        before: tuple[str, float] | None = None
        for node_id, uuid, user, container, job, session, slot, seconds, first, last, gpu in zip(
            *columns, strict=True
        ):
            if before == (session, slot):
                joined = spans.pop()
                first, gpu = joined.start, gpu + joined.gpu_seconds  # noqa: PLW2901
            spans.append(UserSpan(node_id, uuid, user, container, job, first, last, gpu))
            before = (session, slot + seconds)
        inside = (span for span in spans if span.start < end and span.end >= start)
        return tuple(sorted(inside, key=lambda span: (span.start, span.end)))

    def booked(
        self, spans: Sequence[BookedSpan], *, deadline: float = DEADLINE_SECONDS
    ) -> tuple[BookedUse, ...]:
        """Compare bookings with use, slot by slot; of a slot that a booking has in part, that part of what was used."""
        if not spans:
            return ()
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        devices = frozenset((span.node_id, span.uuid) for span in spans)
        sql = (
            'SELECT node_id, uuid, "user", slot, slot_seconds, min(first) AS first, max(last) AS last, '
            "sum(held_seconds) AS held FROM ({view}) "
            'GROUP BY session, node_id, uuid, "user", slot, slot_seconds'
        )
        (found,), _ = self._view.ask([sql], start, end, UseFilter(devices=devices), deadline=deadline)
        by_device: dict[Device, list[Presence]] = {}
        columns = [column.tolist() for column in found.columns.values()]
        for device, presence in zip(
            zip(*columns[:2], strict=True), zip(*columns[2:], strict=True), strict=True
        ):
            by_device.setdefault(device, []).append(presence)
        return tuple(booked_use(span, by_device.get((span.node_id, span.uuid), [])) for span in spans)

    def averages(
        self,
        now: float,
        *,
        keys_of: KeysOf | None = None,
        earlier: EarlierAverages | None = None,
        deadline: float = DEADLINE_SECONDS,
    ) -> tuple[MovingMeans, ...]:
        """Tell what each user holds now and held lately, most now first.

        ``earlier``: averages with the same time constants, which stand for the time before anything was watched.
        """
        return self._averages(now, keys_of, deadline, earlier)[1]

    def total_averages(self, now: float, *, deadline: float = DEADLINE_SECONDS) -> MovingMeans:
        """Tell what all together hold now and held lately."""
        return self._averages(now, None, deadline)[0]

    def export(self, users: Collection[str], *, deadline: float = DEADLINE_SECONDS) -> tuple[Stay, ...]:
        """Give all that is kept of these users, also under their pseudonyms; ``Failed`` if it is too much for that."""
        where = UseFilter(users=frozenset(users).union(map(self._book.upkeep.pseudonym, users)))
        found = self.stays(0.0, 1e11, where=where, limit=MAX_STAYS, deadline=deadline)
        if not found.is_complete:
            raise Failed(
                f"history: more than {MAX_STAYS:,} sessions; read them from the files of the table usage"
            )
        return found.stays

    # -- inside ------------------------------------------------------------------------------------------------

    def _key_places(
        self, start: float, end: float, where: UseFilter, keys_of: KeysOf | None, deadline: float
    ) -> tuple[KeyPlaces | None, int]:
        """Give what users count as, and how many there are beyond those who are looked at one by one."""
        if keys_of is None:
            return None, 0
        (found,), _ = self._view.ask(
            [largest_users(MAX_USERS)], start, end, where, by_days=True, deadline=deadline
        )
        users = found.columns["name"].tolist()
        people = int(found.columns["people"][0]) if users else 0
        return key_places(users, keys_of), people - len(users)

    def _averages(
        self, now: float, keys_of: KeysOf | None, deadline: float, earlier: EarlierAverages | None = None
    ) -> tuple[MovingMeans, tuple[MovingMeans, ...]]:
        begin = self._view.begins_at()
        start = max(now - REACH * WEEK, now if begin is None else begin)
        slots = _slots(start, max(now, start))
        slot_end = slots["slot"] + slots["slot_seconds"]
        # What is in the slot that is not over fills what there is of it.
        lengths = np.maximum(np.minimum(slot_end, max(now, start)) - slots["slot"], 1.0)
        constants = {"mean_2h": TWO_HOURS, "mean_24h": DAY, "mean_1w": WEEK}
        tables: dict[str, NDArray[Any]] = dict(slots)
        for name, seconds in constants.items():
            tables[name] = weights(slots["slot"], slot_end, now, seconds) / lengths
        sums = ", ".join(f"sum(gpu_seconds * {name}) AS {name}" for name in constants)
        sql = f'SELECT "user", {sums} FROM ({{view}}) JOIN weights USING (slot, slot_seconds) GROUP BY "user"'
        used = "SELECT DISTINCT slot, slot_seconds FROM ({view})"
        (found, used_slots), _ = self._view.ask(
            [sql, used], start, now, UseFilter(), arrays={"weights": tables}, deadline=deadline
        )
        # Of the time in which nothing was watched nothing is known: it does not count as nothing.
        watched = watched_slots(self._herd, start, now, used_slots.columns)
        known = np.array([float(weights(*watched, now, seconds).sum()) for seconds in constants.values()])
        # An average of this kind is all that need be known of the time before it.
        before = now if earlier is None else min(earlier.until, start, now)
        carried = np.exp((before - now) / np.array([*constants.values()])) * (earlier is not None)
        per_known = np.array([1.0, 1.0, *(1.0 / np.maximum(known + carried, 1e-12))])
        of_user = keys_of or (lambda user: (user,))
        sums_by: dict[str | None, Floats] = {}
        total = np.zeros(5)
        columns = found.columns
        for row, user in enumerate(columns["user"].tolist()):
            added = np.array([0.0, 0.0, *(columns[name][row] for name in constants)]) * per_known
            total += added
            for key in of_user(user):
                sums_by[key] = sums_by.get(key, np.zeros(5)) + added
        for stay in self._book.current(now):
            added = np.array([stay.gpus, stay.busy_gpus, 0.0, 0.0, 0.0])
            total += added
            for key in of_user(stay.key.user):
                sums_by[key] = sums_by.get(key, np.zeros(5)) + added
        users = [*columns["user"].tolist(), *(stay.key.user for stay in self._book.current(now))]
        spelled = {person_key(user): user for user in users if user is not None}
        for name, gpus in ({} if earlier is None else earlier.gpus).items():
            added = np.array([0.0, 0.0, *(np.array(gpus) * carried)]) * per_known
            for key in of_user(spelled.get(person_key(name), name)):
                sums_by[key] = sums_by.get(key, np.zeros(5)) + added
        means = [MovingMeans(key, *values.tolist()) for key, values in sums_by.items()]
        means.sort(key=lambda each: (-each.now_gpus, -each.mean_2h, -each.mean_24h, each.key or ""))
        return MovingMeans(None, *total.tolist()), tuple(means)

    def _commands(self, ids: Sequence[str], use: OpenUse, deadline: float) -> dict[str, str]:
        if not ids:
            return {}
        found = self._tables.query(
            "SELECT session, arg_max(command, seen_at) AS command FROM {told} "
            "WHERE session IN (SELECT id FROM ids) GROUP BY session",
            {"told": Part(COMMANDS.name)},
            arrays={"ids": {"id": objects(ids)}},
            deadline_seconds=deadline,
        ).columns
        commands = dict(zip(found["session"].tolist(), found["command"].tolist(), strict=True))
        return commands | {key.id: command for key, (command, _) in use.commands.items()}


def _slots(start: float, end: float) -> dict[str, NDArray[np.int64]]:
    """List all slots in a range, short and long ones."""
    short = np.arange(floored(start), ceiled(end), SLOT_SECONDS).astype(np.int64)
    long = np.arange(floored(start, HOUR_SECONDS), ceiled(end, HOUR_SECONDS), HOUR_SECONDS).astype(np.int64)
    lengths = np.repeat(np.array([SLOT_SECONDS, HOUR_SECONDS]), [len(short), len(long)])
    return {"slot": np.concatenate([short, long]), "slot_seconds": lengths}


def _step_pieces(bounds: Floats) -> Columns:
    """Say of each slot which part of it is in which step."""
    slots = _slots(float(bounds[0]), float(bounds[-1]))
    start, seconds = slots["slot"].astype(np.float64), slots["slot_seconds"]
    first = np.maximum(np.searchsorted(bounds, start, "right") - 1, 0)
    last = np.minimum(np.searchsorted(bounds, start + seconds, "left") - 1, len(bounds) - 2)
    counts = np.maximum(last - first + 1, 0)
    source = np.repeat(np.arange(len(start)), counts)
    step = first[source] + np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    inside = np.minimum(start[source] + seconds[source], bounds[step + 1]) - np.maximum(
        start[source], bounds[step]
    )
    return {
        "slot": slots["slot"][source],
        "slot_seconds": seconds[source],
        "step": step,
        "part": np.maximum(inside, 0.0) / seconds[source],
    }


def _measures(columns: Columns) -> Floats:
    return np.column_stack([columns[name].astype(np.float64) for name in USE_MEASURES])


def _nothing(keys: int, steps: int) -> Floats:
    nothing = np.zeros((keys, steps, len(USE_MEASURES)))
    nothing[:, :, JOULES] = np.nan
    return nothing


def _read_key(key: Any, by: UsageKey) -> Key:
    if by == "device" and isinstance(key, str):
        node_id, uuid = key.split("\0", 1)
        return node_id, uuid
    return None if key is None else str(key)
