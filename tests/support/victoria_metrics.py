"""A real VictoriaMetrics, as it is set up for gpuherd."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.metric_server import MetricServer

__all__ = ["running_victoria_metrics", "why_no_victoria_metrics"]


def why_no_victoria_metrics() -> str | None:
    """Say what is missing for a server of our own; None if nothing is."""
    if shutil.which("victoria-metrics") is None:
        return "VictoriaMetrics is not installed; scripts/provision installs it"
    return None


@contextmanager
def running_victoria_metrics(folder: Path, *options: str) -> Iterator[MetricServer]:
    """Run it in ``folder``. Samples are kept once by time, and are seen at once."""
    program = shutil.which("victoria-metrics")
    assert program is not None
    server = MetricServer(
        folder,
        lambda port: [
            program,
            f"-storageDataPath={folder / 'samples'}",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-retentionPeriod=10y",
            "-dedup.minScrapeInterval=1ms",
            "-search.latencyOffset=0s",
            "-memory.allowedBytes=512MiB",
            *options,
        ],
        "/health",
    )
    try:
        server.start()
        yield server
    finally:
        server.kill()
