"""Waiting longer after each failure, and never in step with the other nodes."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["Backoff"]


class Backoff:
    """Exponential with full jitter: a random time up to a bound that doubles from ``first`` to ``longest``."""

    def __init__(
        self,
        first_seconds: float = 1.0,
        longest_seconds: float = 60.0,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._uniform = uniform
        self.failures = 0

    def next_seconds(self) -> float:
        """Count a failure and say how long to wait; never less than a tenth of the first bound."""
        bound = min(self._first_seconds * 2 ** min(self.failures, 32), self._longest_seconds)
        self.failures += 1
        return max(self._uniform(0.0, bound), self._first_seconds / 10)

    def slow_seconds(self) -> float:
        """How long to wait when only a person can help."""
        return self._longest_seconds + self._uniform(0.0, self._longest_seconds)

    def reset(self) -> None:
        """All is well again."""
        self.failures = 0
