"""Rate-limited logging for messages that anyone can cause by sending requests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable

from gpuherd.model.throttle import Throttle

__all__ = ["SparingLog"]


class SparingLog:
    """Logs at most ``limit`` messages per kind and minute; the next one says how many were left out."""

    def __init__(
        self, log: logging.Logger, *, limit: int = 1, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._throttle = Throttle(limit=limit)
        self._monotonic = monotonic

    def warning(self, kind: Hashable, message: str) -> None:
        """Log a warning, unless enough of its kind were logged within a minute."""
        self.log(logging.WARNING, kind, message)

    def log(self, level: int, kind: Hashable, message: str) -> None:
        """Log a message, unless enough of its kind were logged within a minute."""
        self._write(level, kind, message, None)

    def unexpected(self, message: str, error: BaseException) -> None:
        """Log an error with its traceback, unless one from the same line of code was logged within a minute."""
        self._write(logging.ERROR, _origin(error), message, error)

    def _write(self, level: int, kind: Hashable, message: str, error: BaseException | None) -> None:
        skipped = self._throttle.take(self._monotonic(), kind)
        if skipped is not None:
            more = f" ({skipped} similar messages were not logged)" if skipped else ""
            self._log.log(level, "%s%s", message, more, exc_info=error)


def _origin(error: BaseException) -> Hashable:
    """Return the kind of an error and the line of code that raised it."""
    trace = error.__traceback__
    if trace is None:
        return type(error).__name__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return type(error).__name__, trace.tb_frame.f_code.co_filename, trace.tb_lineno
