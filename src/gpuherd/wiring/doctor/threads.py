"""Blocking calls that may never return, kept from holding up the end of the program."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(work: Callable[[], T], deadline_seconds: float) -> T:
    """Run in a daemon thread; ``TimeoutError`` when it takes too long, and then it is left to itself.

    Not in an executor: its threads are waited for when the program ends, and a name server that does not answer, or a
    folder on a dead NFS server, would hold up Ctrl+C.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(value: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", value))

    def run() -> None:
        value, failure = None, None
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - it is raised again where the result is awaited
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(finish, value, failure)

    threading.Thread(target=run, name="doctor", daemon=True).start()
    async with asyncio.timeout(deadline_seconds):
        return await future
