"""Blocking work beside the event loop: few threads, a bounded queue, a deadline.

Something that is slow or frozen costs its own callers a clear error and nobody else anything: the event loop never
waits, the threads are never more than a handful, and what nobody waits for any longer is not begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from gpuherd.model.errors import Failed

__all__ = ["BoundedThreads", "TooMuchWork"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class TooMuchWork(Exception):  # noqa: N818 - a state, told to whoever asked too late
    """The queue is full."""


class _Call:
    """Some work, and who waits for it."""

    def __init__(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop
        self.answer: asyncio.Future[Any] = loop.create_future()

    def execute(self) -> None:
        """Do the work, in a thread."""
        result, failure = None, None
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
            failure = error
        try:
            self._loop.call_soon_threadsafe(self._finish, result, failure)
        except RuntimeError:
            log.debug("some work ended after the hub")

    def _finish(self, result: Any, failure: BaseException | None) -> None:
        if self.answer.done():
            return  # whoever asked has given up
        if failure is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(failure)


class BoundedThreads:
    """Threads of one kind of work. Used on one event loop.

    Not ``asyncio.to_thread``: its threads are shared with everything else, its queue has no end, and the program waits
    for them when it ends.
    """

    def __init__(
        self, name: str, *, threads: int, max_waiting: int, deadline_seconds: float, niceness: int = 0
    ) -> None:
        self._name = name
        self._thread_count = threads
        self._max_waiting = max_waiting
        self._deadline_seconds = deadline_seconds
        self._niceness = niceness
        self._threads: list[threading.Thread] = []
        self._waiting: deque[_Call] = deque()
        self._changed = threading.Condition()
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        """Whether more work would be turned away now."""
        return len(self._waiting) >= self._max_waiting

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Give what the work gives; what it raises is raised here.

        ``TooMuchWork`` at once if the queue is full, ``TimeoutError`` after the deadline. Work that has begun by then
        goes on and may still take effect.
        """
        call = _Call(partial(work, *args, **kwargs), asyncio.get_running_loop())
        self._put(call)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await call.answer  # type: ignore[no-any-return]
        finally:
            self._withdraw(call)

    def close(self) -> None:
        """Begin nothing any more. Threads that are busy end with their work, or with the program."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _put(self, call: _Call) -> None:
        with self._changed:
            if self._is_closed:
                raise Failed("the hub is stopping")
            if len(self._waiting) >= self._max_waiting:
                raise TooMuchWork
            self._waiting.append(call)
            self._changed.notify()
        if len(self._threads) < self._thread_count:
            name = f"{self._name} {len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _withdraw(self, call: _Call) -> None:
        if not call.answer.done():
            call.answer.cancel()
        with self._changed:
            if call in self._waiting:
                self._waiting.remove(call)

    def _work(self) -> None:
        if self._niceness:
            # On Linux this is the thread's own, not the program's. Where a sandbox forbids it the work is done at the
            # usual priority: a thread that ended here would leave its callers waiting for nobody.
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._niceness)
        while True:
            with self._changed:
                while not self._waiting and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                call = self._waiting.popleft()
            call.execute()
