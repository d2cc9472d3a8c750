"""What every hook has been told and is still to be told, kept through restarts.

An event is written down before it is handed over, and crossed out after: a hub that is killed in between tells it
again, under the same id. So every event of the last day arrives at least once, and twice only after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path

import msgspec
from msgspec import Struct, field

from gpuherd.bookings.hook_settings import HookEvent
from gpuherd.bookings.whole_files import replace_file
from gpuherd.model.errors import Failed

__all__ = ["Delivery", "HookLedger", "HookPage"]

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Per hook; of more, the oldest are given up."""
KEPT_SECONDS = 40 * 86_400
"""A booking that is broken for longer than this is told again."""
MAX_FILE_BYTES = 64 * 2**20


class Delivery(Struct, kw_only=True):
    """An event on its way."""

    id: str
    event: HookEvent
    body: bytes
    attempts: int = 0
    due_at: float = 0.0
    """UTC epoch seconds; not before."""


class HookPage(Struct, kw_only=True):
    """One hook's part of the ledger."""

    since: float
    """When it was set up."""
    waiting: list[Delivery] = field(default_factory=list)
    done: dict[str, float] = field(default_factory=dict)
    """Events that were told or given up, and when."""

    def knows(self, event_id: str) -> bool:
        """Tell whether an event was taken up before."""
        return event_id in self.done or any(delivery.id == event_id for delivery in self.waiting)


class _Content(Struct, kw_only=True):
    version: int = 1
    hooks: dict[str, HookPage] = field(default_factory=dict)


class HookLedger:
    """The file. Used on one event loop; only the writing itself is done in a thread."""

    def __init__(self, file: Path) -> None:
        """Read the file; a damaged one is set aside, and then nothing from before is told any more."""
        self._file = file
        self._content = self._read()
        self._writing = asyncio.Lock()

    def page(self, key: str, now: float) -> HookPage:
        """Give a hook's page, an empty one if it is new."""
        return self._content.hooks.setdefault(key, HookPage(since=int(now)))  # bookings know whole seconds

    def keep_only(self, keys: set[str]) -> None:
        """Forget hooks that are no longer set up."""
        for key in self._content.hooks.keys() - keys:
            del self._content.hooks[key]

    async def save(self, now: float) -> None:
        """Write everything down for good; ``Failed`` if that is not possible now."""
        for page in self._content.hooks.values():
            if len(page.waiting) > MAX_WAITING:
                log.warning(
                    "hooks: dropped %d events because too many are waiting", len(page.waiting) - MAX_WAITING
                )
                page.done.update({delivery.id: now for delivery in page.waiting[:-MAX_WAITING]})
                del page.waiting[:-MAX_WAITING]
            # Long after the last moment at which it could be taken for new.
            page.done = {key: at for key, at in page.done.items() if now - KEPT_SECONDS < at}
        async with self._writing:
            content = msgspec.json.encode(self._content)
            try:
                await asyncio.to_thread(replace_file, self._file, content)
            except OSError as error:
                raise Failed(
                    f"{self._file} cannot be written ({error.strerror}); after a restart, events may be sent twice"
                ) from error

    def _read(self) -> _Content:
        try:
            if self._file.stat().st_size > MAX_FILE_BYTES:
                raise msgspec.ValidationError("too large")
            return msgspec.json.decode(self._file.read_bytes(), type=_Content)
        except FileNotFoundError:
            return _Content()
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
            log.warning("cannot read %s (%s); moved it aside and started a new one", self._file, error)
            with contextlib.suppress(OSError):
                self._file.replace(self._file.with_suffix(".damaged"))
            return _Content()
