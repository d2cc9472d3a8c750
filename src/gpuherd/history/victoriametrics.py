"""Samples in VictoriaMetrics: sent as lines, one a subject and moment, which cost it and us the least."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS, NOT_JUDGED, Batch, Samples, SeriesKey
from gpuherd.history.journal import JournalFiles
from gpuherd.history.outside.names import DEVICE, HOST, STATE, labels_of
from gpuherd.history.outside.promql import PromqlReader
from gpuherd.history.outside.server import Server
from gpuherd.history.outside.sink import OutsideSink, Sent
from gpuherd.history.settings import VictoriaMetricsSettings
from gpuherd.model.errors import Failed

__all__ = ["LineEncoder", "VictoriaMetricsSender", "victoriametrics_reader", "victoriametrics_sink"]

_PATH = "/influx/write?precision=ms"
_MAX_BODY_BYTES = 8 * 2**20
_MAX_KEYS = 200_000
_SPECIAL = re.compile(r"([,= \\])")


def _escaped(value: str) -> str:
    return _SPECIAL.sub(r"\\\1", value)


class LineEncoder:
    """Samples of one kind as lines of InfluxDB's protocol: labels once, then every number that is known."""

    def __init__(self, measurement: str, metrics: tuple[str, ...]) -> None:
        self._measurement = measurement
        self._metrics = (*metrics, STATE)
        self._heads: dict[SeriesKey, str] = {}
        self._shapes: dict[bytes, tuple[str, Callable[[list[float]], Any]]] = {}

    def lines(self, samples: Samples) -> list[str]:
        """Write each row that has any number; times in milliseconds."""
        state = samples.state.astype(np.float64)
        state[samples.state == NOT_JUDGED] = np.nan
        values = np.column_stack([samples.values, state])
        known = np.isfinite(values)
        rows = np.flatnonzero(known.any(axis=1)).tolist()
        if not rows:
            return []
        heads = [self._head(key) for key in samples.keys]
        times = np.rint(samples.time * 1000).astype(np.int64).tolist()
        subjects = samples.subject.tolist()
        numbers = values.tolist()
        lines = []
        for row in rows:
            shape = known[row].tobytes()
            found = self._shapes.get(shape)
            if found is None:
                found = self._shape(shape)
            template, chosen = found
            lines.append(f"{heads[subjects[row]]}{template % chosen(numbers[row])} {times[row]}\n")
        return lines

    def _head(self, key: SeriesKey) -> str:
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_KEYS:
                self._heads.clear()
            tags = "".join(f",{name}={_escaped(value)}" for name, value in labels_of(key))
            head = self._heads[key] = f"{self._measurement}{tags} "
        return head

    def _shape(self, known: bytes) -> tuple[str, Callable[[list[float]], Any]]:
        """Make the template of a row in which just these numbers are known: there are few kinds of rows."""
        if len(self._shapes) >= 4096:
            self._shapes.clear()
        columns = [column for column, is_known in enumerate(known) if is_known]
        template = ",".join(f"{self._metrics[column]}=%r" for column in columns)
        shape = self._shapes[known] = (template, itemgetter(*columns))
        return shape


class VictoriaMetricsSender:
    """Brings batches to a VictoriaMetrics."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._devices = LineEncoder(DEVICE, DEVICE_METRICS)
        self._hosts = LineEncoder(HOST, HOST_METRICS)

    @property
    def place(self) -> str:
        """Where it is."""
        return self._server.place

    def send(self, batches: Sequence[Batch]) -> Sent:
        """Bring them there. ``Failed`` for every answer but its yes: it takes all that is well-formed."""
        lines = []
        values = 0
        for batch in batches:
            lines += self._devices.lines(batch.devices)
            lines += self._hosts.lines(batch.hosts)
            values += int(np.isfinite(batch.devices.values).sum() + np.isfinite(batch.hosts.values).sum())
        is_new_line = False
        for body in _bodies(lines):
            answer = self._server.ask("POST", _PATH, body, {"Content-Type": "text/plain"})
            if not answer.is_good:
                raise Failed(f"{self.place} answers {answer.status}: {answer.text()}")
            is_new_line |= answer.is_new_line
        return Sent(values, is_new_line=is_new_line)

    def close(self) -> None:
        """Close connections."""
        self._server.close()


def _bodies(lines: list[str]) -> list[bytes]:
    bodies = []
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= _MAX_BODY_BYTES:
            bodies.append("".join(piece).encode())
            piece, size = [], 0
    if piece:
        bodies.append("".join(piece).encode())
    return bodies


def victoriametrics_sink(
    settings: VictoriaMetricsSettings, journal: JournalFiles, folder: Path, authorization: str | None
) -> OutsideSink:
    """Make the sink; ``authorization`` is the header made of what the settings' files hold."""
    server = Server(settings.url, authorization=authorization, timeout_seconds=settings.timeout_seconds)
    return OutsideSink(
        "victoriametrics",
        VictoriaMetricsSender(server),
        journal,
        folder / "victoriametrics.json",
        resend_seconds=settings.resend_seconds,
    )


def victoriametrics_reader(settings: VictoriaMetricsSettings, authorization: str | None) -> PromqlReader:
    """Make the reader."""
    url = settings.read_url or settings.url
    return PromqlReader(Server(url, authorization=authorization, timeout_seconds=settings.timeout_seconds))
