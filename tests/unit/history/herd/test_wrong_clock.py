"""The herd's sums while the hub's clock is wrong: each stays what it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpuherd.history.herd.shapes import HERD_SHAPES
from gpuherd.history.herd.sink import FOLD_AT_ONCE, HerdSink
from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.model.devices import DEVICE_STATES
from support.past import Row, batch_of, device_keys

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
DAY = 86_400.0
SAMPLES = 20
BUSY = DEVICE_STATES.index("busy")


class Herd:
    """A sink whose journal goes on to the next file with each piece."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.sink = HerdSink(tables, HistorySettings())
        self.file = 1
        self.is_trusted = True
        tables.trusted = lambda now: now if self.is_trusted else None

    def take(self, start: float, now: float) -> None:
        rows: list[Row] = [
            (key, start + at * 10, {}, BUSY) for key in device_keys(1) for at in range(SAMPLES + 1)
        ]
        self.sink.take(batch_of(rows), self.file)
        self.tend(now)

    def tend(self, now: float) -> None:
        self.file += 1
        self.sink.tend(now, self.file)

    def seconds(self, table: str) -> float:
        answer = self.tables.query(
            "SELECT coalesce(sum(state_busy), 0) AS s FROM {part}", {"part": Part(table)}
        )
        return float(answer.columns["s"][0])


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    with closing(Tables(tmp_path, HERD_SHAPES, threads=1)) as tables:
        yield Herd(tables)


def test_what_comes_late_is_added_to_quarters_whose_minutes_are_gone(herd: Herd) -> None:
    herd.take(MIDNIGHT, MIDNIGHT + 2 * DAY)
    herd.tend(MIDNIGHT + 300 * DAY)
    once = herd.seconds("herd_quarter")
    assert once > 0
    assert not herd.tables.segments("herd_minute")
    # By a clock that is behind, the day's minutes would still be kept.
    herd.is_trusted = False
    herd.take(MIDNIGHT + 7200, MIDNIGHT + 2 * DAY)
    assert herd.seconds("herd_quarter") == pytest.approx(2 * once)
    assert not herd.tables.segments("herd_minute")


def test_a_day_that_was_folded_too_early_is_folded_again(herd: Herd) -> None:
    herd.is_trusted = False
    herd.take(MIDNIGHT, MIDNIGHT + 400 * DAY)
    once = herd.seconds("herd_minute")
    assert herd.seconds("herd_quarter") == once > 0
    for piece in range(1, FOLD_AT_ONCE + 1):
        herd.take(MIDNIGHT + piece * 3600, MIDNIGHT + piece * 3600 + 300)
    herd.tend(MIDNIGHT + 2 * DAY)
    assert herd.seconds("herd_minute") == pytest.approx((FOLD_AT_ONCE + 1) * once)
    assert herd.seconds("herd_quarter") == pytest.approx((FOLD_AT_ONCE + 1) * once)
