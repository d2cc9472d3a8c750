"""The demo's past in files: what reports and charts tell of it is what was drawn."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

from gpuherd.history.library import Library
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.history.store import SeriesQuery
from gpuherd.history.usage.asking import UsageReader
from gpuherd.wiring.demo_files import fill_past
from gpuherd.wiring.demo_herd import demo_herd
from gpuherd.wiring.demo_past import FINE_DAYS, DemoPast
from gpuherd.wiring.sample_stores import embedded_store

NOW = 1_790_000_123.0
DAY = 86_400.0
DAYS = 21
NODES = ("a100-01", "h100-01", "rtx-01")
"""The first has slices."""
HERD = tuple(node for node in demo_herd(24, epoch=NOW) if node.name in NODES)


@pytest.fixture(scope="module")
def past() -> DemoPast:
    types = {gpu.name: gpu.name for node in HERD for gpu in node.scenario.gpus}
    return DemoPast(HERD, {node.name: f"id-{node.name}" for node in HERD}, types, now=NOW, days=DAYS)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, past: DemoPast) -> Iterator[Library]:
    opened = Library(
        tmp_path_factory.mktemp("state") / "history",
        HistorySettings(minute_days=FINE_DAYS, min_free_bytes=0),
        UsageSettings(),
        open_samples=embedded_store,
        pseudonym=str,
        wall=lambda: NOW,
    )
    with opened:
        fill_past(opened, past)
        for _ in range(40):  # looked after as long as there is something to do
            opened.historian.tend()
        yield opened


def test_reports_tell_the_hours_that_were_drawn(library: Library, past: DemoPast) -> None:
    hour = 3600.0
    begins, until = past.begins, NOW // hour * hour
    drawn: dict[str | None, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for _, stay in past.stays:
        seconds = max(0.0, min(stay.end, until) - max(stay.start, begins))
        drawn[stay.user][0] += seconds
        drawn[stay.user][1] += seconds if stay.load >= 0.05 else 0.0
    table = UsageReader(library.book).figures("user", begins, until)
    told = {str(row.key): [row.sums.gpu_seconds, row.sums.busy_seconds] for row in table.rows}
    wanted = {str(user): sums for user, sums in drawn.items() if sums[0]}
    assert told.keys() == wanted.keys()
    for user, sums in wanted.items():
        assert told[user] == pytest.approx(sums, rel=1e-6), user


def test_every_part_of_the_past_is_in_the_charts(library: Library, past: DemoPast) -> None:
    reader = library.samples.reader
    assert reader is not None
    for key in list(dict.fromkeys(key for key, _ in past.stays))[:4]:
        for start, end in ((NOW - DAYS * DAY, NOW), (NOW - 3 * DAY, NOW), (NOW - 5 * 3600, NOW - 600)):
            answer = reader.read(
                SeriesQuery(
                    subjects=(key,),
                    metrics=("utilization_gpu", "power_watts"),
                    start=start,
                    end=end,
                    with_states=True,
                )
            )
            assert answer.missing == ()
            mean = answer.subjects[0].mean
            assert not np.isnan(mean[1:-2]).any(), (start, answer.step_seconds)
            stays = [stay for other, stay in past.stays if other == key]
            for time, value in zip(answer.times[1:-2], mean[1:-2, 0], strict=True):
                stop = time + answer.step_seconds
                busy = [s for s in stays if s.load >= 0.05 and s.start < stop and s.end > time]
                assert busy or value == 0.0
                if any(s.start <= time and s.end >= stop for s in busy):
                    assert value > 0.05


@pytest.mark.parametrize("days", [1 / 24, 0.25, 1.0, 3.0, 7.0, 14.0])
def test_the_herd_as_a_whole_is_the_sum_of_its_devices(library: Library, past: DemoPast, days: float) -> None:
    """Every chart of the herd agrees with its inventory, however fine its part of the past is drawn."""
    end = NOW // 3600 * 3600
    start = end - days * DAY
    series = library.herd.series(start, end, type=None, max_points=1500)
    gpus = [gpu for node in HERD for gpu in node.scenario.gpus]
    devices = sum(len(gpu.mig_slices) or 1 for gpu in gpus)
    by_state = {state: np.array(numbers, dtype=np.float64) for state, numbers in series.devices.items()}
    total = by_state["free"] + by_state["busy"] + by_state["held"]
    assert total[1:-1].tolist() == pytest.approx([devices] * (len(total) - 2), rel=0.02)
    busy_hours = np.nansum(by_state["busy"][:-1]) * series.step_seconds / 3600
    until = series.times[-1]
    drawn = sum(
        max(0.0, min(stay.end, until) - max(stay.start, series.times[0]))
        for _, stay in past.stays
        if stay.load >= 0.05
    )
    runs = [process for gpu in gpus for part in gpu.mig_slices for process in part.processes]
    drawn += sum(max(0.0, until - max(NOW - float(run.age_seconds or 0), series.times[0])) for run in runs)
    assert busy_hours == pytest.approx(drawn / 3600, rel=0.02, abs=devices * series.step_seconds / 3600)
    watched = library.herd.watched([start, start + (end - start) / 2, end])
    assert watched.tolist() == pytest.approx([(end - start) / 2] * 2, rel=0.02)
    per_device = np.array(series.power_watts[1:-1], dtype=np.float64) / devices
    assert 20 < np.nanmin(per_device) <= np.nanmax(per_device) < 800


def test_the_documentation_s_question_is_answered(
    library: Library, past: DemoPast, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "history.md").read_text(encoding="utf-8")
    (sql,) = re.findall(r'duckdb\.sql\("""(.*?)"""\)', page, re.DOTALL)
    monkeypatch.chdir(library.tables.folder.parent)
    assert "now()" in sql
    rows = duckdb.execute(sql.replace("now()", f"to_timestamp({NOW})")).fetchall()
    told = {row[0]: row[1] for row in rows}
    # Of slices nobody knows how busy they were.
    assert {key.type for key, _ in past.stays} == {name for name, share in told.items() if share is not None}
    assert all(0 < share < 1 for share in told.values() if share is not None)
