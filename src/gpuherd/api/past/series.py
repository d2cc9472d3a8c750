"""Series as they are told: from arrays with NaN to lists with null, and to tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from gpuherd.api.past.tables import Cell, iso, write_csv
from gpuherd.history.batch import Floats
from gpuherd.history.store import SeriesAnswer, SubjectAnswer
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import (
    HerdSeries,
    MetricSeries,
    Numbers,
    SeriesView,
    StateSpan,
    SubjectSeries,
    UserSeries,
)

__all__ = ["herd_csv", "numbers", "series_csv", "series_view", "user_csv"]

_EXACT_FROM = 1000.0
"""Values from here on are told as whole numbers, smaller ones to four places: half the text, and nothing is lost."""

LEAST_KNOWN = 0.25
"""Share of a step of which the state must be known for it to be told."""


def numbers(values: Floats) -> Numbers:
    """Give floats as JSON has them: NaN and infinities are null."""
    rounded = np.where(np.abs(values) >= _EXACT_FROM, np.round(values), np.round(values, 4))
    return [None if value != value or value in (np.inf, -np.inf) else value for value in rounded.tolist()]  # noqa: PLR0124 - NaN


def series_view(answer: SeriesAnswer) -> SeriesView:
    """Tell a store's answer."""
    return SeriesView(
        start=answer.query.start,
        end=answer.query.end,
        step_seconds=answer.step_seconds,
        resolution=answer.resolution,
        times=answer.times.tolist(),
        subjects=tuple(_subject(answer, subject) for subject in answer.subjects),
        missing=answer.missing,
    )


def is_empty(subject: SubjectAnswer) -> bool:
    """Whether nothing at all is known of a subject."""
    return bool(np.isnan(subject.mean).all())


def _subject(answer: SeriesAnswer, subject: SubjectAnswer) -> SubjectSeries:
    return SubjectSeries(
        node_id=subject.key.node_id,
        uuid=subject.key.uuid or None,
        metrics={
            metric: MetricSeries(
                mean=numbers(subject.mean[:, column]),
                low=numbers(subject.low[:, column]),
                high=numbers(subject.high[:, column]),
            )
            for column, metric in enumerate(answer.query.metrics)
        },
        states=() if subject.states is None else _spans(answer, subject.states),
    )


def _spans(answer: SeriesAnswer, states: Floats) -> tuple[StateSpan, ...]:
    """Give the state that each step was in for most of its time, equal neighbours as one; gaps have none."""
    seconds = np.nan_to_num(states)
    # The step that is not over may be short; one of which next to nothing is known is a gap.
    lengths = np.clip(answer.query.end - answer.times, 1.0, answer.step_seconds)
    is_known = seconds.sum(axis=1) >= LEAST_KNOWN * lengths
    main = np.where(is_known, seconds.argmax(axis=1), -1).tolist()
    times = answer.times.tolist()
    spans = []
    for state, steps in groupby(range(len(main)), key=main.__getitem__):
        if state >= 0:
            run = list(steps)
            start = max(times[run[0]], answer.query.start)
            end = min(times[run[-1]] + answer.step_seconds, answer.query.end)
            if start < end:
                spans.append(StateSpan(start=start, end=end, state=DEVICE_STATES[state]))
    return tuple(spans)


def series_csv(view: SeriesView) -> bytes:
    """Write a series as a table: a line for each subject and step."""
    metrics = list(view.subjects[0].metrics) if view.subjects else []
    header = ["time", "node_id", "uuid"]
    for metric in metrics:
        header += [f"{metric}_mean", f"{metric}_low", f"{metric}_high"]
    rows: list[list[Cell]] = []
    for subject in view.subjects:
        columns: list[Sequence[Cell]] = []
        for metric in metrics:
            series = subject.metrics[metric]
            columns += [series.mean, series.low, series.high]
        for place, at in enumerate(view.times):
            rows.append([iso(at), subject.node_id, subject.uuid, *(column[place] for column in columns)])
    return write_csv(header, rows)


def herd_csv(view: HerdSeries) -> bytes:
    """Write the herd's series as a table: a line for each step."""
    states = list(view.devices)
    header = [
        "time",
        *(f"devices_{state}" for state in states),
        "utilization_gpu",
        "memory_ratio",
        "power_watts",
    ]
    columns = [*view.devices.values(), view.utilization_gpu, view.memory_ratio, view.power_watts]
    return write_csv(
        header, ([iso(at), *(column[place] for column in columns)] for place, at in enumerate(view.times))
    )


def user_csv(view: UserSeries) -> bytes:
    """Write a user's series as a table: a line for each step."""
    columns = (view.held_gpus, view.busy_gpus, view.power_watts, view.memory_bytes)
    return write_csv(
        ["time", "user", "held_gpus", "busy_gpus", "power_watts", "memory_bytes"],
        ([iso(at), view.user, *(column[place] for column in columns)] for place, at in enumerate(view.times)),
    )
