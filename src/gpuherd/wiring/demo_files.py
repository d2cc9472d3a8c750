"""Writes a long past into a hub's history at once: months of samples need not pass through the journal one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Batch, Floats, Samples, SeriesKey, Uses
from gpuherd.history.embedded.kinds import DEVICES, HOSTS, Kind
from gpuherd.history.herd.shapes import MINUTE, QUARTER, SUMS
from gpuherd.history.herd.tally import measures_of
from gpuherd.history.library import Library
from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Tables
from gpuherd.history.tables.writing import Coded
from gpuherd.history.usage.pages import Rows
from gpuherd.history.usage.rows import COMMANDS, USAGE, coded, row_columns
from gpuherd.history.usage.upkeep import HOURS_LEVEL
from gpuherd.wiring.demo_past import HOUR_SLOT, SLOT, DemoPast

__all__ = ["fill_past"]

DAY = 86_400
MINUTE_SECONDS, QUARTER_SECONDS = 60, 900
FINEST_SECONDS = 60.0
"""Samples that lie closer than this go through the journal, as those of live nodes do."""
QUARTER_PARTITION = 32 * DAY
OVER = 1
"""Level of what need not be merged, folded or rolled up any more."""


def fill_past(library: Library, past: DemoPast, note: Callable[[float], None] = lambda share: None) -> None:
    """Write all of it. Blocking, some seconds; ``note`` is told how much of it is done."""
    tables = library.tables
    for grain, batch in past.batches():
        if grain < FINEST_SECONDS:
            library.historian.append(batch)
            continue
        made: list[Segment | None] = []
        for kind, samples in ((DEVICES, batch.devices), (HOSTS, batch.hosts)):
            made += _write_samples(tables, kind, samples, grain, with_raw=grain < QUARTER_SECONDS)
        made += _write_herd(tables, batch.devices, grain)
        made += _write_uses(tables, batch.uses, batch, is_old=grain >= QUARTER_SECONDS)
        tables.commit(add=made)
        note((batch.written_at - past.begins) / (past.now - past.begins))
    library.historian.tend()


def _day(time: float) -> int:
    return int(time // DAY) * DAY


def _keys(kind: Kind, keys: tuple[SeriesKey, ...], subject: NDArray[Any]) -> dict[str, Any]:
    columns = {}
    for name in kind.keys:
        words = coded([getattr(key, name) for key in keys])
        columns[name] = Coded(words.codes[subject], words.values)
    return columns


def _write_samples(
    tables: Tables, kind: Kind, samples: Samples, grain: float, *, with_raw: bool
) -> list[Segment | None]:
    day = _day(samples.time[0])
    head = _keys(kind, samples.keys, samples.subject)
    made = []
    if with_raw:
        raw = head | {"time": _moments(samples.time)}
        raw |= {metric: samples.values[:, place] for place, metric in enumerate(kind.metrics)}
        if kind.states:
            raw["state"] = samples.state
        made.append(tables.write(kind.raw.name, raw, partition=day, level=OVER))
    if grain < QUARTER_SECONDS:
        rolled = _single(kind, samples, grain)
        made.append(tables.write(kind.minute.name, head | rolled, partition=day))
        head, rolled = _quarters(kind, samples, grain)
    else:
        rolled = _single(kind, samples, grain)
    partition = day // QUARTER_PARTITION * QUARTER_PARTITION
    made.append(tables.write(kind.quarter.name, head | rolled, partition=partition))
    return made


def _single(kind: Kind, samples: Samples, grain: float) -> dict[str, Any]:
    """Give rollups of single samples."""
    rolled: dict[str, Any] = {"time": _moments(samples.time), "samples": np.ones(len(samples), np.int32)}
    for place, metric in enumerate(kind.metrics):
        rolled |= {f"{metric}_{word}": samples.values[:, place] for word in ("mean", "low", "high")}
    for place, state in enumerate(kind.states):
        rolled[f"state_{state}"] = np.where(samples.state == place, grain, 0.0)
    return rolled


def _moments(time: Floats) -> NDArray[np.datetime64]:
    return (time * 1000).astype("datetime64[ms]")


def _quarters(kind: Kind, samples: Samples, grain: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Roll samples at equal distances up to quarters of an hour; they come subject by subject."""
    times = len(np.unique(samples.time))
    each = int(QUARTER_SECONDS // grain)
    whole = times // each * each
    shape = (len(samples.keys), whole // each, each)

    def cut(column: NDArray[Any]) -> NDArray[Any]:
        return column.reshape(len(samples.keys), times)[:, :whole].reshape(shape)

    subject = cut(samples.subject)[:, :, 0].reshape(-1)
    rolled: dict[str, Any] = {
        "time": _moments(cut(samples.time)[:, :, 0].reshape(-1)),
        "samples": np.full(len(subject), each, np.int32),
    }
    for place, metric in enumerate(kind.metrics):
        column = cut(samples.values[:, place])
        rolled[f"{metric}_mean"] = column.mean(axis=2).reshape(-1)
        rolled[f"{metric}_low"] = column.min(axis=2).reshape(-1)
        rolled[f"{metric}_high"] = column.max(axis=2).reshape(-1)
    states = cut(samples.state)
    for place, state in enumerate(kind.states):
        rolled[f"state_{state}"] = ((states == place).sum(axis=2) * grain).reshape(-1)
    return _keys(kind, samples.keys, subject), rolled


def _write_herd(tables: Tables, samples: Samples, grain: float) -> list[Segment | None]:
    share = np.ones(len(samples.keys)) if samples.share is None else samples.share
    measures = measures_of(
        samples.values, samples.state, samples.memory_total[samples.subject], share[samples.subject]
    )
    types = coded([key.type for key in samples.keys])
    type_of = types.codes[samples.subject].astype(np.int64)
    made = []
    steps = ((MINUTE, MINUTE_SECONDS), (QUARTER, QUARTER_SECONDS))
    for shape, seconds in steps if grain < QUARTER_SECONDS else steps[1:]:
        # A sample stands for the steps until the next one, and for an equal part of each.
        parts = max(1, round(grain / seconds))
        row = np.repeat(np.arange(len(samples)), parts)
        step = (samples.time[row] // seconds).astype(np.int64) + np.tile(np.arange(parts), len(samples))
        cells, place = np.unique(step * len(types.values) + type_of[row], return_inverse=True)
        sums = np.column_stack(
            [
                np.bincount(place, measures[row, column] * (grain / parts), len(cells))
                for column in range(len(SUMS))
            ]
        )
        sums[:, SUMS.index("covered_seconds")] = seconds
        time = cells // len(types.values) * seconds
        columns: dict[str, Any] = {
            "time": _moments(time.astype(np.float64)),
            "type": Coded((cells % len(types.values)).astype(np.int32), types.values),
            **{name: sums[:, number] for number, name in enumerate(SUMS)},
        }
        made.append(tables.write(shape.name, columns, partition=_day(samples.time[0]), level=OVER))
    return made


def _write_uses(tables: Tables, uses: Uses, batch: Batch, *, is_old: bool) -> list[Segment | None]:
    if not len(uses):
        return []
    length = HOUR_SLOT if is_old else SLOT
    keys = tuple(uses.keys[place] for place in uses.session)
    columns = row_columns(Rows(keys, uses.slot, uses.first, uses.last, uses.measures))
    columns["slot_seconds"] = np.full(len(uses), length, np.int32)
    level = HOURS_LEVEL if is_old else 0
    made = [tables.write(USAGE.name, columns, partition=_day(float(uses.slot.min())), level=level)]
    if not is_old:
        told = [(key, command) for key, command in zip(uses.keys, uses.commands, strict=True) if command]
        commands: dict[str, Any] = {
            "session": coded([key.id for key, _ in told]),
            "user": coded([key.user for key, _ in told]),
            "command": coded([command for _, command in told]),
            "seen_at": np.full(len(told), batch.written_at - 1.0),
        }
        made.append(tables.write(COMMANDS.name, commands, partition=_day(batch.written_at - 1.0)))
    return made
