"""Whom to ask for a GPU: what everyone holds now, and held lately."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.sources import Memory
from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.settings import EarlierAverages
from gpuherd.history.usage.asking import moving_mean
from gpuherd.model.history import Trend, TrendRow, TrendsView
from gpuherd.model.people import person_key

__all__ = ["LiveFree", "trend_of", "trends_view"]

SHORT_SECONDS, MIDDLE_SECONDS, LONG_SECONDS = 2 * 3600.0, 86_400.0, 7 * 86_400.0
LEAST_CHANGE = 0.1
"""A change of less than this, in GPUs or as a share, is none."""
FORGOTTEN = 0.005
"""Who holds nothing now and has averages below this is not told."""
EARLIER_SECONDS = 4 * LONG_SECONDS
"""How long averages of an older page count: what they add to those of a week is then less than two percent."""
_HERD_SPANS = ((SHORT_SECONDS, 12 * 3600.0), (MIDDLE_SECONDS, 6 * 86_400.0), (LONG_SECONDS, 42 * 86_400.0))
"""For each average, how far back it is worked out: six times its time constant, before which hardly anything counts."""


class LiveFree(Struct, frozen=True):
    """How many GPUs nobody uses right now."""

    free: float
    all: float
    """All GPUs, whatever their state."""


def trend_of(now: float, mean: float) -> Trend:
    """Tell whether something is more now than it was on the average, unless the change is small."""
    margin = max(LEAST_CHANGE, LEAST_CHANGE * mean)
    if now > mean + margin:
        return "up"
    return "down" if now < mean - margin else "level"


def trends_view(
    memory: Memory,
    face: PastFace,
    *,
    now: float,
    reserved: Mapping[str, int],
    live: LiveFree,
    earlier: EarlierAverages | None = None,
) -> TrendsView:
    """Give everyone who holds, held or has booked something, the largest first. Blocking."""
    rows: dict[str | None, TrendRow] = {}
    if earlier is not None and not 0 <= now - earlier.until < EARLIER_SECONDS:
        earlier = None
    averages = memory.usage.averages(now, keys_of=face.users, earlier=earlier)
    reserved = _by_user(reserved, [mean.key for mean in averages if mean.key is not None])
    for mean in averages:
        user = mean.key
        booked = 0 if user is None else reserved.get(user, 0)
        used, busy = mean.now_gpus, min(mean.now_busy_gpus, mean.now_gpus)
        if max(used, mean.mean_2h, mean.mean_24h, mean.mean_1w) < FORGOTTEN and not booked:
            continue
        means = mean.mean_2h, mean.mean_24h, mean.mean_1w
        rows[user] = _row(user, user or "unknown", float(booked), used, used - busy, means)
    for user, count in reserved.items():
        if user not in rows:
            rows[user] = _row(user, user, float(count), 0.0, 0.0, (0.0, 0.0, 0.0))
    free = _free_row(memory.herd, now, live, sum(reserved.values()))
    return TrendsView(
        time=now,
        rows=tuple(sorted(rows.values(), key=_weight)),
        free=free,
        earlier_until=None if earlier is None else earlier.until,
    )


def _weight(row: TrendRow) -> tuple[float, str]:
    """Sort as the older page does: who has most GPUs, used ones before reserved ones."""
    return -(row.reserved_gpus + 1.5 * row.used_gpus + 0.15 * row.mean_2h), row.label


def _row(
    user: str | None, label: str, reserved: float, used: float, idle: float, means: tuple[float, float, float]
) -> TrendRow:
    short, middle, long = means
    return TrendRow(
        user=user,
        label=label,
        reserved_gpus=reserved,
        used_gpus=used,
        idle_gpus=idle,
        mean_2h=short,
        mean_24h=middle,
        mean_1w=long,
        trend=trend_of(short, middle),
        trend_2h=trend_of(used, short),
        trend_24h=trend_of(used, middle),
        trend_1w=trend_of(used, long),
    )


def _by_user(reserved: Mapping[str, int], users: Iterable[str]) -> dict[str, int]:
    """Count what is reserved by the users on the nodes: holders of bookings may be written in another way."""
    known = list(users)
    spelled = {**{person_key(user): user for user in known}, **{user: user for user in known}}
    found: dict[str, int] = {}
    for holder, count in reserved.items():
        user = spelled.get(holder) or spelled.get(person_key(holder), holder)
        found[user] = found.get(user, 0) + count
    return found


def _free_row(herd: HerdReader, now: float, live: LiveFree, reserved: int) -> TrendRow:
    short, middle, long = (_free_mean(herd, now, live, constant, back) for constant, back in _HERD_SPANS)
    return _row(None, "free", max(0.0, live.all - reserved), live.free, 0.0, (short, middle, long))


def _free_mean(herd: HerdReader, now: float, live: LiveFree, constant: float, back: float) -> float:
    """Average the free devices; if nothing is remembered of them, as many as there are now."""
    series = herd.series(now - back, now, type=None, max_points=500)
    free = np.array([np.nan if one is None else one for one in series.devices["free"]])
    edges = np.array([*series.times, series.times[-1] + series.step_seconds])
    mean = moving_mean(edges, free, now, constant)
    return live.free if mean is None else mean
