"""Asking a store in PromQL: the API that Prometheus, VictoriaMetrics and their kin share."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Literal
from urllib.parse import urlencode

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS, Floats, SeriesKey
from gpuherd.history.deadline import due_at
from gpuherd.history.outside.grid import choose_step, counted_states, grid_times
from gpuherd.history.outside.names import DEVICE, HOST, STATE, regex_of, said, string_of
from gpuherd.history.outside.server import Answer, Server, Unanswered
from gpuherd.history.store import SeriesAnswer, SeriesQuery, SubjectAnswer
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.errors import Failed
from gpuherd.model.history import MissingPart

__all__ = ["PromqlReader"]

ALIVE_SECONDS = 4.0
"""Even a busy store answers the cheapest query within this time; nobody waits longer for a chart that will not come."""
_SELECTOR_LENGTH = 3_500
"""VictoriaMetrics takes questions of 16 KiB; three such selectors stand in one."""
_SPACING_WINDOW_SECONDS = 8 * 3600
_MAX_RAW_STATES = 300_000
_MAX_SAMPLED_STATES = 1_000_000
_RANGE_POINTS = 10_000
"""Prometheus answers up to 11,000 a series."""
_FOLDS = (("mean", "avg", "avg_over_time"), ("low", "min", "min_over_time"), ("high", "max", "max_over_time"))


class _Series(Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None


class _Result(Struct, rename="camel"):
    result: list[_Series]
    result_type: str = ""


class _Said(Struct, rename="camel"):
    status: Literal["success", "error"]
    data: _Result | None = None
    error: str | None = None
    is_partial: bool = False


_decoder = msgspec.json.Decoder(_Said)


class PromqlReader:
    """Answers from a store that speaks PromQL; blocking, from any thread.

    Gaps stay gaps: every question is about what lies within a step, never about the last value before it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._is_left_open: bool | None = None

    def read(self, query: SeriesQuery) -> SeriesAnswer:
        """Answer on a grid. ``Failed`` if the store cannot be asked."""
        self._check_alive()
        kind, known = (HOST, HOST_METRICS)
        if any(key.uuid for key in query.subjects):
            kind, known = (DEVICE, DEVICE_METRICS)
        return _Asked(self, query, kind, known).answer()

    def close(self) -> None:
        """Close connections."""
        self._server.close()

    def _check_alive(self) -> None:
        """Try the cheapest query first: a frozen store fails within seconds, a busy one gets its time."""
        with due_at(time.monotonic() + ALIVE_SECONDS):
            self.ask("/api/v1/query", query="vector(1)")

    def window(self, seconds: float) -> str:
        """Write the range that ends just before a moment and is ``seconds`` long, with its beginning in it.

        Prometheus 2 counts both ends of a range in; Prometheus 3 and VictoriaMetrics leave out the beginning. What
        this one does is asked once, without any samples.
        """
        with self._lock:
            is_left_open = self._is_left_open
        if is_left_open is None:
            found = self.ask("/api/v1/query", query="count_over_time(vector(1)[2s:1s])", time="1000000000")
            is_left_open = bool(found.result and found.result[0].value and found.result[0].value[1] == "2")
            with self._lock:
                self._is_left_open = is_left_open
        length = round(seconds * 1000) - (0 if is_left_open else 1)
        return f"[{length}ms] offset 1ms"

    def ask(self, path: str, **parameters: str) -> _Result:
        """Ask, and give what was found. ``Failed`` repeats what the store complains of."""
        body = urlencode(parameters).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            answer = self._server.ask("POST", path, body, headers)
        except Unanswered as error:
            if isinstance(error.__cause__, TimeoutError):
                raise
            # Once more: a connection that had been idle for long may be closed by the other side.
            answer = self._server.ask("POST", path, body, headers)
        said = _understood(answer, self._server.place)
        if said.data is None:
            raise Failed(f"{self._server.place} cannot answer: {said.error or 'it gives no reason'}")
        if said.is_partial:
            said.data.result_type = "partial"
        return said.data


def _understood(answer: Answer, place: str) -> _Said:
    try:
        return _decoder.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Failed(
            f"{place} does not respond like Prometheus ({answer.status}): {answer.text()}"
        ) from error


