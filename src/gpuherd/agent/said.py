"""Log lines that do not flood: the same sentence once, then again only after a while, with a count."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["SaidOnce"]

QUIET_SECONDS = 300.0
MOST_SENTENCES = 64


class SaidOnce:
    """Remembers what was said lately."""

    def __init__(self, log: logging.Logger, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._monotonic = monotonic
        self._said: dict[str, tuple[float, int]] = {}

    def say(self, level: int, sentence: str) -> None:
        """Log the sentence unless it was logged within the last five minutes."""
        now = self._monotonic()
        said_at, unsaid = self._said.get(sentence, (float("-inf"), 0))
        if now - said_at < QUIET_SECONDS:
            self._said[sentence] = (said_at, unsaid + 1)
            self._log.debug("%s", sentence)
            return
        while len(self._said) >= MOST_SENTENCES:
            del self._said[next(iter(self._said))]
        self._said[sentence] = (now, 0)
        self._log.log(level, "%s%s", sentence, f" (and {unsaid} times before)" if unsaid else "")
