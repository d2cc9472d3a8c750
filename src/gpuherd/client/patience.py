"""Asking again when the hub says that too many ask at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from gpuherd.client.errors import HubRefused

__all__ = ["MOST_WAITING_SECONDS", "patiently"]

T = TypeVar("T")

MOST_WAITING_SECONDS = 60.0
USUAL_SECONDS = 5.0
"""Waited where the hub names no time."""
SPREAD = 0.2
"""So much longer at most: those who were turned away together shall not come back together."""


def patiently(
    ask: Callable[[], T],
    *,
    tell: Callable[[HubRefused], None],
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> T:
    """Ask, and ask again after 429 as the hub wishes, until a minute has been spent waiting; every other no is final.

    What is asked was not looked at when the answer is 429, so nothing is tried twice. ``tell`` is called once, before
    the first wait; ``HubRefused`` if there is no more time.
    """
    waited, is_told = 0.0, False
    while True:
        try:
            return ask()
        except HubRefused as refused:
            wait = USUAL_SECONDS if refused.retry_after_seconds is None else refused.retry_after_seconds
            wait = max(1.0, wait)
            if not refused.is_unheard or waited + wait > MOST_WAITING_SECONDS:
                raise
            if not is_told:
                tell(refused)
                is_told = True
        sleep(wait * (1.0 + SPREAD * chance()))
        waited += wait