class _Asked:
    """One question on its way to its answer."""

    def __init__(self, reader: PromqlReader, query: SeriesQuery, kind: str, known: Sequence[str]) -> None:
        self._reader = reader
        self._query = query
        self._kind = kind
        self._known = known
        self._subjects = {
            (said(key.node_id), said(key.uuid)): number for number, key in enumerate(query.subjects)
        }
        self._is_partial = False

    def answer(self) -> SeriesAnswer:
        query = self._query
        step: float = choose_step(query.start, query.end, query.max_points)
        spacing = None
        if step < 300 or query.with_states:
            spacing = self._spacing()
            step = choose_step(query.start, query.end, query.max_points, spacing)
        grid, folded = self._folded(step)
        if spacing is not None and step < 1.5 * spacing and _has_holes(folded["mean"]):
            # Samples do not come quite evenly: there would be gaps where there are none.
            step = choose_step(query.start, query.end, query.max_points, 2 * spacing)
            grid, folded = self._folded(step)
        states = self._states(grid, step, spacing) if query.with_states and self._kind == DEVICE else None
        missing = (
            (MissingPart(start=query.start, end=query.end, reason="the store returned a partial result"),)
            if self._is_partial
            else ()
        )
        return SeriesAnswer(
            query=query,
            step_seconds=step,
            resolution="raw",
            times=grid,
            subjects=tuple(
                SubjectAnswer(
                    key=key,
                    mean=folded["mean"][number],
                    low=folded["low"][number],
                    high=folded["high"][number],
                    states=None if states is None else states[number],
                )
                for number, key in enumerate(query.subjects)
            ),
            missing=missing,
        )

    def _folded(self, step: float) -> tuple[Floats, dict[str, Floats]]:
        """Ask for mean, least and greatest on a grid: subjects × steps × metrics."""
        query = self._query
        grid = grid_times(query.start, query.end, step)
        shape = (len(query.subjects), len(grid), len(query.metrics))
        folded = {fold: np.full(shape, np.nan) for fold, _, _ in _FOLDS}
        for column, metric in enumerate(query.metrics):
            if metric in self._known:  # else nobody has it
                self._fold(metric, column, grid, step, folded)
        return grid, folded

    def _fold(self, metric: str, column: int, grid: Floats, step: float, folded: dict[str, Floats]) -> None:
        window = self._reader.window(step)
        for matchers in _selectors(self._query.subjects):
            selector = f"{self._kind}_{metric}{matchers}{window}"
            question = " or ".join(
                f'label_replace({merge} by (node_id, uuid) ({function}({selector})), "of", "{fold}", "", "")'
                for fold, merge, function in _FOLDS
            )
            for number, series, times, values in self._ranged(question, grid, step):
                place = np.rint((times - grid[0]) / step).astype(np.int64) - 1
                good = (place >= 0) & (place < len(grid))
                folded[series["of"]][number][place[good], column] = values[good]

    def _states(self, grid: Floats, step: float, spacing: float | None) -> Floats:
        """Read every state, or if there are too many, the last one in each of many short stretches."""
        subjects = self._query.subjects
        states = np.zeros((len(subjects), len(grid), len(DEVICE_STATES)))
        if spacing is None:
            return states
        span = len(grid) * step
        if span / spacing * len(subjects) <= _MAX_RAW_STATES:
            seconds_each = spacing
            found = self._raw(f"{self._kind}_{STATE}", subjects, grid[0], grid[0] + span)
        else:
            pieces = min(120, max(4, _MAX_SAMPLED_STATES // (len(grid) * len(subjects))))
            seconds_each = _part_of(int(step), max(step / pieces, 2 * spacing))
            found = self._sampled(grid[0], grid[0] + span, seconds_each)
        for number, times, values in found:
            states[number] += counted_states(times, values, grid, step, len(DEVICE_STATES), seconds_each)
        return states

    def _sampled(self, start: float, end: float, seconds: float) -> Iterator[tuple[int, Floats, Floats]]:
        window = self._reader.window(seconds)
        for matchers in _selectors(self._query.subjects):
            question = f"max by (node_id, uuid) (last_over_time({self._kind}_{STATE}{matchers}{window}))"
            fine = np.arange(round((end - start) / seconds), dtype=np.float64) * seconds + start
            for number, _, times, values in self._ranged(question, fine, seconds):
                yield number, times - seconds / 2, values

    def _spacing(self) -> float | None:
        """Find out how far samples are apart, from the first subject that has any."""
        query = self._query
        metrics = [STATE] if self._kind == DEVICE else []
        metrics += [metric for metric in query.metrics if metric in self._known][:3]
        start, end = math.floor(query.start), math.ceil(query.end)
        windows = [(max(end - _SPACING_WINDOW_SECONDS, start), end)]
        if end - start > _SPACING_WINDOW_SECONDS:
            middle = (start + end) // 2
            windows += [
                (middle, min(middle + _SPACING_WINDOW_SECONDS, end)),
                (start, start + _SPACING_WINDOW_SECONDS),
            ]
        for key in query.subjects[:4]:
            for metric in metrics:
                for window in windows:
                    for _, times, _ in self._raw(f"{self._kind}_{metric}", (key,), *window):
                        if len(times) > 1:
                            return max(float(np.median(np.diff(times))), 0.001)
        return None

    def _raw(
        self, metric: str, subjects: Sequence[SeriesKey], start: float, end: float
    ) -> Iterator[tuple[int, Floats, Floats]]:
        """Read the samples themselves, from ``start`` on and before ``end``: whole seconds."""
        window = self._reader.window(end - start)
        for matchers in _selectors(subjects):
            result = self._reader.ask(
                "/api/v1/query", query=f"{metric}{matchers}{window}", time=_moment(end), nocache="1"
            )
            for number, _, times, values in self._told(result.result):
                yield number, times, values

    def _ranged(
        self, question: str, grid: Floats, step: float
    ) -> Iterator[tuple[int, dict[str, str], Floats, Floats]]:
        """Ask at the end of each step, in as many questions as it takes."""
        for first in range(0, len(grid), _RANGE_POINTS):
            ends = grid[first : first + _RANGE_POINTS] + step
            result = self._reader.ask(
                "/api/v1/query_range",
                query=question,
                start=_moment(ends[0]),
                end=_moment(ends[-1]),
                step=f"{step:.3f}".rstrip("0").rstrip("."),
                nocache="1",  # VictoriaMetrics would move the range to where its cache likes it
            )
            self._is_partial |= result.result_type == "partial"
            yield from self._told(result.result)

    def _told(self, series: list[_Series]) -> Iterator[tuple[int, dict[str, str], Floats, Floats]]:
        for one in series:
            labels = one.metric
            number = self._subjects.get((labels.get("node_id", ""), labels.get("uuid", "")))
            if number is None or not one.values:
                continue  # a combination of a node and a device that nobody asked for
            times = np.array([time for time, _ in one.values])
            values = np.array([float(value) for _, value in one.values])
            yield number, labels, times, values


def _has_holes(mean: Floats) -> bool:
    """Tell whether a single step is unknown between two that are known."""
    is_known: NDArray[np.bool_] = np.any(np.isfinite(mean), axis=2)
    return bool((is_known[:, :-2] & ~is_known[:, 1:-1] & is_known[:, 2:]).any())


def _part_of(step: int, least: float) -> float:
    """Give the smallest whole number of seconds that a step can be cut into and that is not below ``least``."""
    return float(next((part for part in range(math.ceil(least), step) if step % part == 0), step))


def _moment(time: float) -> str:
    return f"{time:.3f}".rstrip("0").rstrip(".")


def _selectors(subjects: Sequence[SeriesKey]) -> Iterator[str]:
    """Write matchers for the subjects, as many at a time as fit; they may match a few others too."""
    rest = list(subjects)
    while rest:
        count = len(rest)
        while len(matchers := _matchers(rest[:count])) > _SELECTOR_LENGTH and count > 1:
            count //= 2
        yield matchers
        rest = rest[count:]


def _matchers(subjects: Sequence[SeriesKey]) -> str:
    nodes = {said(key.node_id) for key in subjects}
    uuids = {said(key.uuid) for key in subjects}
    parts = []
    for label, texts in (("node_id", nodes), ("uuid", uuids)):
        if len(texts) == 1:
            parts.append(f"{label}={string_of(next(iter(texts)))}")
        else:
            parts.append(f"{label}=~{regex_of(texts)}")
    return "{" + ",".join(parts) + "}"
