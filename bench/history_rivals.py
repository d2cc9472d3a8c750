"""Prometheus and VictoriaMetrics as stores of a herd's samples: filled the way that costs them least, and asked."""

from __future__ import annotations

import http.client
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.measure import cpu_seconds
from gpuherd.history.batch import DEVICE_METRICS, Samples, SeriesKey
from gpuherd.history.outside.names import DEVICE, labels_of
from gpuherd.history.outside.remote_write_body import literal_snappy, series_head, varint

if TYPE_CHECKING:
    from support.metric_server import MetricServer

__all__ = ["Ingest", "Prometheus", "Rival", "VictoriaMetrics", "block_of", "bytes_below", "forget_cached"]

_PIECE = 100
"""Devices in one request."""


@dataclass
class Ingest:
    """What taking values in has cost."""

    values: int = 0
    server_cpu_seconds: float = 0.0
    sender_cpu_seconds: float = 0.0

    @property
    def server_per_million(self) -> float:
        """CPU seconds of the server for a million values."""
        return self.server_cpu_seconds / self.values * 1e6

    @property
    def sender_per_million(self) -> float:
        """CPU seconds of who sends them, for a million values."""
        return self.sender_cpu_seconds / self.values * 1e6


@dataclass(frozen=True)
class Block:
    """Some moments of all devices: moments × devices of times, and × metrics of numbers."""

    keys: tuple[SeriesKey, ...]
    metrics: tuple[str, ...]
    time_ms: NDArray[np.int64]
    values: NDArray[np.float64]


def block_of(gathered: Sequence[Samples], metrics: tuple[str, ...]) -> Block:
    """Put moments together, so that each series comes with all its values at once."""
    columns = [DEVICE_METRICS.index(metric) for metric in metrics]
    return Block(
        gathered[0].keys,
        metrics,
        np.stack([np.rint(samples.time * 1000).astype(np.int64) for samples in gathered]),
        np.stack([samples.values[:, columns] for samples in gathered]),
    )


def bytes_below(folder: Path) -> int:
    """Give the length of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def forget_cached(folder: Path) -> None:
    """Let the kernel forget what it holds of the files below a folder, as after a long time."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


@dataclass
class Rival:
    """A server that is filled and asked."""

    folder: Path
    name: ClassVar[str]
    program: ClassVar[str]
    server: MetricServer = field(init=False)
    _line: http.client.HTTPConnection = field(init=False)
    _running: AbstractContextManager[MetricServer] = field(init=False)

    def run(self) -> AbstractContextManager[MetricServer]:
        """Give the program, to be run."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the server."""
        self._running = self.run()
        self.server = self._running.__enter__()
        self._connect()

    def _connect(self) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=300)

    def stop(self) -> None:
        """End the server."""
        self._running.__exit__(None, None, None)

    def restart(self) -> None:
        """Start it again, with cold caches."""
        self._line.close()
        self.server.stop()
        forget_cached(self.folder)
        self.server.start()
        self._connect()

    def cpu_seconds(self) -> float:
        """Tell what the server has used since it was started."""
        return cpu_seconds(self.server.pid)

    def send_all(self, block: Block) -> None:
        """Bring all values there."""
        piece = len(block.keys) if len(block.time_ms) == 1 else _PIECE
        for first in range(0, len(block.keys), piece):
            self.send(block, first, first + piece)

    def rest(self) -> None:
        """Wait until it has nothing more to do."""
        before = self.cpu_seconds()
        for _ in range(60):
            time.sleep(2)
            now = self.cpu_seconds()
            if now - before < 0.06:
                return
            before = now

    def send(self, block: Block, first: int, last: int) -> None:
        """Send the values of some devices."""
        raise NotImplementedError

    def settle(self) -> None:
        """Let it bring its files into their final shape."""

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        """Post, and give the answer; anything but a yes ends the measurement."""
        self._line.request("POST", path, body=body, headers=headers)
        response = self._line.getresponse()
        answer = response.read()
        if response.status not in (200, 204):
            raise SystemExit(f"{self.name}: {response.status} {answer[:200]!r}")
        return answer

    def ask(self, question: str, start: float, end: float, step: int) -> list[Any]:
        """Ask over a range, and read the answer."""
        parameters = {"query": question, "start": start, "end": end, "step": step, "nocache": 1}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = msgspec.json.decode(
            self.post("/api/v1/query_range", urlencode(parameters).encode(), headers)
        )
        found: list[Any] = answer["data"]["result"]
        if not found:
            raise SystemExit(f"{self.name} answers nothing to {question}")
        return found

    def one_device(self, key: SeriesKey, metrics: Sequence[str], start: float, end: float, step: int) -> None:
        """Ask for the mean of each step of one device, a question for each metric."""
        for metric in metrics:
            self.ask(_mean(metric, f'{{uuid="{key.uuid}"}}', step), start + step, end, step)

    def herd(self, metric: str, start: float, end: float, step: int) -> None:
        """Ask for the mean of all devices."""
        self.ask(f"avg({_mean(metric, '', step)})", start + step, end, step)

    def size_bytes(self) -> tuple[int, int]:
        """Give what is for good on disk, and what is only there for a while."""
        return bytes_below(self.folder / "samples"), 0


