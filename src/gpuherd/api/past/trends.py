"""Whom to ask for a GPU: what everyone holds now, and held lately."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.sources import Memory
from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.usage.asking import moving_mean
from gpuherd.model.history import Trend, TrendRow, TrendsView

__all__ = ["LiveFree", "trend_of", "trends_view"]

SHORT_SECONDS, MIDDLE_SECONDS, LONG_SECONDS = 2 * 3600.0, 86_400.0, 7 * 86_400.0
LEAST_CHANGE = 0.1
"""A change of less than this, in GPUs or as a share, is none."""
FORGOTTEN = 0.005
"""Who holds nothing now and has averages below this is not told."""
_HERD_SPANS = ((SHORT_SECONDS, 12 * 3600.0), (MIDDLE_SECONDS, 6 * 86_400.0), (LONG_SECONDS, 42 * 86_400.0))
"""For each average, how far back it is worked out: six times its time constant, before which hardly anything counts."""


class LiveFree(Struct, frozen=True):
    """How many GPUs nobody uses right now."""

    free: float
    booked: float
    """Of these that are reserved, besides the free ones."""


def trend_of(mean_2h: float, mean_24h: float) -> Trend:
    """Tell whether it grows: two hours against a day, unless the change is small."""
    margin = max(LEAST_CHANGE, LEAST_CHANGE * mean_24h)
    if mean_2h > mean_24h + margin:
        return "up"
    return "down" if mean_2h < mean_24h - margin else "level"


def trends_view(
    memory: Memory, face: PastFace, *, now: float, reserved: Mapping[str, int], live: LiveFree
) -> TrendsView:
    """Give everyone who holds, held or has booked something, the largest first. Blocking."""
    rows: dict[str | None, TrendRow] = {}
    for mean in memory.usage.averages(now, keys_of=face.users):
        user = mean.key
        booked = 0 if user is None else reserved.get(user, 0)
        used, busy = mean.now_gpus, min(mean.now_busy_gpus, mean.now_gpus)
        if max(used, mean.mean_2h, mean.mean_24h, mean.mean_1w) < FORGOTTEN and not booked:
            continue
        rows[user] = TrendRow(
            user=user,
            label=user or "unknown",
            reserved_gpus=float(booked),
            used_gpus=used,
            idle_gpus=used - busy,
            mean_2h=mean.mean_2h,
            mean_24h=mean.mean_24h,
            mean_1w=mean.mean_1w,
            trend=trend_of(mean.mean_2h, mean.mean_24h),
        )
    for user, count in reserved.items():
        if user not in rows:
            rows[user] = TrendRow(
                user=user,
                label=user,
                reserved_gpus=float(count),
                used_gpus=0.0,
                idle_gpus=0.0,
                mean_2h=0.0,
                mean_24h=0.0,
                mean_1w=0.0,
                trend="level",
            )
    order = sorted(
        rows.values(),
        key=lambda row: (-row.used_gpus, -row.reserved_gpus, -row.mean_2h, -row.mean_24h, row.label),
    )
    return TrendsView(time=now, rows=tuple(order), free=_free_row(memory.herd, now, live))


def _free_row(herd: HerdReader, now: float, live: LiveFree) -> TrendRow:
    short, middle, long = (_free_mean(herd, now, live, constant, back) for constant, back in _HERD_SPANS)
    return TrendRow(
        user=None,
        label="free",
        reserved_gpus=live.booked,
        used_gpus=live.free,
        idle_gpus=0.0,
        mean_2h=short,
        mean_24h=middle,
        mean_1w=long,
        trend=trend_of(short, middle),
    )


def _free_mean(herd: HerdReader, now: float, live: LiveFree, constant: float, back: float) -> float:
    """Average the free devices; if nothing is remembered of them, as many as there are now."""
    series = herd.series(now - back, now, type=None, max_points=500)
    free = np.array([np.nan if one is None else one for one in series.devices["free"]])
    edges = np.array([*series.times, series.times[-1] + series.step_seconds])
    mean = moving_mean(edges, free, now, constant)
    return live.free if mean is None else mean
