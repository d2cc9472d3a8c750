"""Killed while it counts, writes away and ages what it has: what was acknowledged is there, once."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from support.reckoner import Sums, Who
from support.soak import SOAK
from support.used_herd import reckon
from support.used_writer import UsedWriter, frames_of, opened


def by_hours(sums: Sums) -> dict[tuple[Who, int], list[float]]:
    """Give sums by hours: of what is old, nothing finer is kept."""
    hours: dict[tuple[Who, int], list[float]] = {}
    for (who, slot), measures in sums.items():
        place = (who, slot // 3600 * 3600)
        hours[place] = np.nansum([hours.get(place, [0.0] * len(measures)), measures], axis=0).tolist()
    return hours


def verify(folder: Path, seed: int, safe: int, starts: list[int]) -> None:
    hub = opened(folder)
    try:
        assert hub.taken >= safe
        expected = by_hours(reckon(frames_of(seed)[: hub.taken], starts).sums)
        for _ in range(3):
            found = by_hours(hub.sums())
            assert found.keys() == expected.keys()
            for key, measures in expected.items():
                assert found[key] == pytest.approx(measures, rel=1e-9, abs=1e-3), key
            hub.tend()
    finally:
        hub.close()


@pytest.mark.soak
def test_killed_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(SOAK)  # noqa: S311 - moments, not secrets
    for seed in range(SOAK):
        folder = tmp_path / str(seed)
        safe, starts = 0, []
        for _ in range(20):
            start, now_safe = UsedWriter(folder, seed).run(chance.randrange(1, 25), chance.uniform(0.0, 0.1))
            assert start >= safe
            starts.append(start)
            safe = now_safe
        verify(folder, seed, safe, starts)