def _mean(metric: str, matchers: str, step: int) -> str:
    return f"avg_over_time({DEVICE}_{metric}{matchers}[{step}s])"


def _support() -> None:
    folder = str(Path(__file__).parents[1] / "tests")
    if folder not in sys.path:
        sys.path.insert(0, folder)


class VictoriaMetrics(Rival):
    """Filled in the ways that cost it least: many values a series in JSON, single ones as InfluxDB's lines."""

    name = "VictoriaMetrics"
    program = "victoria-metrics"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._heads: dict[tuple[SeriesKey, str], str] = {}
        self._tags: dict[SeriesKey, str] = {}

    def run(self) -> AbstractContextManager[MetricServer]:
        _support()
        from support.victoria_metrics import running_victoria_metrics

        return running_victoria_metrics(self.folder, "-memory.allowedBytes=2GiB", "-retentionPeriod=100y")

    def send(self, block: Block, first: int, last: int) -> None:
        if len(block.time_ms) == 1:
            self._send_lines(block)
            return
        lines = []
        for number, key in enumerate(block.keys[first:last], first):
            times = ",".join(map(str, block.time_ms[:, number].tolist()))
            for column, metric in enumerate(block.metrics):
                head = self._heads.get((key, metric))
                if head is None:
                    labels = {"__name__": f"{DEVICE}_{metric}", **dict(labels_of(key))}
                    head = f'{{"metric":{msgspec.json.encode(labels).decode()},"values":['
                    self._heads[key, metric] = head
                values = ",".join(map(repr, block.values[:, number, column].tolist()))
                lines.append(f'{head}{values}],"timestamps":[{times}]}}\n')
        self.post("/api/v1/import", "".join(lines).encode(), {"Content-Type": "application/json"})

    def _send_lines(self, block: Block) -> None:
        template = ",".join(f"{metric}=%r" for metric in block.metrics)
        lines = []
        for key, time_ms, values in zip(
            block.keys, block.time_ms[0].tolist(), block.values[0].tolist(), strict=True
        ):
            head = self._tags.get(key)
            if head is None:
                tags = (f",{name}={value.replace(' ', chr(92) + ' ')}" for name, value in labels_of(key))
                head = self._tags[key] = f"{DEVICE}{''.join(tags)} "
            lines.append(f"{head}{template % tuple(values)} {time_ms}\n")
        self.post("/influx/write?precision=ms", "".join(lines).encode(), {"Content-Type": "text/plain"})

    def settle(self) -> None:
        self.server.fetch("/internal/force_flush")
        self.server.fetch("/internal/force_merge")
        self.rest()
        self.restart()

    def one_device(self, key: SeriesKey, metrics: Sequence[str], start: float, end: float, step: int) -> None:
        if len(metrics) == 1:
            super().one_device(key, metrics, start, end, step)
            return
        names = "|".join(f"{DEVICE}_{metric}" for metric in metrics)
        question = f'avg_over_time({{__name__=~"{names}",uuid="{key.uuid}"}}[{step}s]) keep_metric_names'
        if len(self.ask(question, start + step, end, step)) != len(metrics):
            raise SystemExit("VictoriaMetrics does not answer with every metric")


