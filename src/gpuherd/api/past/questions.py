"""Questions about the past, worked out beside the event loop: few at a time, each once however many ask it.

A herd's chart is looked at by everyone at the same time. Who asks what someone else is asking waits for the same
answer, and for a few seconds the answer is kept.

There are lanes, so that nobody waits for who is slower: what a store elsewhere is asked is apart from what is in files
of the hub's own, and in both, people with a login are apart from those without. What has been given up does not go on:
the time that is left is handed down to whoever is asked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from functools import partial
from typing import ParamSpec, TypeVar

from msgspec import Struct

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import Answer
from gpuherd.api.sparing_log import SparingLog
from gpuherd.api.threads import BoundedThreads, TooMuchWork
from gpuherd.fleet.clock import Clock
from gpuherd.history.deadline import due_at
from gpuherd.history.outside.server import Unanswered
from gpuherd.history.tables.engine import TooLong
from gpuherd.model.errors import Failed

__all__ = ["Questions"]

log = logging.getLogger(__name__)

THREADS = 2
"""Of each lane. What is asked of DuckDB uses several cores by itself."""
MAX_WAITING = 64
DEADLINE_SECONDS = 20.0
KEPT_SECONDS = 5.0
MAX_KEPT = 256
MAX_KEPT_BYTES = 32 * 2**20
REST_SECONDS = 5.0
"""A store that did not answer is left alone for so long; whoever asks meanwhile is told so at once."""
RETRY = {"Retry-After": "5"}

P = ParamSpec("P")
T = TypeVar("T")


_IS_STRANGER: ContextVar[bool] = ContextVar("is_stranger", default=False)
"""Who a question is worked out for."""


class _Lane:
    """Threads for some questions, and whether whom they ask is left alone for now."""

    def __init__(self, threads: BoundedThreads) -> None:
        self.threads = threads
        self.rests_until = float("-inf")
        """Looked at only where a store elsewhere is asked."""


class _Kept(Struct, frozen=True):
    answer: Answer
    until: float


class Questions:
    """Asks in threads and remembers what was answered a moment ago. Used on one event loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        threads: int = THREADS,
        max_waiting: int = MAX_WAITING,
        deadline_seconds: float = DEADLINE_SECONDS,
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        # By whether a store elsewhere is asked, and whether a stranger asks. Threads start when they are first needed.
        self._lanes = {
            (is_outside, is_stranger): _Lane(
                BoundedThreads(
                    f"{'outside ' * is_outside}{'strangers ' * is_stranger}questions",
                    threads=threads,
                    max_waiting=max_waiting,
                    deadline_seconds=deadline_seconds,
                )
            )
            for is_outside in (False, True)
            for is_stranger in (False, True)
        }
        self._kept_seconds = kept_seconds
        self._max_asked = threads + max_waiting
        self._strangers = 0
        self._asked: dict[tuple[Hashable, bool], asyncio.Task[Answer]] = {}
        """By key and whether a stranger began it."""
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._kept_bytes = 0
        self._sparing = SparingLog(log, monotonic=self._clock.monotonic)

    async def ask(
        self, key: Hashable, answer: Callable[[], Awaitable[Answer]], *, is_stranger: bool = False
    ) -> Answer:
        """Give the answer to a question; ``key`` tells it from all others, also by who may see the answer.

        ``answer`` is called if nobody else is asking the same; its blocking parts go through ``run``. ``is_stranger``:
        someone without a login; of all that is asked at once, half is theirs at most. ``HttpError`` as ``run``.
        """
        kept = self._kept.get(key)
        if kept is not None and self._clock.monotonic() < kept.until:
            return kept.answer
        asked = self._asked.get((key, False))
        if asked is None and is_stranger:  # others do not stand in the strangers' line
            asked = self._asked.get((key, True))
        if asked is None:
            if len(self._asked) >= self._max_asked or (
                is_stranger and self._strangers >= self._max_asked // 2
            ):
                raise _busy()
            self._strangers += is_stranger
            asked = asyncio.create_task(self._work_out(key, answer, is_stranger=is_stranger))
            self._asked[key, is_stranger] = asked
            asked.add_done_callback(partial(self._finish, key, is_stranger=is_stranger))
        # Whoever goes away does not take the answer from the others.
        return await asyncio.shield(asked)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do some blocking work of a question. ``HttpError`` 503 ``history_busy`` if too much is waiting or it takes
        too long, ``history_unavailable`` if nothing can be read; what it raises otherwise is raised here.
        """
        return await self._run(self._lanes[False, _IS_STRANGER.get()], partial(work, *args, **kwargs))

    async def run_outside(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do, as ``run``, what waits for a store elsewhere: apart from all else, and not just after it was silent."""
        lane = self._lanes[True, _IS_STRANGER.get()]
        if self._clock.monotonic() < lane.rests_until:
            raise _unavailable()

        def unless_silent() -> T:
            began = self._clock.monotonic()
            if began < lane.rests_until:  # since this was asked
                raise Failed("the store has just failed to answer another query")
            try:
                return work(*args, **kwargs)
            except Unanswered:
                # Noted here, before this thread takes the next question; not extended if nobody waited for this one.
                lane.rests_until = max(lane.rests_until, began + REST_SECONDS)
                raise

        return await self._run(lane, unless_silent)

    async def _run(self, lane: _Lane, work: Callable[[], T]) -> T:
        try:
            return await lane.threads.run(_do, work, time.monotonic() + self._deadline_seconds)
        except (TooMuchWork, TimeoutError, TooLong) as error:
            if isinstance(error, TimeoutError):
                lane.rests_until = self._clock.monotonic() + REST_SECONDS
            raise _busy() from None
        except Failed as error:
            if isinstance(error, Unanswered):
                lane.rests_until = self._clock.monotonic() + REST_SECONDS
            self._tell(error)
            raise _unavailable() from None

    def close(self) -> None:
        """Begin nothing any more."""
        for lane in self._lanes.values():
            lane.threads.close()
        for asked in self._asked.values():
            asked.cancel()

    async def _work_out(
        self, key: Hashable, answer: Callable[[], Awaitable[Answer]], *, is_stranger: bool
    ) -> Answer:
        _IS_STRANGER.set(is_stranger)  # this task's own
        found = await answer()
        self._keep(key, found)
        return found

    def _finish(self, key: Hashable, asked: asyncio.Task[Answer], *, is_stranger: bool) -> None:
        del self._asked[key, is_stranger]
        self._strangers -= is_stranger
        if not asked.cancelled():
            asked.exception()  # nobody need be left who awaits it: then its failure is nobody's

    def _keep(self, key: Hashable, answer: Answer) -> None:
        self._drop(key)
        if len(answer.body) > MAX_KEPT_BYTES // 4 or self._kept_seconds <= 0:
            return
        self._kept[key] = _Kept(answer, self._clock.monotonic() + self._kept_seconds)
        self._kept_bytes += len(answer.body)
        now = self._clock.monotonic()
        while self._kept and (
            len(self._kept) > MAX_KEPT
            or self._kept_bytes > MAX_KEPT_BYTES
            or next(iter(self._kept.values())).until <= now
        ):
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._kept_bytes -= len(dropped.answer.body)

    def _tell(self, error: Failed) -> None:
        """Say in the log why, now and then: anyone can ask."""
        self._sparing.warning("past", f"a history query failed: {error}")


def _do(work: Callable[[], T], due: float) -> T:
    with due_at(due):
        return work()


def _unavailable() -> HttpError:
    return HttpError(
        503,
        "history_unavailable",
        "the history cannot be read right now; try again. If this persists, ask an admin to check the "
        "hub's health",
        headers=RETRY,
    )


def _busy() -> HttpError:
    return HttpError(
        503,
        "history_busy",
        "too many history queries at once, or this one takes too long; choose a shorter range, or try "
        "again in a moment",
        headers=RETRY,
    )
