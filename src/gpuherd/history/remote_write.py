"""Samples in whatever takes Prometheus remote write, and what to do with those that it does not take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS, NOT_JUDGED, Batch, Samples, SeriesKey
from gpuherd.history.journal import JournalFiles
from gpuherd.history.outside.names import DEVICE, HOST, STATE
from gpuherd.history.outside.promql import PromqlReader
from gpuherd.history.outside.remote_write_body import literal_snappy, series_head, varint
from gpuherd.history.outside.server import Answer, Server
from gpuherd.history.outside.sink import OutsideSink, Sent
from gpuherd.history.settings import PrometheusSettings
from gpuherd.model.errors import Failed

__all__ = ["RemoteWriteSender", "remote_write_reader", "remote_write_sink"]

_HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_REQUEST_VALUES = 20_000
_MAX_KEYS = 100_000
_MAX_REFUSALS = 16
"""In a row, without anything taken between them, before the rest of a slice is given up."""
_SLICE_MS = 10_000
_ABOUT_ORDER = re.compile(r"order|duplicate|too.old|bounds", re.IGNORECASE)
_FIRST_MS, _LAST_MS = 1 << 35, (1 << 42) - 1
"""What fits a time of six bytes."""
_NEVER = frozenset({400, 409, 413, 422})
"""With any other bad answer it is the server or the way to it that is not in order: samples may be taken later."""


class _Row(NamedTuple):
    key: SeriesKey
    time_ms: int
    values: int
    written: bytes


class _Encoder:
    """Samples of one kind as series of one sample each."""

    def __init__(self, prefix: str, metrics: tuple[str, ...]) -> None:
        self._names = tuple(f"{prefix}_{metric}" for metric in (*metrics, STATE))
        self._heads: dict[SeriesKey, tuple[bytes, ...]] = {}

    def rows(self, samples: Samples) -> list[_Row]:
        state = samples.state.astype(np.float64)
        state[samples.state == NOT_JUDGED] = np.nan
        values = np.ascontiguousarray(np.column_stack([samples.values, state]), "<f8")
        known = np.isfinite(values)
        times = np.rint(samples.time * 1000).astype(np.int64)
        in_bounds = (times >= _FIRST_MS) & (times <= _LAST_MS)
        heads = [self._head(key) for key in samples.keys]
        subjects = samples.subject.tolist()
        rows = []
        for row in np.flatnonzero(known.any(axis=1) & in_bounds).tolist():
            head = heads[subjects[row]]
            numbers = values[row].tobytes()
            time_ms = int(times[row])
            end = b"\x10" + varint(time_ms)
            columns = np.flatnonzero(known[row]).tolist()
            pieces = [head[column] + numbers[8 * column : 8 * column + 8] + end for column in columns]
            rows.append(_Row(samples.keys[subjects[row]], time_ms, len(columns), b"".join(pieces)))
        return rows

    def _head(self, key: SeriesKey) -> tuple[bytes, ...]:
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_KEYS:
                self._heads.clear()
            head = self._heads[key] = tuple(series_head(name, key) for name in self._names)
        return head


class _Outcome:
    """What has come of sending so far."""

    def __init__(self) -> None:
        self.taken = 0
        self.refused = 0
        self.refusal: str | None = None
        self.refusals_in_a_row = 0
        self.is_new_line = False

    def refuse(self, rows: Sequence[_Row], refusal: str | None = None) -> None:
        """Count what is dropped."""
        self.refused += sum(row.values for row in rows)
        self.refusal = refusal or self.refusal


class RemoteWriteSender:
    """Brings batches to a remote-write receiver."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._devices = _Encoder(DEVICE, DEVICE_METRICS)
        self._hosts = _Encoder(HOST, HOST_METRICS)
        self._newest_ms: dict[SeriesKey, int] = {}

    @property
    def place(self) -> str:
        """Where it is."""
        return self._server.place

    def send(self, batches: Sequence[Batch]) -> Sent:
        """Bring them there; what it will never take is left out. ``Failed`` if it may take them another time."""
        rows: list[_Row] = []
        for batch in batches:
            rows += self._devices.rows(batch.devices)
            rows += self._hosts.rows(batch.hosts)
        rows.sort(key=lambda row: row.time_ms)  # of one series, an older sample after a newer one is refused
        outcome = _Outcome()
        request: list[_Row] = []
        values = 0
        for row in rows:
            request.append(row)
            values += row.values
            if values >= _REQUEST_VALUES:
                self._bring_all(request, outcome)
                request, values = [], 0
        if request:
            self._bring_all(request, outcome)
        return Sent(outcome.taken, outcome.refused, outcome.refusal, outcome.is_new_line)

    def close(self) -> None:
        """Close connections."""
        self._server.close()

    def _bring_all(self, rows: list[_Row], outcome: _Outcome) -> None:
        """Bring rows, oldest first. One bad sample refuses its whole request: then find out which ones they are.

        Samples are mostly refused because newer ones of their series are there. What is older than something that was
        taken is dropped at once; of the rest, slice after slice of time is tried.
        """
        refusal = self._post(rows, outcome)
        if refusal is None:
            return
        if _ABOUT_ORDER.search(refusal):
            newer = [row for row in rows if row.time_ms > self._newest_ms.get(row.key, 0)]
            if len(newer) < len(rows):
                old = [row for row in rows if row.time_ms <= self._newest_ms.get(row.key, 0)]
                outcome.refuse(old, refusal)
                if not newer or self._post(newer, outcome) is None:
                    return
                rows = newer
        for part in _slices(rows):
            outcome.refusals_in_a_row = 0
            self._bring(part, outcome)

    def _bring(self, rows: list[_Row], outcome: _Outcome) -> None:
        """Bring rows of about the same time, and if they are refused, half after half.

        After many refusals without anything taken, the rest will be refused too: asking for each takes for ever.
        """
        if outcome.refusals_in_a_row >= _MAX_REFUSALS:
            outcome.refuse(rows)
            return
        refusal = self._post(rows, outcome)
        if refusal is None:
            outcome.refusals_in_a_row = 0
        elif len(rows) == 1:
            outcome.refusals_in_a_row += 1
            outcome.refuse(rows, refusal)
        else:
            middle = len(rows) // 2
            self._bring(rows[:middle], outcome)
            self._bring(rows[middle:], outcome)

    def _post(self, rows: Sequence[_Row], outcome: _Outcome) -> str | None:
        """Send a request; none if it was taken, else why it never will be. ``Failed`` if it may be another time."""
        answer = self._server.ask("POST", "", literal_snappy(row.written for row in rows), _HEADERS)
        outcome.is_new_line |= answer.is_new_line
        if answer.is_good:
            outcome.taken += sum(row.values for row in rows)
            if len(self._newest_ms) > _MAX_KEYS:
                self._newest_ms.clear()
            # In a request the rows are in the order of time. An older one may have been taken after a newer one.
            for row in rows:
                self._newest_ms[row.key] = max(row.time_ms, self._newest_ms.get(row.key, 0))
            return None
        if answer.status not in _NEVER:
            raise Failed(_complaint(self.place, answer))
        return answer.text() or f"status {answer.status}"


