"""Blocking verbs of the records, called from the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gpuherd.api.threads import BoundedThreads, TooMuchWork
from gpuherd.model.errors import Failed

__all__ = ["NoAnswer", "RecordCalls"]

THREADS = 4
MAX_WAITING = 256
DEADLINE_SECONDS = 10.0

P = ParamSpec("P")
T = TypeVar("T")


class NoAnswer(Failed):
    """A call took too long; a write may still take effect."""


class RecordCalls:
    """Runs verbs in threads of their own: a slow or frozen database costs only those who need it, and a clear error."""

    def __init__(
        self,
        *,
        threads: int = THREADS,
        max_waiting: int = MAX_WAITING,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._threads = BoundedThreads(
            "records", threads=threads, max_waiting=max_waiting, deadline_seconds=deadline_seconds
        )

    async def run(self, verb: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb and give its answer; what it raises is raised here.

        ``Failed`` at once if too many are waiting, and ``NoAnswer`` after the deadline.
        """
        try:
            return await self._threads.run(verb, *args, **kwargs)
        except TooMuchWork:
            raise Failed("the database is too busy; try again in a moment") from None
        except TimeoutError as error:
            raise NoAnswer(
                "the database does not respond; the change may have been made, so check before you repeat it"
            ) from error

    def close(self) -> None:
        """Begin nothing any more."""
        self._threads.close()
