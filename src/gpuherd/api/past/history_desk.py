"""Numbers over time, for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import (
    MAX_DEVICES,
    Answer,
    DevicesQuestion,
    HerdQuestion,
    HostQuestion,
    TableFormat,
    UserQuestion,
    Wanted,
)
from gpuherd.api.past.asked_users import raw_users
from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.questions import Questions
from gpuherd.api.past.ranges import Range, known_zone, read_range
from gpuherd.api.past.series import herd_csv, is_empty, numbers, series_csv, series_view, user_csv
from gpuherd.api.past.sources import Memory
from gpuherd.api.past.viewing import Faces
from gpuherd.fleet.clock import Clock
from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS, USE_MEASURES, Floats, SeriesKey
from gpuherd.history.store import SeriesAnswer, SeriesQuery, SeriesReader, Steps
from gpuherd.history.usage.asking import UseFilter
from gpuherd.model.history import SeriesView, UserSeries
from gpuherd.model.people import Viewer
from gpuherd.model.text import clean

__all__ = ["HistoryDesk"]

MAX_NUMBERS = 200_000
"""Points × metrics × devices in one answer; each is told with its least and greatest."""
FEWEST_POINTS = 20
SNAP_SECONDS = 10.0
"""Ranges that differ by less are the same question."""
PUBLIC_HOST_METRICS = ("cpu_ratio", "load_1m", "memory_used_bytes")
"""Those that the live view shows in public."""
QUARTER_SECONDS = 900
HOUR_SECONDS = 3600
LEAST_WATCHED_SECONDS = 30.0
"""Of a step; a mean over less says nothing."""
FINE_SECONDS = 8 * 86_400
"""How long use is kept by the quarter of an hour; before that by the hour."""


class HistoryDesk:
    """A ``HistoryService`` over what is remembered."""

    def __init__(
        self, memory: Memory, *, questions: Questions, faces: Faces, clock: Clock, zone: str
    ) -> None:
        self._memory = memory
        self._questions = questions
        self._faces = faces
        self._clock = clock
        self._zone = zone

    async def devices(self, viewer: Viewer, question: DevicesQuestion) -> Answer:
        """Give devices over time."""
        face = self._faces.of(viewer)
        reader = self._samples()
        if not 1 <= len(question.devices) <= MAX_DEVICES:
            raise HttpError(400, "too_many_devices", f"give 1 to {MAX_DEVICES} devices", path="device")
        subjects = tuple(dict.fromkeys(_device(face, text) for text in question.devices))
        metrics = _known(question.metrics, DEVICE_METRICS)
        span = self._range(question.span)
        query = _query(subjects, metrics, span, question.points, with_states=True)

        def work() -> Answer:
            answer = reader.read(query)
            if all(
                is_empty(subject) and not face.has_device(subject.key.node_id, subject.key.uuid)
                for subject in answer.subjects
            ):
                raise HttpError(
                    404,
                    "unknown_device",
                    "there was no such device in this range; GET /api/v1/gpus lists them",
                )
            return _series(answer, question.format, "gpuherd-devices.csv")

        return await self._ask(viewer, ("devices", query, question.format), work, of_samples=True)

    async def host(self, viewer: Viewer, question: HostQuestion) -> Answer:
        """Give a node's host over time."""
        face = self._faces.of(viewer)
        reader = self._samples()
        metrics = _known(question.metrics, PUBLIC_HOST_METRICS if face.is_public else HOST_METRICS)
        span = self._range(question.span)
        query = _query((SeriesKey(question.node_id),), metrics, span, question.points)

        def work() -> Answer:
            answer = reader.read(query)
            if is_empty(answer.subjects[0]) and not face.has_node(question.node_id):
                raise HttpError(
                    404, "unknown_node", "there was no such node in this range; GET /api/v1/nodes lists them"
                )
            return _series(answer, question.format, "gpuherd-host.csv")

        return await self._ask(viewer, ("host", query, question.format), work, of_samples=True)

    async def herd(self, viewer: Viewer, question: HerdQuestion) -> Answer:
        """Give the herd over time."""
        self._faces.of(viewer)
        span = self._range(question.span)
        reader = self._memory.herd

        def work() -> Answer:
            series = reader.series(span.start, span.end, type=question.type, max_points=question.points)
            if question.format == "csv":
                return _table(herd_csv(series), "gpuherd-herd.csv")
            return _json(series)

        return await self._ask(viewer, ("herd", span, question.type, question.points, question.format), work)

    async def user(self, viewer: Viewer, question: UserQuestion) -> Answer:
        """Give what someone held over time; of a name that nobody has, nothing."""
        face = self._faces.of(viewer)
        span = self._range(question.span)
        now = self._clock.wall()
        edges = _edges(span, question.points, now)

        def work() -> Answer:
            series = _user_series(self._memory, face, question.user, edges, now)
            if question.format == "csv":
                return _table(user_csv(series), "gpuherd-user.csv")
            return _json(series)

        key = ("user", question.user, span, question.points, question.format, face.privacy)
        return await self._ask(viewer, key, work)

    def _samples(self) -> SeriesReader:
        if self._memory.samples is None:
            raise HttpError(
                503,
                "history_off",
                "samples are in a store that this hub cannot query; set history.store.read_url to see charts",
            )
        return self._memory.samples

    def _range(self, wanted: Wanted) -> Range:
        zone = known_zone(None, self._zone)
        return read_range(wanted, now=self._clock.wall(), zone=zone).snapped(SNAP_SECONDS)

    async def _ask(
        self,
        viewer: Viewer,
        key: tuple[object, ...],
        work: Callable[[], Answer],
        *,
        of_samples: bool = False,
    ) -> Answer:
        is_outside = of_samples and self._memory.is_outside
        run = self._questions.run_outside if is_outside else self._questions.run
        return await self._questions.ask(key, partial(run, work), is_stranger=viewer.account is None)