def _slices(rows: list[_Row]) -> Iterator[list[_Row]]:
    for _, part in groupby(rows, key=lambda row: row.time_ms // _SLICE_MS):
        yield list(part)


def _complaint(place: str, answer: Answer) -> str:
    if answer.status in (401, 403):
        return (
            f"{place} rejects the credentials in history.store ({answer.status}); check the password or "
            "token file"
        )
    if answer.status == 404:
        return (
            f"{place} does not accept remote write (404); start Prometheus with "
            "--web.enable-remote-write-receiver"
        )
    if 300 <= answer.status < 400:
        return f"{place} redirects ({answer.status}); set history.store.write_url to the final address"
    return f"{place} answers {answer.status}: {answer.text()}"


def remote_write_sink(
    settings: PrometheusSettings, journal: JournalFiles, folder: Path, authorization: str | None
) -> OutsideSink:
    """Make the sink; ``authorization`` is the header made of what the settings' files hold."""
    server = Server(settings.write_url, authorization=authorization, timeout_seconds=settings.timeout_seconds)
    return OutsideSink(
        "prometheus",
        RemoteWriteSender(server),
        journal,
        folder / "prometheus.json",
        resend_seconds=settings.resend_seconds,
    )


def remote_write_reader(settings: PrometheusSettings, authorization: str | None) -> PromqlReader | None:
    """Make the reader; none if there is no address to ask."""
    if settings.read_url is None:
        return None
    return PromqlReader(
        Server(settings.read_url, authorization=authorization, timeout_seconds=settings.timeout_seconds)
    )
