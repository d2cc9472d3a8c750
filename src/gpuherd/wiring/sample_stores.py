"""The stores of samples that gpuherd.toml can name. Each is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuherd.auth.secret_files import read_secret
from gpuherd.history.journal import JournalFiles
from gpuherd.history.library import SampleStore
from gpuherd.history.outside.server import authorization_header
from gpuherd.history.settings import HistorySettings, PrometheusSettings, VictoriaMetricsSettings
from gpuherd.history.tables.tables import Tables

__all__ = ["embedded_store", "prometheus_store", "victoriametrics_store"]


def _authorization(settings: VictoriaMetricsSettings | PrometheusSettings) -> str | None:
    """Give the header that lets us in; ``Misconfigured`` names the key of a file that cannot be read."""
    password = token = None
    if settings.password_file is not None:
        password = read_secret(settings.password_file, "history.store.password_file")
    if settings.token_file is not None:
        token = read_secret(settings.token_file, "history.store.token_file")
    return authorization_header(settings.user, password, token)


def embedded_store(
    tables: Tables, settings: HistorySettings, folder: Path, wall: Callable[[], float]
) -> SampleStore:
    """Keep samples in files of our own."""
    from gpuherd.history.embedded.store import EmbeddedStore  # noqa: PLC0415

    store = EmbeddedStore(tables, settings, clock=wall, journal=JournalFiles(folder / "journal"))
    return SampleStore(store, store)


def victoriametrics_store(
    tables: Tables, settings: HistorySettings, folder: Path, wall: Callable[[], float]
) -> SampleStore:
    """Keep samples in a VictoriaMetrics."""
    from gpuherd.history.victoriametrics import victoriametrics_reader, victoriametrics_sink  # noqa: PLC0415

    store = settings.store
    if not isinstance(store, VictoriaMetricsSettings):
        raise TypeError(f"these are settings of another store: {store!r}")
    authorization = _authorization(store)
    sink = victoriametrics_sink(store, JournalFiles(folder / "journal"), folder, authorization)
    return SampleStore(sink, victoriametrics_reader(store, authorization))


def prometheus_store(
    tables: Tables, settings: HistorySettings, folder: Path, wall: Callable[[], float]
) -> SampleStore:
    """Keep samples in anything that takes Prometheus remote write."""
    from gpuherd.history.remote_write import remote_write_reader, remote_write_sink  # noqa: PLC0415

    store = settings.store
    if not isinstance(store, PrometheusSettings):
        raise TypeError(f"these are settings of another store: {store!r}")
    authorization = _authorization(store)
    sink = remote_write_sink(store, JournalFiles(folder / "journal"), folder, authorization)
    return SampleStore(sink, remote_write_reader(store, authorization))
