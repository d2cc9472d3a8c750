"""Checks of passwords that run in processes of their own, each with a deadline.

What they call is C that waits: for a module, a name service, a directory. In the hub such a call could not be ended,
and some hold Python's lock meanwhile, so that everything would stand still.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import sys
import threading
from typing import TypeVar

import msgspec
import psutil

from gpuherd.model.errors import Failed

__all__ = ["ChildChecks"]

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_ANSWER_BYTES = 1_048_576
MAX_STUCK = 8
"""Checks that even SIGKILL does not end, as with a dead file server: beyond these no more are begun."""
KILL_SECONDS = 1.0


class ChildChecks:
    """Runs ``python -m module`` for each question: JSON in by standard input, JSON out by standard output."""

    def __init__(self, module: str, *, what: str, deadline_seconds: float) -> None:
        """``what`` is asked, as messages call it."""
        self._module = module
        self._what = what
        self._deadline_seconds = deadline_seconds
        self._stuck: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def ask(self, question: object, answer: type[T]) -> T:
        """Ask and wait; ``Failed`` if there is no answer in time, or none that can be read. Blocking."""
        encoded = msgspec.json.encode(question, enc_hook=str)
        try:
            written, code = self._run(encoded)
        except OSError as error:
            raise Failed(f"{self._what} failed: cannot start a process ({error.strerror})") from error
        try:
            return msgspec.json.decode(written[:MAX_ANSWER_BYTES], type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Failed(
                f"{self._what} could not be checked: the check exited with code {code}; see the hub's log"
            ) from None

    def _run(self, question: bytes) -> tuple[bytes, int]:
        self._check_stuck()
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Of the hub's own environment nothing: libraries take orders from it.
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            written, _ = process.communicate(question, timeout=self._deadline_seconds)
        except subprocess.TimeoutExpired:
            self._end(process)
            raise Failed(
                f"{self._what} did not respond within {self._deadline_seconds:g} s; try again, or see the hub's and "
                "the system's log"
            ) from None
        return written, process.returncode

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        # What it has started too, some of it in sessions of its own; stopped first, so that it starts no more.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGSTOP)
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for child in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        try:
            process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            with self._lock:
                self._stuck.append(process)
            log.warning("cannot end the login check of %s: process %d is stuck", self._what, process.pid)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                # What was not yet written to the dead process need not be.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _check_stuck(self) -> None:
        with self._lock:
            self._stuck = [process for process in self._stuck if process.poll() is None]
            if len(self._stuck) >= MAX_STUCK:
                raise Failed(f"{self._what} hangs: {MAX_STUCK} checks cannot be ended; see the system's log")