class Prometheus(Rival):
    """Filled by remote write with many samples a series; scraping would cost it more, and us nothing."""

    name = "Prometheus"
    program = "prometheus"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._heads: dict[tuple[SeriesKey, str], bytes] = {}
        self._single_heads: dict[SeriesKey, list[bytes]] = {}

    def run(self) -> AbstractContextManager[MetricServer]:
        _support()
        from support.prometheus import running_prometheus

        return running_prometheus(self.folder, "--web.enable-admin-api", out_of_order=None)

    def send(self, block: Block, first: int, last: int) -> None:
        moments = len(block.time_ms)
        if moments == 1:
            self._write(self._single(block))
            return
        series: list[bytes] = []
        for number, key in enumerate(block.keys[first:last], first):
            # Of each sample: field 2, 16 bytes, a double, a time of six bytes; all at once.
            samples = np.empty((moments, 18), np.uint8)
            samples[:, 0:3] = (0x12, 0x10, 0x09)
            samples[:, 11] = 0x10
            times = block.time_ms[:, number]
            for place in range(6):
                samples[:, 12 + place] = (times >> (7 * place)) & 0x7F | (0x80 if place < 5 else 0)
            for column, metric in enumerate(block.metrics):
                numbers = np.ascontiguousarray(block.values[:, number, column], "<f8")
                samples[:, 3:11] = numbers.view(np.uint8).reshape(moments, 8)
                body = self._head(key, metric) + samples.tobytes()
                series += (b"\x0a" + varint(len(body)), body)
        self._write(series)

    def _write(self, series: list[bytes]) -> None:
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        headers["X-Prometheus-Remote-Write-Version"] = "0.1.0"
        self.post("/api/v1/write", literal_snappy(series), headers)

    def _single(self, block: Block) -> list[bytes]:
        """Write series of one sample each, as the hub does."""
        series: list[bytes] = []
        for key, time_ms, values in zip(block.keys, block.time_ms[0].tolist(), block.values[0], strict=True):
            heads = self._single_heads.get(key)
            if heads is None:
                heads = [series_head(f"{DEVICE}_{metric}", key) for metric in block.metrics]
                self._single_heads[key] = heads
            numbers, end = values.astype("<f8").tobytes(), b"\x10" + varint(time_ms)
            series += [head + numbers[8 * n : 8 * n + 8] + end for n, head in enumerate(heads)]
        return series

    def _head(self, key: SeriesKey, metric: str) -> bytes:
        head = self._heads.get((key, metric))
        if head is None:
            head = b""
            for name, value in (("__name__", f"{DEVICE}_{metric}"), *labels_of(key)):
                pair = (
                    b"\x0a"
                    + varint(len(name))
                    + name.encode()
                    + b"\x12"
                    + varint(len(value))
                    + value.encode()
                )
                head += b"\x0a" + varint(len(pair)) + pair
            self._heads[key, metric] = head
        return head

    def settle(self) -> None:
        self.rest()
        self.restart()
        self.rest()

    def size_bytes(self) -> tuple[int, int]:
        """Give the blocks, with the open one's as a snapshot has them, and the log and open chunks apart."""
        folder = self.folder / "samples"
        self.server.fetch("/api/v1/admin/tsdb/snapshot?skip_head=false", b"")
        snapshot = bytes_below(folder / "snapshots")
        return snapshot, bytes_below(folder / "wal") + bytes_below(folder / "chunks_head")
