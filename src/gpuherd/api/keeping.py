"""Keeping the nodes' last state: what changed is saved in batches, and acknowledged only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from gpuherd.api.health import StoreHealth
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
    ) -> None:
        self._store = store
        self._take_unsaved = take_unsaved
        self._note_saved = note_saved
        self._clock = clock
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="gpuherd-keeper")
        self._writing: asyncio.Future[None] | None = None
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
        """Save everything new and acknowledge it; ``Failed`` if the store cannot."""
        for kept in self._take_unsaved():
            self._waiting[kept.node_id] = kept
        batch, forgotten = list(self._waiting.values()), list(self._forgotten)
        if not batch and not forgotten:
            return
        try:
            await self._write(batch, forgotten)
        except Failed as error:
            self._last_error = str(error)
            raise
        self._last_error = None
        self._saved_at = self._clock.wall()
        self._forgotten.difference_update(forgotten)
        for kept in batch:
            if self._waiting.get(kept.node_id) is kept:
                del self._waiting[kept.node_id]
        self._note_saved((kept.node_id, kept.runs) for kept in batch if kept.node_id not in self._forgotten)

    async def _write(self, batch: list[LastReport], forgotten: list[str]) -> None:
        if self._writing is not None and not self._writing.done():
            raise Failed("the disk has not answered yet; look at the hub's disk")

        def write() -> None:
            for node_id in forgotten:
                self._store.forget(node_id)
            self._store.save(batch)

        writing = self._writing = asyncio.get_running_loop().run_in_executor(self._writer, write)
        try:
            # Shielded: a deadline must not make us believe that a write which goes on was given up.
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            self._last_error = "the disk has not answered yet; look at the hub's disk"
            writing.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    def close(self) -> None:
        """Close the store; call after a last flush."""
        self._writer.submit(self._store.close)
        self._writer.shutdown(wait=True)
