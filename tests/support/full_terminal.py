"""A command that fills a terminal, and what stands on it: a pseudo terminal and an emulator behind it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import pyte

from support.running import PATIENCE_SECONDS


class FullTerminal:
    """``gpuherd ARGUMENTS`` as someone in front of a terminal has it."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 100,
        lines: int = 30,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._attributes = termios.tcgetattr(theirs)
        self._theirs = theirs
        self._is_there = True
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        kept = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpuherd", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**kept, "TERM": "xterm-256color", "TZ": "UTC", **(environment or {})},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._is_there:
            os.close(self._theirs)
            os.close(self._ours)

    @property
    def text(self) -> str:
        """All that can be seen now."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def until(self, is_so: Callable[[str], Any] | str) -> str:
        """Look until something is seen; gives the screen."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (is_so in self.text if isinstance(is_so, str) else is_so(self.text)):
            assert time.monotonic() < deadline, f"{self.text}\n{self.raw[-400:]!r}"
            assert self._read(0.2) or self.process.poll() is None, self.text
        return self.text

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def vanish(self) -> None:
        """Take the terminal away, without a signal."""
        os.close(self._theirs)
        os.close(self._ours)
        self._is_there = False

    def end(self) -> int:
        """Wait for its end, and give its exit code."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self._read(0.05)
        while self._read(0.0):
            pass
        return self.process.returncode

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is as it was: its modes, the usual screen, a cursor, no mouse reports."""
        shows_cursor = self.raw.rfind(b"\x1b[?25h") > self.raw.rfind(b"\x1b[?25l")
        left_screen = self.raw.rfind(b"\x1b[?1049l") > self.raw.rfind(b"\x1b[?1049h")
        left_mouse = self.raw.rfind(b"\x1b[?1000l") > self.raw.rfind(b"\x1b[?1000h")
        return (
            shows_cursor
            and left_screen
            and left_mouse
            and termios.tcgetattr(self._theirs) == self._attributes
        )

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self._ours, 65_536)
        except OSError:  # the other side is closed
            return False
        self.raw += part
        self._stream.feed(part)
        return bool(part)
