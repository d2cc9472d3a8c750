"""Keeping what nodes say: history and last states are saved in batches, and acknowledged only then.

Order: the journal, the last states, the acknowledgement. A last state never claims frames that the journal does not
have; where only the journal has no room, last states are saved all the same, and nothing new is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from gpuherd.api.health import StoreHealth
from gpuherd.api.history_keeping import HistoryKeeping
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Failed
from gpuherd.records.last_reports import LastReport

__all__ = ["Keeper", "ReportStore"]

Saved = dict[str, Mapping[str, int]]
"""Of each node the highest number of each run that is safe."""

WRITE_SECONDS = 10.0


class _Write(NamedTuple):
    """What the writer's thread is at."""

    batch: list[LastReport]
    forgotten: list[str]
    saved: asyncio.Future[Saved]


class ReportStore(Protocol):
    """Where last states are kept. Blocking; used from one thread."""

    def save(self, batch: Iterable[LastReport]) -> None:
        """Write durably, all or nothing; ``Failed`` if it cannot."""

    def forget(self, node_id: str) -> None:
        """Drop what is kept of a node."""

    def close(self) -> None:
        """Close."""


class Keeper:
    """Moves news from the fleet to the store, and says what is safe.

    While the store fails, news waits in memory (one last state per node, so never more than that), nodes get no
    acknowledgement and the live view goes on.
    """

    def __init__(
        self,
        store: ReportStore,
        *,
        take_unsaved: Callable[[], list[LastReport]],
        note_saved: Callable[[Iterable[tuple[str, Mapping[str, int]]]], None],
        clock: Clock,
        history: HistoryKeeping | None = None,
    ) -> None:
        self._store = store
        self._history = history
        self._take_unsaved = take_unsaved
        self._note_saved = note_saved
        self._clock = clock
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="gpuherd-keeper")
        self._write: _Write | None = None
        self._waiting: dict[str, LastReport] = {}
        self._forgotten: set[str] = set()
        self._saved_at: float | None = None
        self._last_error: str | None = None

    def health(self) -> StoreHealth:
        """Tell whether saving works."""
        return StoreHealth(
            state="ok" if self._last_error is None else "failing",
            saved_at=self._saved_at,
            waiting_nodes=len(self._waiting),
            last_error=self._last_error,
        )

    def forget(self, node_id: str) -> None:
        """Drop a removed node's state with the next round."""
        self._waiting.pop(node_id, None)
        self._forgotten.add(node_id)

    async def flush(self) -> None:
        """Save everything new and acknowledge it; ``Failed`` if the store cannot, or not in time.

        A write that takes too long goes on, and the next call waits for it first: under overload, the writer must not
        idle. That the journal has no room is for the history's own health to tell: last states go on at their pace.
        """
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                if self._write is not None:
                    await self._finish(self._write)
                self._write = self._begin()
                if self._write is not None:
                    await self._finish(self._write)
        except TimeoutError:
            self._last_error = f"a write takes longer than {WRITE_SECONDS:g} s; check the hub's disk and CPU"
            raise Failed(self._last_error) from None
        except Failed as error:
            self._last_error = str(error)
            raise

    def _begin(self) -> _Write | None:
        """Hand everything new to the writer's thread; none if there is nothing."""
        for kept in self._take_unsaved():
            self._waiting[kept.node_id] = kept
        batch, forgotten, history = list(self._waiting.values()), list(self._forgotten), self._history
        has_samples = history is not None and history.gather()
        if not batch and not forgotten and not has_samples:
            return None

        def write() -> Saved:
            newly_kept = set() if history is None else history.write()
            for node_id in forgotten:
                self._store.forget(node_id)
                if history is not None:
                    history.forget(node_id)
            if history is None:
                self._store.save(batch)
                return {kept.node_id: kept.runs for kept in batch}
            self._store.save([history.cap(kept) for kept in batch])
            return {
                node_id: history.runs(node_id) for node_id in newly_kept.union(kept.node_id for kept in batch)
            }

        saved = asyncio.get_running_loop().run_in_executor(self._writer, write)
        saved.add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )  # maybe nobody waits any more
        return _Write(batch, forgotten, saved)

    async def _finish(self, write: _Write) -> None:
        """Wait for a write, and acknowledge what it saved."""
        try:
            # Shielded: a deadline must not make us believe that a write which goes on was given up.
            saved = await asyncio.shield(write.saved)
        finally:
            if write.saved.done():
                self._write = None
        self._last_error = None
        self._saved_at = self._clock.wall()
        self._forgotten.difference_update(write.forgotten)
        for kept in write.batch:
            if self._waiting.get(kept.node_id) is kept:
                del self._waiting[kept.node_id]
        self._note_saved((node_id, runs) for node_id, runs in saved.items() if node_id not in self._forgotten)
        if self._history is not None:
            self._history.settle()

    def close(self) -> None:
        """Close the store; call after a last flush."""
        self._writer.submit(self._store.close)
        self._writer.shutdown(wait=True)
