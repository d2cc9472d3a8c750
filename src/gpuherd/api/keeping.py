"""Keeping what nodes say: history and last states are saved in batches, and acknowledged only then.

Order: the journal, the last states, the acknowledgement. A last state never claims frames that the journal does not
have; where only the journal has no room, last states are saved all the same, and nothing new is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from gpuherd.api.health import StoreHealth
from gpuherd.api.history_keeping import HistoryKeeping
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Failed
from gpuherd.records.last_reports import LastReport

__all__ = ["Keeper", "ReportStore"]

T = TypeVar("T")


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
        self._writing: asyncio.Future[dict[str, Mapping[str, int]]] | None = None
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
        """Save everything new and acknowledge it; ``Failed`` if the store cannot.

        That the journal has no room is for the history's own health to tell: last states go on at their pace.
        """
        for kept in self._take_unsaved():
            self._waiting[kept.node_id] = kept
        batch, forgotten = list(self._waiting.values()), list(self._forgotten)
        if not batch and not forgotten and self._history is None:
            return
        try:
            saved = await self._write(batch, forgotten)
        except Failed as error:
            self._last_error = str(error)
            raise
        self._last_error = None
        self._saved_at = self._clock.wall()
        self._forgotten.difference_update(forgotten)
        for kept in batch:
            if self._waiting.get(kept.node_id) is kept:
                del self._waiting[kept.node_id]
        self._note_saved((node_id, runs) for node_id, runs in saved.items() if node_id not in self._forgotten)
        if self._history is not None:
            self._history.settle()

    async def _write(self, batch: list[LastReport], forgotten: list[str]) -> dict[str, Mapping[str, int]]:
        """Save in the writer's thread; give what is safe now: of each node the highest number of each run."""
        if self._writing is not None and not self._writing.done():
            raise Failed("the disk has not answered yet; look at the hub's disk")
        history = self._history
        if history is not None and not history.gather() and not batch and not forgotten:
            return {}

        def write() -> dict[str, Mapping[str, int]]:
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

        writing = self._writing = asyncio.get_running_loop().run_in_executor(self._writer, write)
        try:
            # Shielded: a deadline must not make us believe that a write which goes on was given up.
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            self._last_error = "the disk has not answered yet; look at the hub's disk"
            writing.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    def close(self) -> None:
        """Close the store; call after a last flush."""
        self._writer.submit(self._store.close)
        self._writer.shutdown(wait=True)
