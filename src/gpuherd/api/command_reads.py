"""What the audit log holds of looking: who read others' command lines, once an hour, and names without a login."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from gpuherd.fleet.clock import Clock
from gpuherd.model.people import HUB, Actor, Viewer
from gpuherd.records.audit import Deed

__all__ = ["ACTION", "CommandReads"]

ACTION = "command_lines.read"
NAMES_ACTION = "names.shown"
QUIET_SECONDS = 3600.0
"""For so long a further look of the same admin at the same thing is the same look."""
MAX_REMEMBERED = 10_000
MAX_WAITING = 10_000


class CommandReads:
    """Notes looks, and writes them in batches. Owned by the hub's event loop."""

    def __init__(self, clock: Clock, *, is_public: bool) -> None:
        """``is_public``: all who see names may read command lines anyway, so that nothing needs to be noted."""
        self._clock = clock
        self._is_public = is_public
        self._seen_at: dict[tuple[str, str], float] = {}
        self._waiting: list[Deed] = []

    def note_stream(self, viewer: Viewer) -> None:
        """Note that someone follows the live view."""
        self._note(viewer, "live view", "all nodes, for as long as it was open")

    def note_herd(self, viewer: Viewer) -> None:
        """Note that someone has read the whole herd by the API."""
        self._note(viewer, "herd", "all nodes, through the API")

    def note_node(self, viewer: Viewer, node_id: str) -> None:
        """Note that someone has read one node by the API."""
        self._note(viewer, node_id, "one node, through the API")

    def note_usage(self, viewer: Viewer) -> None:
        """Note that someone has read who was on which device when, by the API."""
        self._note(viewer, "usage", "sessions on devices, through the API")

    def note_names_shown(self, networks: Iterable[str]) -> None:
        """Note that people in these networks see names without a login, as of now."""
        self._waiting.append(
            Deed(
                action=NAMES_ACTION,
                subject="hub",
                detail=f"without a login, to {', '.join(networks)}",
                by=HUB,
                at=self._clock.wall(),
            )
        )

    def _note(self, viewer: Viewer, subject: str, detail: str) -> None:
        if self._is_public or viewer.privacy != "admin" or viewer.account is None:
            return
        key, now = (viewer.account.id, subject), self._clock.monotonic()
        seen_at = self._seen_at.get(key)
        if seen_at is not None and now - seen_at < QUIET_SECONDS:
            return
        if len(self._seen_at) >= MAX_REMEMBERED:
            self._seen_at = {k: at for k, at in self._seen_at.items() if now - at < QUIET_SECONDS}
        self._seen_at[key] = now
        if len(self._waiting) < MAX_WAITING:
            by = Actor(account_id=viewer.account.id, label=viewer.account.name, peer=viewer.peer)
            self._waiting.append(
                Deed(action=ACTION, subject=subject, detail=detail, by=by, at=self._clock.wall())
            )

    async def write(self, append: Callable[[list[Deed]], Awaitable[None]]) -> None:
        """Hand what was noted to the log. If that fails it is tried again at the next call."""
        if self._waiting:
            batch = [*self._waiting]
            await append(batch)
            del self._waiting[: len(batch)]
