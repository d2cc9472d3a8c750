"""A real Prometheus that takes remote write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.metric_server import MetricServer

__all__ = ["running_prometheus", "why_no_prometheus"]


def why_no_prometheus() -> str | None:
    """Say what is missing for a server of our own; None if nothing is."""
    if shutil.which("prometheus") is None:
        return "Prometheus is not installed; scripts/provision installs it"
    return None


@contextmanager
def running_prometheus(
    folder: Path, *options: str, out_of_order: str | None = "30d"
) -> Iterator[MetricServer]:
    """Run it in ``folder``; with samples taken that are older than the newest by up to ``out_of_order``."""
    program = shutil.which("prometheus")
    assert program is not None
    settings = folder / "prometheus.yml"
    storage = (
        "" if out_of_order is None else f"storage: {{tsdb: {{out_of_order_time_window: {out_of_order}}}}}\n"
    )
    settings.write_text("global: {}\n" + storage)
    server = MetricServer(
        folder,
        lambda port: [
            program,
            f"--config.file={settings}",
            f"--storage.tsdb.path={folder / 'samples'}",
            "--storage.tsdb.retention.time=10y",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-remote-write-receiver",
            *options,
        ],
        "/-/ready",
    )
    try:
        server.start()
        yield server
    finally:
        server.kill()
