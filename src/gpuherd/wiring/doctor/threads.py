"""Blocking calls that may never return, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from gpuherd.sources.threads import in_thread as run_in_thread

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(work: Callable[[], T], deadline_seconds: float) -> T:
    """Run in a thread of its own; ``TimeoutError`` when it takes too long, and then it is left to itself."""
    async with asyncio.timeout(deadline_seconds):
        return await run_in_thread(work, "doctor")
