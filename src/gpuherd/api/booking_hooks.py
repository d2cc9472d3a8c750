"""Hooks in a running hub: what happens to bookings is noticed each second, and every hook told by a loop of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from gpuherd.api.supervision import Supervisor
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.hook_events import LATE_SECONDS, Violations, due_events, event_body
from gpuherd.bookings.hook_ledger import HookLedger
from gpuherd.bookings.hook_settings import HookSettings
from gpuherd.bookings.hooks import HookLine, hook_key, make_hook
from gpuherd.fleet.clock import Clock
from gpuherd.model.bookings import Booking, BookingUse, DeviceRef

__all__ = ["LEDGER_NAME", "BookingHooks", "KnownBookings"]

LEDGER_NAME = "hooks.json"
LOOK_SECONDS = 1.0


class KnownBookings(Protocol):
    """Bookings and devices as the hub knows them in memory; everything is called on the event loop."""

    def bookings(self) -> Iterable[Booking]:
        """Give every booking that holds its devices now or later, or did until a few days ago."""

    def uses(self) -> Mapping[tuple[int, DeviceRef], BookingUse]:
        """Tell what happens on every device of every booking that runs."""

    def herd(self) -> Herd:
        """Give the devices as they are now."""


class BookingHooks:
    """All hooks of a hub."""

    def __init__(
        self,
        settings: Sequence[HookSettings],
        known: KnownBookings,
        *,
        state_dir: Path,
        hub_url: Callable[[], str],
        clock: Clock,
    ) -> None:
        """Build every hook; ``Misconfigured`` if a file or program is missing."""
        self._known = known
        self._hub_url = hub_url
        self._clock = clock
        self._ledger = HookLedger(state_dir / LEDGER_NAME)
        self._ledger.keep_only({hook_key(one) for one in settings})
        self._lines = [HookLine(make_hook(one), one, self._ledger, wall=clock.wall) for one in settings]
        self._violations = Violations()
        self._is_written = False

    def start(self, supervisor: Supervisor) -> None:
        """Begin to notice and to tell. Those who tell have deadlines of their own."""
        if not self._lines:
            return
        supervisor.add("notice bookings", self.notice, every_seconds=LOOK_SECONDS, deadline_seconds=30.0)
        for number, line in enumerate(self._lines):
            supervisor.add(
                f"hook {number}: {line.name}",
                line.tell_next,
                every_seconds=LOOK_SECONDS,
                deadline_seconds=None,
            )

    async def notice(self) -> None:
        """Let every hook have what has happened by now; ``Failed`` if it cannot be written down."""
        now = self._clock.wall()
        violations = self._violations.take(self._known.uses(), now)
        recent = now - LATE_SECONDS
        bookings = [
            one
            for one in self._known.bookings()
            if recent <= one.starts_at <= now or recent <= one.ends_at <= now or one.id in violations
        ]
        is_new = False
        for line in self._lines:
            due = due_events(
                bookings,
                violations,
                on=line.settings.on,
                since=line.since,
                violation_after_seconds=line.settings.violation_after_seconds,
                now=now,
            )
            for event in due:
                if line.wants(event):
                    herd = self._known.herd()
                    line.put(
                        event,
                        event_body(event, hub=self._hub_url(), label=herd.label, users=_users_in(herd)),
                    )
                    is_new = True
        # The first time also without news: since when a hook is there must be known after a restart.
        if is_new or not self._is_written:
            await self._ledger.save(now)
            self._is_written = True


def _users_in(herd: Herd) -> Callable[[DeviceRef], Iterable[str]]:
    def users(device: DeviceRef) -> Iterable[str]:
        listed = herd.devices.get(device)
        return () if listed is None else listed.users

    return users
