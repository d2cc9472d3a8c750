"""Who is to be interrupted, and when: one thread for all questions."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Deadlines"]


class _Interruptible(Protocol):
    def interrupt(self) -> None: ...


class Deadlines:
    """Interrupts what takes longer than it may. Its thread starts with the first deadline."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[int, tuple[float, _Interruptible]] = {}
        self._next_ticket = 0
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._wakes_at = -math.inf
        """When the thread looks by itself: not to wake it for each question spares a question a millisecond."""

    @contextmanager
    def interrupting(self, task: _Interruptible, seconds: float | None) -> Iterator[None]:
        """Interrupt a task that is not done in time, again and again until it is."""
        if seconds is None:
            yield
            return
        due = time.monotonic() + seconds
        with self._changed:
            self._next_ticket += 1
            ticket = self._next_ticket
            self._due[ticket] = (due, task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="history-deadlines", daemon=True)
                self._thread.start()
            elif due < self._wakes_at:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._due[ticket]

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                for due, task in self._due.values():
                    if due <= now:
                        # Within the lock: it is certainly still that question which runs on this connection.
                        task.interrupt()
                soonest = min((max(due, now + 0.05) for due, _ in self._due.values()), default=None)
                self._wakes_at = math.inf if soonest is None else soonest
                self._changed.wait(None if soonest is None else soonest - now)
