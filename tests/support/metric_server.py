"""A real server of metrics on a loopback port of its own, that can be frozen, killed and started again."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.running import PATIENCE_SECONDS, free_port, frozen

__all__ = ["MetricServer"]


class MetricServer:
    """A program, its folder and its port; the folder outlives its processes."""

    def __init__(
        self,
        folder: Path,
        command: Callable[[int], Sequence[str]],
        ready_path: str,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = command
        self._ready_path = ready_path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it takes questions."""
        log = self.folder / "log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                self._command(self.port), stdout=output, stderr=output, cwd=self.folder
            )
        self._process = process
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_ready():
            end = log.read_text(errors="replace")[-2000:]
            assert process.poll() is None, end
            assert time.monotonic() < deadline, end
            time.sleep(0.05)

    def stop(self) -> None:
        """Let it write what it has and end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it stand still for a while: it still takes connections, and never answers."""
        assert self._process is not None
        with frozen(self._process.pid):
            yield

    def fetch(self, path: str, body: bytes | None = None) -> bytes:
        """Ask it something."""
        request = urllib.request.Request(self.url + path, data=body)  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - our own http address
            content: bytes = answer.read()
        return content

    def _is_ready(self) -> bool:
        try:
            self.fetch(self._ready_path)
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(number)
        try:
            self._process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=PATIENCE_SECONDS)
        self._process = None
