"""All that acts on bookings by itself: hooks that are told of them, and a comments.json that is read or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from gpuherd.api.booking_comments import CommentsExport, CommentsWatch, find_owner
from gpuherd.api.booking_desk import BookingDesk
from gpuherd.api.booking_hooks import BookingHooks
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.supervision import Supervisor
from gpuherd.bookings.comments_sync import CommentsSync
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.times import read_zone
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.views import FleetNotice
from gpuherd.model.bookings import Booking, BookingUse, DeviceRef
from gpuherd.model.people import Account, Actor
from gpuherd.records.bookings import BookingRecords

__all__ = ["BookingAttendants"]


class _Known:
    """Bookings and devices as the hub knows them."""

    def __init__(self, desk: BookingDesk, fleet: Fleet) -> None:
        self._desk = desk
        self._fleet = fleet

    def bookings(self) -> Iterable[Booking]:
        return self._desk.memory.window

    def uses(self) -> Mapping[tuple[int, DeviceRef], BookingUse]:
        return self._fleet.booking_uses()

    def herd(self) -> Herd:
        return self._desk.herd()


class BookingAttendants:
    """Built with the hub, and started with its loops."""

    def __init__(
        self,
        desk: BookingDesk,
        *,
        fleet: Fleet,
        records: BookingRecords,
        calls: RecordCalls,
        accounts: Callable[[], Iterable[Account]],
        user_of: Callable[[str], str],
        state_dir: Path,
        hub_url: Callable[[], str],
        clock: Clock,
    ) -> None:
        """``user_of`` gives the user whom a name stands for; ``Misconfigured`` if a hook cannot be had."""
        settings, known = desk.settings, _Known(desk, fleet)
        self._hooks = BookingHooks(settings.hooks, known, state_dir=state_dir, hub_url=hub_url, clock=clock)
        self._watch: CommentsWatch | None = None
        self._export: CommentsExport | None = None
        comments = settings.comments
        if comments is None:
            return
        zone = read_zone(comments.zone or settings.zone)
        if comments.file is not None:
            sync = CommentsSync(
                records,
                owner_of=lambda name: find_owner(name, accounts(), user_of),
                zone=zone.key,
                by=Actor(account_id=None, label=comments.file.name),
            )
            self._watch = CommentsWatch(
                comments.file,
                follows=comments.watch,
                zone=zone,
                state_dir=state_dir,
                known=known,
                sync=sync,
                calls=calls,
                clock=clock,
            )
        if comments.export is not None:
            self._export = CommentsExport(comments.export, zone=zone, known=known, clock=clock)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to attend. Each has deadlines of its own."""
        self._hooks.start(supervisor)
        for one in (self._watch, self._export):
            if one is not None:
                supervisor.add(
                    one.name, one.look, every_seconds=one.look_every_seconds, deadline_seconds=None
                )

    def notices(self) -> list[FleetNotice]:
        """Tell what everyone who looks should know."""
        return [] if self._watch is None else self._watch.notices()
