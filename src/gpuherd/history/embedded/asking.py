# ruff: noqa: S608 - SQL is put together of quoted names only; what is asked for goes in as parameters
"""Rows and rollups of some subjects out of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats, SeriesKey
from gpuherd.history.embedded.grid import Grid
from gpuherd.history.embedded.kinds import Kind
from gpuherd.history.embedded.rows import Rows, joined
from gpuherd.history.tables.parts import overlapping
from gpuherd.history.tables.segments import Shape
from gpuherd.history.tables.tables import Answer, Part, Tables
from gpuherd.model.history import MissingPart

__all__ = ["add_rollups", "ask_keys", "ask_rows"]

_DIGITS = 4
"""Decimals of numbers that are kept in single precision."""
_ROUNDS = 3
_FEW_KEYS = 64
_FEW_ROWS = 100_000
"""Up to so many rollups are added up here, which is quicker than DuckDB's getting ready for it."""


def ask_keys(tables: Tables, kind: Kind, part: Part, start: int, end: int) -> list[SeriesKey]:
    """List whose rows there are in a range, sorted."""
    columns = ", ".join(kind.identity)
    named = f"{columns}, last(type ORDER BY time) AS type" if "type" in kind.keys else columns
    answer = tables.query(
        f"SELECT {named} FROM {{part}} WHERE {_in_range(start, end)} GROUP BY {columns} ORDER BY {columns}",
        {"part": part},
    )
    return [SeriesKey(*parts) for parts in zip(*answer.columns.values(), strict=True)]


def ask_rows(
    tables: Tables,
    kind: Kind,
    part: Part,
    keys: Sequence[SeriesKey],
    metrics: Sequence[str],
    start: int,
    end: int,
    *,
    deadline_seconds: float | None = None,
) -> tuple[Rows, tuple[MissingPart, ...]]:
    """Give samples of some subjects from a time on and before another; subjects are positions in ``keys``."""
    source, condition, parameters, arrays = _whose(kind, keys)
    chosen = [*metrics, *(["state"] if kind.states else [])]
    named = "".join(f", {name}" for name in chosen)
    part = replace(part, among=_nodes_of(keys))
    answer = tables.query(
        f"SELECT {source} AS subject, epoch_ms(time) AS moment{named} FROM {{part}} {condition} "
        f"AND {_in_range(start, end)}",
        {"part": part},
        parameters,
        arrays=arrays,
        deadline_seconds=deadline_seconds,
    )
    found = answer.columns
    count = len(found["moment"])
    rows = Rows(
        subject=found["subject"].astype(np.int32),
        time=found["moment"].astype(np.int64),
        state=found["state"].astype(np.uint8) if kind.states else np.full(count, 255, np.uint8),
        values={metric: _plain(found[metric]) for metric in metrics},
    )
    return joined([rows]), answer.missing


