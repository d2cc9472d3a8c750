"""By when whatever this thread does for someone must be done: nobody waits for it any longer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import overload

__all__ = ["due_at", "within"]

_DUE: ContextVar[float] = ContextVar("history_due", default=math.inf)


@contextmanager
def due_at(monotonic: float) -> Iterator[None]:
    """Have all questions that are asked in here answered by then, of the monotonic clock, or given up."""
    before = _DUE.set(min(monotonic, _DUE.get()))
    try:
        yield
    finally:
        _DUE.reset(before)


@overload
def within(seconds: float) -> float: ...
@overload
def within(seconds: None) -> float | None: ...
def within(seconds: float | None) -> float | None:
    """Give how long something may take that may take so long by itself; 0 or less: it is too late to begin."""
    due = _DUE.get()
    if due == math.inf:
        return seconds
    left = due - time.monotonic()
    return left if seconds is None else min(seconds, left)
