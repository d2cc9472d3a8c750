"""Blocking calls that may never return, kept from holding up the end of the program."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["in_thread"]

log = logging.getLogger(__name__)

T = TypeVar("T")


def in_thread(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Run in a daemon thread of that name.

    Not in an executor: its threads are waited for when the program ends, and a dead name server or NFS server would
    then hold up the end of the hub.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", result))

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
            failure = error
        try:
            loop.call_soon_threadsafe(finish, result, failure)
        except RuntimeError:
            log.debug("%s: the hub has stopped meanwhile", name)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
