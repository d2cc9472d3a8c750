"""A command at a real terminal of a chosen size."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping

from support.running import PATIENCE_SECONDS

__all__ = ["Terminal"]


class Terminal:
    """``gpuherd ARGUMENTS`` with a pseudo terminal for input, output and errors."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        kept = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpuherd", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**kept, "TERM": "xterm-256color", **(environment or {})},
        )
        os.close(theirs)
        self.shown = ""

    def until(self, text: str, times: int = 1) -> None:
        """Read until something was shown so many times."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.shown.count(text) < times:
            assert time.monotonic() < deadline, self.shown
            assert self._read(deadline - time.monotonic()), self.shown

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Read to the end; gives the exit code and all that was shown."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while self._read(deadline - time.monotonic()):
                assert time.monotonic() < deadline, self.shown
            return self.process.wait(PATIENCE_SECONDS), self.shown.replace("\r\n", "\n")
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            os.close(self._ours)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], max(0.0, seconds))[0]:
            return True  # nothing yet; whoever waits looks at the time
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            if part := os.read(self._ours, 65_536):
                self.shown += part.decode("utf-8", "replace")
                return True
        return False
