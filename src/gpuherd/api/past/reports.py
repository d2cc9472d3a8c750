"""Reports of use, worked out of what is remembered. Everything here blocks: it runs in the threads of questions."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuherd.api.history_service import UsageFilter
from gpuherd.api.past.asked_users import raw_filter
from gpuherd.api.past.booked import BookedDevices, Key, by_key, summed
from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.figures import Prices, missing_before, missing_between, no_figures
from gpuherd.api.past.ranges import Range
from gpuherd.api.past.sources import Memory
from gpuherd.history.batch import USE_MEASURES, Floats
from gpuherd.history.herd.reader import Capacity
from gpuherd.history.usage.asking import KeysOf, Stay, Stays, UseFilter, UseTable
from gpuherd.model.history import (
    BookingUsage,
    UsageFigures,
    UsageKey,
    UsageOverTime,
    UsageReport,
    UsageRow,
    UsageSession,
    UsageSessions,
    UsageStep,
)

__all__ = ["Reports"]

_GPU = USE_MEASURES.index("gpu_seconds")
_BUSY = USE_MEASURES.index("busy_seconds")
HOUR = 3600.0
LATEST = 1e11
"""Later than anything that is remembered."""


class Reports:
    """Who used what, in the words of one viewer."""

    def __init__(self, memory: Memory, prices: Prices) -> None:
        self._memory = memory
        self._prices = prices
        # The id of a stay is made of whose it is, among other things: without a key, names could be tried out on it.
        self._id_key = secrets.token_bytes(32)

    def usage(
        self,
        face: PastFace,
        span: Range,
        *,
        by: UsageKey,
        only: UsageFilter | None = None,
        limit: int,
        booked: BookedDevices | None = None,
    ) -> UsageReport:
        """Give who or what used how much; ``booked``: the bookings in the range, none if they cannot be had."""
        only = only or UsageFilter()
        reader = self._memory.usage
        where = raw_filter(reader, face, span, only)
        table = reader.figures(by, span.start, span.end, where=where, keys_of=_keys_of(face, by))
        bookings: dict[Key, BookingUsage] = {}
        all_booked = None
        if booked is not None and by != "job":
            uses = booked.ask(reader)
            bookings, all_booked = by_key(by, face, booked.holders, uses), summed(uses)
        rows = self._rows(face, by, table, bookings)
        capacity = self._capacity(table, only)
        return UsageReport(
            start=table.start,
            end=table.end,
            by=by,
            rows=tuple(rows[:limit]),
            omitted_rows=max(0, len(rows) - limit) + table.omitted_rows,
            totals=self._prices.figures(table.totals),
            bookings=all_booked,
            capacity_hours=capacity.seen_hours,
            free_hours=capacity.free_hours,
            currency=self._prices.currency,
            missing=missing_before(table.missing, table.begins_at, table.start, table.end),
        )

    def totals(self, span: Range) -> UsageFigures | None:
        """Give the use of all in a range; none if nothing is remembered of it."""
        table = self._memory.usage.figures("type", span.start, span.end)
        if table.begins_at is None or table.begins_at >= span.end:
            return None
        return self._prices.figures(table.totals)

    def over_time(
        self,
        face: PastFace,
        span: Range,
        edges: Sequence[float],
        *,
        by: UsageKey,
        step: UsageStep,
        top: int,
        only: UsageFilter | None = None,
    ) -> UsageOverTime:
        """Give the largest, step by step between the edges, and all others together."""
        reader = self._memory.usage
        where = raw_filter(reader, face, Range(edges[0], edges[-1]), only or UsageFilter())
        keys_of = _keys_of(face, by)
        # First who is told at all: a number for each step of everyone would be more than there is room for.
        table = reader.figures(by, edges[0], edges[-1], where=where, keys_of=keys_of)
        keys = [row.key for row in table.rows[:top]]
        if keys_of is not None:
            steps = reader.over_time(by, edges, where=where, keys_of=_only(keys_of, frozenset(keys)))
            totals = steps.totals
        else:
            steps = reader.over_time(by, edges, where=_narrowed(where, by, keys))
            totals = reader.over_time("type", edges, where=where).totals
        places = {key: place for place, key in enumerate(steps.keys)}
        order = [places[key] for key in keys if key in places]
        gpu, busy = steps.measures[:, :, _GPU] / HOUR, steps.measures[:, :, _BUSY] / HOUR
        # Someone who is in two groups is in both of their rows, so the rows together may be more than all.
        others_gpu = np.maximum(totals[:, _GPU] / HOUR - gpu[order].sum(axis=0), 0.0)
        others_busy = np.maximum(totals[:, _BUSY] / HOUR - busy[order].sum(axis=0), 0.0)
        is_known = (self._memory.herd.watched(edges) > 0) | (totals[:, _GPU] > 0)
        return UsageOverTime(
            start=edges[0],
            end=min(edges[-1], span.end),
            by=by,
            step=step,
            times=list(edges[:-1]),
            keys=[_text_key(steps.keys[place]) for place in order],
            labels=[_label(face, by, steps.keys[place]) for place in order],
            gpu_hours=[_rounded(gpu[place]) for place in order],
            busy_hours=[_rounded(busy[place]) for place in order],
            others_gpu_hours=_rounded(others_gpu),
            others_busy_hours=_rounded(others_busy),
            missing=(
                *missing_before(steps.missing, steps.begins_at, edges[0], span.end),
                *missing_between(edges, is_known.tolist(), steps.begins_at, span.end),
            ),
        )

    def sessions(self, face: PastFace, span: Range, *, only: UsageFilter, limit: int) -> UsageSessions:
        """Give stays on devices, the latest first."""
        reader = self._memory.usage
        found = reader.stays(span.start, span.end, where=raw_filter(reader, face, span, only), limit=limit)
        stays = self._with_ends(found)
        return UsageSessions(
            start=found.start,
            end=found.end,
            sessions=tuple(self._session(face, stay) for stay in stays),
            is_complete=found.is_complete,
            missing=found.missing,
        )

    def _with_ends(self, found: Stays) -> list[Stay]:
        """Give stays with their own ends, also those that went on after the range."""
        cut = frozenset(stay.id for stay in found.stays if stay.last >= found.end - HOUR)
        if not cut:
            return list(found.stays)
        later = self._memory.usage.stays(found.end, LATEST, limit=len(cut), ids=cut)
        ends = {stay.id: stay for stay in later.stays}
        return [
            replace(stay, last=end.last, is_open=end.is_open) if (end := ends.get(stay.id)) else stay
            for stay in found.stays
        ]

    def _session(self, face: PastFace, stay: Stay) -> UsageSession:
        """Show a stay. What the public sees is named field by field: what comes later stays hidden by itself."""
        key = stay.key
        shown = UsageSession(
            id=self._public_id(stay.id) if face.is_public else stay.id,
            node_id=key.node_id,
            uuid=key.uuid,
            node=face.node(key.node_id),
            device=face.device(key.node_id, key.uuid) if face.has_device(key.node_id, key.uuid) else None,
            type=key.type,
            user=face.user(key.user),
            started_at=key.opened_at,
            ended_at=None if stay.is_open else stay.last,
            last_seen_at=stay.last,
            figures=self._prices.of(stay.sums, {key.type: stay.sums}),
        )
        if face.is_public:
            return shown
        return UsageSession(
            **{name: getattr(shown, name) for name in shown.__struct_fields__ if name not in _NAMES},
            container=key.container,
            job=key.job,
            command=face.command(key.user, stay.command),
        )

    def _public_id(self, stay_id: str) -> str:
        return hashlib.blake2b(stay_id.encode(), key=self._id_key, digest_size=9).hexdigest()

    def _rows(
        self, face: PastFace, by: UsageKey, table: UseTable, bookings: Mapping[Key, BookingUsage]
    ) -> list[UsageRow]:
        rows = [
            UsageRow(
                key=_text_key(row.key),
                label=_label(face, by, row.key),
                figures=self._prices.figures(row),
                users=1 if by == "user" else row.users,
                devices=row.devices,
                sessions=row.sessions,
                bookings=bookings.get(row.key),
            )
            for row in table.rows
        ]
        # Who has booked and never come is in the report, too.
        used, nothing = {row.key for row in table.rows}, no_figures(self._prices)
        absent = [
            UsageRow(
                key=_text_key(key),
                label=_label(face, by, key),
                figures=nothing,
                users=0,
                devices=0,
                sessions=0,
                bookings=booking,
            )
            for key, booking in bookings.items()
            if key not in used
        ]
        absent.sort(key=lambda row: -(row.bookings.booked_hours if row.bookings else 0.0))
        return rows + absent

    def _capacity(self, table: UseTable, only: UsageFilter) -> Capacity:
        """Tell what there was; of the whole herd or a type, as nothing else is counted."""
        if any((only.user, only.group, only.node, only.job, only.device)):
            return Capacity(None, None)
        return self._memory.herd.capacity(table.start, table.end, type=only.type)


_NAMES = frozenset({"container", "job", "command"})
_UNKNOWN = {
    "user": "unknown",
    "group": "no group",
    "node": "unknown",
    "type": "unknown",
    "job": "no job",
    "device": "unknown",
}


def _keys_of(face: PastFace, by: UsageKey) -> KeysOf | None:
    if by == "user":
        return face.users
    return face.groups if by == "group" else None


def _only(keys_of: KeysOf, wanted: frozenset[Key]) -> KeysOf:
    """Count under the wanted keys alone; what has none of them is in the totals."""
    return lambda raw: [key for key in keys_of(raw) if key in wanted]


def _narrowed(where: UseFilter, by: UsageKey, keys: Sequence[Key]) -> UseFilter:
    """Ask about these nodes, types, jobs or devices alone; they are some of those that were asked about."""
    texts = frozenset(key for key in keys if isinstance(key, str))
    match by:
        case "node":
            return replace(where, nodes=texts)
        case "type":
            return replace(where, types=texts)
        case "job":
            return replace(where, jobs=frozenset(key for key in keys if not isinstance(key, tuple)))
        case "device":
            return replace(where, devices=frozenset(key for key in keys if isinstance(key, tuple)))
        case _:
            return where


def _text_key(key: Key) -> str | None:
    return ":".join(key) if isinstance(key, tuple) else key


def _label(face: PastFace, by: UsageKey, key: Key) -> str:
    if key is None or key == "":
        return _UNKNOWN[by]
    if isinstance(key, tuple):
        return face.device(*key)
    return face.node(key) if by == "node" else key


def _rounded(hours: Floats) -> list[float]:
    return [round(float(one), 4) for one in hours]