def add_rollups(
    grid: Grid,
    tables: Tables,
    kind: Kind,
    shape: Shape,
    keys: Sequence[SeriesKey],
    start: int,
    end: int,
    *,
    outside: Sequence[tuple[int, int]] = (),
    with_states: bool = True,
    deadline_seconds: float | None = None,
) -> tuple[MissingPart, ...]:
    """Add what was rolled up from a time on and before another, but for some stretches, to a grid of ``keys``."""
    if not keys or start >= end:
        return ()
    source, condition, parameters, arrays = _whose(kind, keys)
    is_short = len(keys) * (end - start) <= _FEW_ROWS * (60_000 if shape is kind.minute else 900_000)
    sums = ["samples" if is_short else "sum(samples) AS samples"]
    for place, metric in enumerate(grid.metrics):
        mean, low, high = (f"{metric}_{word}" for word in ("mean", "low", "high"))
        sums += (
            [f"{mean} AS mean_{place}", f"{low} AS low_{place}", f"{high} AS high_{place}"]
            if is_short
            else [
                f"sum(samples) FILTER (WHERE {mean} IS NOT NULL) AS weight_{place}",
                f"sum({mean}::DOUBLE * samples) AS total_{place}",
                f"min({low})::DOUBLE AS low_{place}",
                f"max({high})::DOUBLE AS high_{place}",
            ]
        )
    states = kind.states if with_states else ()
    sums += [f"state_{state}" if is_short else f"sum(state_{state}) AS state_{state}" for state in states]
    conditions = [_in_range(start, end), *(f"NOT ({_in_range(*stretch)})" for stretch in outside)]
    condition = f"{condition} AND {' AND '.join(conditions)}"
    step = f"(epoch_ms(time) - {grid.start}) // {grid.step} AS step"

    def ask(part: Part, latest: str) -> Answer:
        # Without need, no columns are named that are not asked for: each costs time before anything is read.
        chosen = f"FROM {{part}} {condition}"
        subject = source
        if latest:
            subject, chosen = "subject", f"FROM (SELECT *, {source} AS subject {chosen}{latest})"
        return tables.query(
            f"SELECT {subject} AS subject, {step}, {', '.join(sums)} {chosen}{'' if is_short else ' GROUP BY ALL'}",
            {"part": part},
            parameters,
            arrays=arrays,
            deadline_seconds=deadline_seconds,
        )

    part = Part(shape.name, start / 1000, (end - 1) / 1000, among=_nodes_of(keys))
    answer = _ask_latest(tables, kind, part, ask)
    found = {name: column.astype(np.float64) for name, column in answer.columns.items()}
    cells = found["subject"].astype(np.int64) * grid.steps + found["step"].astype(np.int64)
    starts = None
    if is_short:
        order = np.argsort(cells, kind="stable")
        cells = cells[order]
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        found = {name: column[order] for name, column in found.items()}
        cells = cells[starts]
    if not len(cells):
        return answer.missing
    samples = found["samples"]
    metrics: dict[str, tuple[Floats, Floats, Floats, Floats]] = {}
    for place, metric in enumerate(grid.metrics):
        least, greatest = found[f"low_{place}"], found[f"high_{place}"]
        if starts is None:
            weight, total = np.nan_to_num(found[f"weight_{place}"]), np.nan_to_num(found[f"total_{place}"])
        else:
            means = found[f"mean_{place}"]
            weight = np.add.reduceat(np.where(np.isnan(means), 0.0, samples), starts)
            total = np.add.reduceat(np.nan_to_num(means * samples), starts)
            least, greatest = np.fmin.reduceat(least, starts), np.fmax.reduceat(greatest, starts)
        metrics[metric] = (weight, total, least, greatest)
    seconds = [np.nan_to_num(found[f"state_{state}"]) for state in states]
    if starts is not None:
        samples = np.add.reduceat(samples, starts)
        seconds = [np.add.reduceat(each, starts) for each in seconds]
    grid.add_rolled(cells, samples.astype(np.int64), metrics, seconds)
    return answer.missing


def _ask_latest(tables: Tables, kind: Kind, part: Part, ask: Callable[[Part, str], Answer]) -> Answer:
    """Ask for rows of which the one written last counts, if an hour was rolled up again.

    To tell them apart takes long, so it is left out where files share no time; and done in any case if files are
    replaced again and again while they are asked.
    """
    for _ in range(_ROUNDS):
        segments = tables.chosen(part)
        if overlapping(segments):
            break
        answer = ask(part, "")
        if tables.chosen(part) == segments:
            return answer
    keys = ", ".join((*kind.identity, "time"))
    latest = f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY serial DESC) = 1"
    return ask(replace(part, with_serial=True), latest)


def _in_range(start: int, end: int) -> str:
    return f"(time >= make_timestamp_ms({int(start)}) AND time < make_timestamp_ms({int(end)}))"


def _nodes_of(keys: Sequence[SeriesKey]) -> tuple[str, ...] | None:
    """Give the nodes that are asked for, if they are few: then not all files need to be opened."""
    return tuple({key.node_id for key in keys}) if len(keys) <= _FEW_KEYS else None


def _whose(
    kind: Kind, keys: Sequence[SeriesKey]
) -> tuple[str, str, list[object], dict[str, dict[str, NDArray[np.generic]]]]:
    """Give the SQL of a row's subject, the condition that it is one of those asked for, and what both need."""
    if len(keys) == 1:
        condition = "WHERE " + " AND ".join(f"{name} = ?" for name in kind.identity)
        return "0", condition, [getattr(keys[0], name) for name in kind.identity], {}
    wanted: dict[str, NDArray[np.generic]] = {"wanted": np.arange(len(keys), dtype=np.int32)}
    for name in kind.identity:
        wanted[name] = np.array([getattr(key, name) for key in keys], dtype=object)
    return "wanted", f"JOIN whose USING ({', '.join(kind.identity)}) WHERE true", [], {"whose": wanted}


def _plain(column: NDArray[np.generic]) -> NDArray[np.float64]:
    values = column.astype(np.float64)
    return np.round(values, _DIGITS) if column.dtype == np.float32 else values