def _device(face: PastFace, text: str) -> SeriesKey:
    if (named := face.device_named(text)) is not None:
        return SeriesKey(named.node_id, named.uuid)
    node_id, colon, uuid = text.partition(":")
    if not (colon and node_id and uuid) or len(text) > 200:
        raise HttpError(
            400,
            "bad_device",
            f'"{clean(text, 60)}" is not a device; write for example gpu01/3, or node id, colon, UUID',
            path="device",
        )
    return SeriesKey(node_id, uuid)


def _known(metrics: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    for metric in metrics:
        if metric not in known:
            raise HttpError(
                400,
                "unknown_metric",
                f'there is no "{clean(metric, 60)}"; there are {", ".join(known)}',
                path="metric",
            )
    return tuple(dict.fromkeys(metrics))


def _query(
    subjects: tuple[SeriesKey, ...],
    metrics: tuple[str, ...],
    span: Range,
    points: int,
    *,
    with_states: bool = False,
) -> SeriesQuery:
    most = max(FEWEST_POINTS, MAX_NUMBERS // (len(subjects) * len(metrics)))
    return SeriesQuery(
        subjects=subjects,
        metrics=metrics,
        start=span.start,
        end=span.end,
        max_points=min(points, most),
        with_states=with_states,
    )


def _series(answer: SeriesAnswer, format: TableFormat, file_name: str) -> Answer:  # noqa: A002 - as the API has it
    view: SeriesView = series_view(answer)
    return _table(series_csv(view), file_name) if format == "csv" else _json(view)


def _json(view: object) -> Answer:
    return Answer(body=msgspec.json.encode(view))


def _table(body: bytes, file_name: str) -> Answer:
    return Answer(body=body, media_type="text/csv; charset=utf-8; header=present", file_name=file_name)


def _edges(span: Range, points: int, now: float) -> tuple[float, ...]:
    """Give the bounds of equal steps, none finer than use is kept."""
    finest = QUARTER_SECONDS if span.start > now - FINE_SECONDS else HOUR_SECONDS
    wanted = (span.end - span.start) / points
    step = next((step for step in Steps if step >= max(finest, wanted)), Steps[-1])
    wide = span.snapped(step)
    count = round((wide.end - wide.start) / step)
    return tuple(wide.start + step * number for number in range(count + 1))


def _known_seconds(memory: Memory, bounds: Floats, now: float, held_seconds: Floats) -> Floats:
    """Tell what steps are the mean of: the time in which the herd was watched; NaN where it was not.

    So the step that is not over is the mean of what there was of it, and what nobody saw is not taken for idle.
    """
    passed = np.clip(np.minimum(bounds[1:], now) - bounds[:-1], 1.0, None)
    watched = np.minimum(memory.herd.watched(bounds.tolist()), passed)
    # Where someone was seen, something was watched, even if the herd's own numbers of that time are lost.
    unseen = np.where(held_seconds > 0, passed, np.nan)
    return np.where(watched >= LEAST_WATCHED_SECONDS, watched, unseen)


def _user_series(
    memory: Memory, face: PastFace, user: str, edges: tuple[float, ...], now: float
) -> UserSeries:
    reader = memory.usage
    users = raw_users(reader, face, Range(edges[0], edges[-1]), user=user)
    steps = reader.over_time("user", edges, where=UseFilter(users=users))
    totals = steps.totals
    bounds = np.asarray(edges)
    means = (
        totals / _known_seconds(memory, bounds, now, totals[:, USE_MEASURES.index("held_seconds")])[:, None]
    )
    if steps.begins_at is None:
        means[:] = np.nan
    else:
        means[bounds[1:] <= steps.begins_at] = np.nan

    def column(name: str) -> list[float | None]:
        return numbers(means[:, USE_MEASURES.index(name)])

    return UserSeries(
        user=user,
        start=edges[0],
        end=edges[-1],
        step_seconds=edges[1] - edges[0],
        times=list(edges[:-1]),
        held_gpus=column("gpu_seconds"),
        busy_gpus=column("busy_seconds"),
        power_watts=column("joules"),
        memory_bytes=column("memory_byte_seconds"),
    )
