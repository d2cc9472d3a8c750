"""Loops that never die: each round has a deadline, a failed round is counted, shown and tried again later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Literal

from gpuherd.api.health import LoopHealth
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import GpuherdError
from gpuherd.model.text import clip

__all__ = ["Loop", "Supervisor"]

log = logging.getLogger(__name__)

MAX_BACKOFF_SECONDS = 15.0


class Loop:
    """One piece of work, done again and again."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        *,
        every_seconds: float,
        deadline_seconds: float | None,
        clock: Clock,
        random: Random,
        pause: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._work = work
        self._every_seconds = every_seconds
        self._deadline_seconds = deadline_seconds
        self._pause = pause
        self._clock = clock
        self._random = random
        self._state: Literal["starting", "ok", "failing", "stopped"] = "starting"
        self._rounds = 0
        self._errors = 0
        self._consecutive_errors = 0
        self._last_error: str | None = None
        self._last_error_at: float | None = None
        self._last_success_at: float | None = None
        self.failing_since: float | None = None

    def health(self) -> LoopHealth:
        """Tell how the loop fares."""
        return LoopHealth(
            name=self.name,
            state=self._state,
            rounds=self._rounds,
            errors=self._errors,
            consecutive_errors=self._consecutive_errors,
            last_error=self._last_error,
            last_error_at=self._last_error_at,
            last_success_at=self._last_success_at,
        )

    async def run(self) -> None:
        """Go round until cancelled, at a steady pace; after errors with growing, jittered pauses."""
        now = asyncio.get_running_loop().time
        due = now()
        try:
            while True:
                await self.round()
                if self._pause is not None and not self._consecutive_errors:
                    await self._wait(self._pause)
                due = max(due + self._every_seconds, now())
                await asyncio.sleep(max(due - now(), self._backoff_seconds()))
        finally:
            self._state = "stopped"

    async def _wait(self, pause: Callable[[], Awaitable[None]]) -> None:
        try:
            await pause()
        except asyncio.CancelledError:
            if _is_ended():
                raise
            log.debug("%s: the wait was cancelled from inside the hub", self.name)
        except Exception as error:  # noqa: BLE001 - the next round will meet the same and tell it
            log.debug("%s: waiting was cut short: %s", self.name, error)

    async def round(self) -> None:
        """Do the work once; an error ends up in the health, not with the caller."""
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await self._work()
        except TimeoutError:
            limit = "allowed" if self._deadline_seconds is None else f"{self._deadline_seconds:g} s"
            self._failed(f"took longer than {limit}")
        except asyncio.CancelledError:
            if _is_ended():
                raise
            self._failed("was cancelled from inside the hub")
        except GpuherdError as error:
            self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the other loops and the next round go on
            self._failed(f"{type(error).__name__}: {error}", error)
        else:
            if self._consecutive_errors:
                log.info("%s works again", self.name)
            self._state = "ok"
            self._rounds += 1
            self._consecutive_errors = 0
            self.failing_since = None
            self._last_success_at = self._clock.wall()

    def _failed(self, reason: str, unexpected: Exception | None = None) -> None:
        self._state = "failing"
        self._errors += 1
        self._consecutive_errors += 1
        self._last_error = clip(reason, 400)
        self._last_error_at = self._clock.wall()
        if self.failing_since is None:
            self.failing_since = self._last_error_at
        if self._consecutive_errors == 1:
            log.warning("%s: %s", self.name, reason, exc_info=unexpected)

    def _backoff_seconds(self) -> float:
        if not self._consecutive_errors:
            return 0.0
        pause = min(MAX_BACKOFF_SECONDS, self._every_seconds * 2.0 ** min(self._consecutive_errors, 10))
        return pause * self._random.uniform(0.5, 1.0)


def _is_ended() -> bool:
    """Tell whether it is us who were cancelled, and not something that we waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Supervisor:
    """All of the hub's loops."""

    def __init__(self, clock: Clock, random: Random | None = None) -> None:
        self._clock = clock
        self._random = random or Random()  # noqa: S311 - jitter
        self._loops: list[Loop] = []
        self._tasks: list[asyncio.Task[None]] = []

    def add(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        *,
        every_seconds: float,
        deadline_seconds: float | None = 10.0,
        pause: Callable[[], Awaitable[None]] | None = None,
    ) -> Loop:
        """Start a loop. ``deadline_seconds`` bounds one round as far as it waits; pure computing is not cut.
        None is for work that has deadlines of its own.

        ``pause`` waits between good rounds for as long as it likes, besides the pace.
        """
        loop = Loop(
            name,
            work,
            every_seconds=every_seconds,
            deadline_seconds=deadline_seconds,
            clock=self._clock,
            random=self._random,
            pause=pause,
        )
        self._loops.append(loop)
        self._tasks.append(asyncio.get_running_loop().create_task(loop.run(), name=name))
        return loop

    def health(self) -> tuple[LoopHealth, ...]:
        """Tell how every loop fares."""
        return tuple(loop.health() for loop in self._loops)

    async def stop(self) -> None:
        """End every loop."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
