"""What belongs together is opened together."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.history.library import Library
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.wiring.sample_stores import embedded_store

DAY = 86_400.0


@pytest.mark.parametrize(("raw_days", "latest_days"), [(1.0, 8.0), (7.0, 8.0), (30.0, 30.0)])
def test_samples_may_come_as_late_as_single_ones_are_kept_and_no_later(
    tmp_path: Path, raw_days: float, latest_days: float
) -> None:
    with Library(
        tmp_path,
        HistorySettings(raw_days=raw_days, min_free_bytes=0),
        UsageSettings(),
        open_samples=embedded_store,
        pseudonym=lambda user: f"~{user}",
        wall=lambda: 1_790_000_000.0,
    ) as library:
        assert library.latest_seconds == latest_days * DAY
