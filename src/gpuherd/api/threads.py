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
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
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

    def __init__(self, work: Callable[[], Any], lane: Hashable, loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self.lane = lane
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


class _Turns:
    """Waiting calls, in lanes: lanes take turns, and within a lane calls are served in order."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[Hashable, deque[_Call]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(lane) for lane in self._lanes.values())

    def waiting_in(self, lane: Hashable) -> int:
        return len(self._lanes.get(lane, ()))

    def append(self, call: _Call) -> None:
        self._lanes.setdefault(call.lane, deque()).append(call)

    def popleft(self) -> _Call:
        lane, calls = self._lanes.popitem(last=False)
        call = calls.popleft()
        if calls:
            self._lanes[lane] = calls
        return call

    def discard(self, call: _Call) -> None:
        calls = self._lanes.get(call.lane)
        if calls is not None and call in calls:
            calls.remove(call)
            if not calls:
                del self._lanes[call.lane]

    def clear(self) -> None:
        self._lanes.clear()


class BoundedThreads:
    """Threads of one kind of work. Used on one event loop.

    Not ``asyncio.to_thread``: its threads are shared with everything else, its queue has no end, and the program waits
    for them when it ends.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        max_waiting: int,
        deadline_seconds: float,
        niceness: int = 0,
        max_in_lane: int | None = None,
    ) -> None:
        """``max_in_lane`` limits how many calls of one lane can wait; see ``run_in_lane``."""
        self._name = name
        self._thread_count = threads
        self._max_waiting = max_waiting
        self._deadline_seconds = deadline_seconds
        self._niceness = niceness
        self._threads: list[threading.Thread] = []
        self._max_in_lane = max_waiting if max_in_lane is None else max_in_lane
        self._waiting = _Turns()
        self._changed = threading.Condition()
        self._is_closed = False

    def is_full(self, lane: Hashable = None, *, has_place: bool = False) -> bool:
        """Tell whether more work of a lane would be turned away now."""
        if lane is not None and self._waiting.waiting_in(lane) >= self._max_in_lane:
            return True
        # One place is reserved, unless the queue has no places at all.
        return len(self._waiting) >= self._max_waiting and not (has_place and self._max_waiting > 0)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Give what the work gives; what it raises is raised here.

        ``TooMuchWork`` at once if the queue is full, ``TimeoutError`` after the deadline. Work that has begun by then
        goes on and may still take effect.
        """
        return await self.run_in_lane(None, partial(work, *args, **kwargs))

    async def run_in_lane(self, lane: Hashable, work: Callable[[], T], *, has_place: bool = False) -> T:
        """Like ``run``, but lanes take turns, so that one crowded lane does not delay the others.

        ``has_place``: the call may wait even when the queue is full.
        """
        call = _Call(work, lane, asyncio.get_running_loop())
        self._put(call, has_place=has_place)
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

    def _put(self, call: _Call, *, has_place: bool) -> None:
        with self._changed:
            if self._is_closed:
                raise Failed("the hub is stopping")
            if self.is_full(call.lane, has_place=has_place):
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
            self._waiting.discard(call)

    def _work(self) -> None:
        if self._niceness:
            # On Linux this is the thread's own, not the program's. Where a sandbox forbids it the work is done at the
            # usual priority: a thread that ended here would leave its callers waiting for nobody.
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._niceness)
        while True:
            with self._changed:
                while len(self._waiting) == 0 and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                call = self._waiting.popleft()
            call.execute()
