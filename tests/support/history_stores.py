"""The stores of samples side by side: a journal with one sink, and the reader of what it has taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS, NOT_JUDGED, Batch, Samples, SeriesKey
from gpuherd.history.embedded.kinds import SHAPES
from gpuherd.history.embedded.store import EmbeddedStore
from gpuherd.history.historian import Historian
from gpuherd.history.journal import JournalFiles
from gpuherd.history.outside.sink import OutsideSink
from gpuherd.history.remote_write import remote_write_reader, remote_write_sink
from gpuherd.history.settings import HistorySettings, PrometheusSettings, VictoriaMetricsSettings
from gpuherd.history.store import SeriesAnswer, SeriesQuery, SeriesReader, Sink
from gpuherd.history.tables.tables import Tables
from gpuherd.history.victoriametrics import victoriametrics_reader, victoriametrics_sink
from support.metric_server import MetricServer
from support.running import eventually

__all__ = [
    "Numbers",
    "Store",
    "device_samples",
    "embedded_store",
    "host_samples",
    "outside_store",
    "prometheus_settings",
    "victoria_settings",
]


Numbers = NDArray[np.floating[Any]]


def _samples(
    keys: Sequence[SeriesKey],
    subject: Sequence[int],
    times: Numbers,
    values: dict[str, Numbers],
    metrics: tuple[str, ...],
    state: Sequence[int] | int,
) -> Samples:
    table = np.full((len(times), len(metrics)), np.nan)
    for name, column in values.items():
        table[:, metrics.index(name)] = column
    states = np.empty(len(times), np.uint8)
    states[:] = state
    return Samples(
        keys=tuple(keys),
        subject=np.asarray(subject, np.int32),
        time=np.asarray(times, np.float64),
        values=table,
        state=states,
        memory_total=np.full(len(keys), 80.0 * 2**30),
    )


def device_samples(
    key: SeriesKey, times: Numbers, state: Sequence[int] | int = 0, **values: Numbers | float
) -> Batch:
    """Make a batch of one device."""
    columns = {
        name: np.broadcast_to(np.asarray(column, float), len(times)) for name, column in values.items()
    }
    samples = _samples((key,), [0] * len(times), times, columns, DEVICE_METRICS, state)
    return Batch(written_at=time.time(), devices=samples)


def host_samples(key: SeriesKey, times: Numbers, **values: Numbers | float) -> Batch:
    """Make a batch of one host."""
    columns = {
        name: np.broadcast_to(np.asarray(column, float), len(times)) for name, column in values.items()
    }
    samples = _samples((key,), [0] * len(times), times, columns, HOST_METRICS, NOT_JUDGED)
    return Batch(written_at=time.time(), hosts=samples)


class _Making(Protocol):
    def __call__(self) -> tuple[Sink, SeriesReader]: ...


@dataclass
class Store:
    """A hub's history with one store, as far as samples go."""

    folder: Path
    making: _Making
    settle: Callable[[], None] = lambda: None
    """Let it be seen what the server has confirmed."""
    historian: Historian = field(init=False)
    sink: Sink = field(init=False)
    reader: SeriesReader = field(init=False)

    def open(self) -> None:
        """Open it as a hub's start does."""
        self.sink, self.reader = self.making()
        self.historian = Historian(
            self.folder, HistorySettings(min_free_bytes=0), [self.sink], wall=time.time
        )
        self.historian.open()

    def close(self) -> None:
        """Close it as a hub's stop does."""
        self.historian.close()

    def append(self, *batches: Batch) -> None:
        """Write batches, and wait until they can be asked for."""
        for batch in batches:
            self.historian.append(batch)
        self.deliver()

    def deliver(self) -> None:
        """Tend until nothing waits, and let it be seen."""
        self.tend_all()
        self.settle()

    def tend_all(self) -> None:
        """Tend until nothing waits."""

        def waiting() -> int:
            self.historian.tend()
            return self.sink.health().waiting_batches if isinstance(self.sink, OutsideSink) else 0

        eventually(waiting, lambda count: count == 0)

    def read(
        self,
        *subjects: SeriesKey,
        metrics: Sequence[str],
        start: float,
        end: float,
        max_points: int = 500,
        with_states: bool = False,
    ) -> SeriesAnswer:
        """Ask."""
        query = SeriesQuery(
            subjects=subjects,
            metrics=tuple(metrics),
            start=start,
            end=end,
            max_points=max_points,
            with_states=with_states,
        )
        return self.reader.read(query)


def victoria_settings(server: MetricServer, timeout_seconds: float = 10.0) -> VictoriaMetricsSettings:
    """Give the settings for a server of our own."""
    return VictoriaMetricsSettings(url=server.url, timeout_seconds=timeout_seconds)


def prometheus_settings(server: MetricServer, timeout_seconds: float = 10.0) -> PrometheusSettings:
    """Give the settings for a server of our own."""
    return PrometheusSettings(
        write_url=f"{server.url}/api/v1/write", read_url=server.url, timeout_seconds=timeout_seconds
    )


@contextmanager
def outside_store(
    folder: Path, server: MetricServer, settings: VictoriaMetricsSettings | PrometheusSettings
) -> Iterator[Store]:
    """Open a store outside."""
    journal = JournalFiles(folder / "journal")

    def making() -> tuple[Sink, SeriesReader]:
        if isinstance(settings, VictoriaMetricsSettings):
            return (
                victoriametrics_sink(settings, journal, folder, None),
                victoriametrics_reader(settings, None),
            )
        reader = remote_write_reader(settings, None)
        assert reader is not None
        return remote_write_sink(settings, journal, folder, None), reader

    def flush() -> None:
        if isinstance(settings, VictoriaMetricsSettings):
            server.fetch("/internal/force_flush")

    store = Store(folder, making, flush)
    store.open()
    try:
        yield store
    finally:
        store.close()
        store.reader.close()  # type: ignore[attr-defined]


@contextmanager
def embedded_store(folder: Path) -> Iterator[Store]:
    """Open our own."""
    with ExitStack() as opened:

        def making() -> tuple[Sink, SeriesReader]:
            opened.close()  # only one may have the files open
            tables = opened.enter_context(closing(Tables(folder / "tables", SHAPES)))
            store = EmbeddedStore(tables, HistorySettings(min_free_bytes=0))
            return store, store

        store = Store(folder, making)
        store.open()
        try:
            yield store
        finally:
            store.close()
