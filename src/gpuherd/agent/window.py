"""How much may be on its way to the hub without an ack, and for how long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from gpuherd.agent.outbox import Run
from gpuherd.model.errors import Failed

__all__ = ["ACK_SECONDS", "Window"]

ACK_SECONDS = 20.0
"""A hub that confirms nothing for so long is taken for dead."""
WINDOW_FRAMES = 1024
WINDOW_BYTES = 2 * 1024 * 1024
"""What may be on its way without an ack."""


class Window:
    """What was sent and is not confirmed."""

    def __init__(self, run: Run, monotonic: Callable[[], float], ack_seconds: float) -> None:
        self._run = run
        self._monotonic = monotonic
        self._ack_seconds = ack_seconds
        self._sent: deque[tuple[int, int, float]] = deque()
        self._size_bytes = 0

    def sent(self, seq: int, size_bytes: int) -> None:
        """A frame is on its way."""
        self._sent.append((seq, size_bytes, self._monotonic()))
        self._size_bytes += size_bytes

    def _prune(self) -> None:
        while self._sent and self._sent[0][0] <= self._run.acked_seq:
            self._size_bytes -= self._sent.popleft()[1]

    def is_empty(self) -> bool:
        """Whether all that was sent is confirmed."""
        self._prune()
        return not self._sent

    def is_full(self) -> bool:
        """Whether to wait for acks before sending more."""
        self._prune()
        self._run.changed.clear()
        return len(self._sent) >= WINDOW_FRAMES or self._size_bytes >= WINDOW_BYTES

    async def wait_for_change(self) -> None:
        """Wait for an ack or a new frame; ``Failed`` when the oldest frame has waited too long for its ack."""
        self._prune()
        limit = None
        if self._sent:
            limit = max(self._sent[0][2] + self._ack_seconds - self._monotonic(), 0.0)
        try:
            async with asyncio.timeout(limit):
                await self._run.changed.wait()
        except TimeoutError as error:
            raise Failed(f"the hub confirmed nothing for {self._ack_seconds:.0f} s") from error
