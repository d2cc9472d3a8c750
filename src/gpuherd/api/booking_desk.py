"""The booking desk on the event loop: its verbs run in threads, and what they change is known here at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

from gpuherd.api.booking_errors import telling_refusals
from gpuherd.api.booking_faces import BookingFace
from gpuherd.api.booking_memory import BookedHerd, BookingMemory, People
from gpuherd.api.errors import HttpError
from gpuherd.api.record_calls import RecordCalls
from gpuherd.bookings.asking import Asker
from gpuherd.bookings.desk import Desk
from gpuherd.bookings.filters import BookingFilter
from gpuherd.bookings.free_slots import ChosenSlot, add_split_gpus, find_slots
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.policy import allowance_of
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.requests import (
    AnyDevices,
    BookingChange,
    BookingRequest,
    Cancellation,
    CopyRequest,
    Decision,
    Extension,
)
from gpuherd.bookings.settings import BookingSettings
from gpuherd.bookings.slots import booked_spans
from gpuherd.bookings.times import LATEST
from gpuherd.bookings.views import BookingPolicy, BookingView, FreeSlot, TimelineView
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.bookings import Booking
from gpuherd.model.people import Account, Actor, Viewer
from gpuherd.records.bookings import BookingRecords

__all__ = ["BookingDesk", "LiveHerd"]

DAY = 86_400
MAX_TIMELINE_SECONDS = 400 * DAY
MAX_TIMELINE_BOOKINGS = 20_000
_TIMER_SECONDS = 0.01
"""How much earlier than the wall clock a timer may fire."""
SIGHT_DAYS = 400.0
"""How far ahead free slots are looked for if no horizon binds."""

T = TypeVar("T")


class LiveHerd(BookedHerd, Protocol):
    """The fleet as the desk needs it."""

    tick_number: int

    def listing(self) -> tuple[ListedDevice, ...]:
        """Give every device."""

    def public_holder(self, holder: str, users: Collection[str]) -> str:
        """Give what the holder of a booking is called in public."""


class BookingDesk:
    """Bookings for the HTTP resources."""

    def __init__(
        self,
        settings: BookingSettings,
        *,
        records: BookingRecords,
        calls: RecordCalls,
        herd: LiveHerd,
        people: People,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.memory = BookingMemory(records=records, calls=calls, herd=herd, people=people, clock=clock)
        self._records = records
        self._calls = calls
        self._live = herd
        self._clock = clock
        self._desk = Desk(records, settings, account_of=people.account)
        self._herd = Herd(())
        self._herd_tick = -1

    # -- reading -----------------------------------------------------------------------------------------------

    async def find(self, viewer: Viewer, wanted: BookingFilter) -> list[BookingView]:
        """Give the bookings that fit, the newest first."""
        account = viewer.account if wanted.is_mine else None
        if wanted.is_mine and account is None:
            return []
        named = None if wanted.uuid is None else self._herd_now().named(wanted.uuid)
        found = await self._calls.run(
            self._records.search,
            account_id=None if account is None else account.id,
            groups=() if account is None else account.groups,
            node_id=wanted.node_id if named is None else named.node_id,
            uuid=wanted.uuid if named is None else named.uuid,
            since=wanted.since,
            until=wanted.until,
            states=wanted.states,
            series_id=wanted.series_id,
            before_id=wanted.before_id,
            limit=wanted.limit,
        )
        face = self._face(viewer)
        return [face.view(booking) for booking in found]

    async def get(self, viewer: Viewer, booking_id: int) -> BookingView:
        """Give one."""
        with telling_refusals(self._herd_now()):
            booking = await self._calls.run(self._desk.get, booking_id)
        return self._face(viewer).view(booking)

    async def timeline(
        self, viewer: Viewer, since: int | None, until: int | None, nodes: Collection[str] | None
    ) -> TimelineView:
        """Give devices and the bookings that hold them within a span; around now, out of memory."""
        now = self._now()
        since = max(0, now - DAY) if since is None else since
        until = since + 8 * DAY if until is None else until
        with telling_refusals(self._herd_now()):
            _check_timeline(since, until)
            is_current, complete_from = self.memory.is_current, self.memory.complete_from
            found = {booking.id: booking for booking in self.memory.window.between(since, until)}
            if since < complete_from:
                past = await self._calls.run(
                    self._records.overlapping, starts_at=since, ends_at=min(until, complete_from)
                )
                found = {**{booking.id: booking for booking in past}, **found}
            if len(found) > MAX_TIMELINE_BOOKINGS:
                message = f"{len(found)} bookings are too many for one response; request a shorter time range"
                raise Unfit("too_long", message, path="until")
        # Thousands of bars take some tens of milliseconds, which the loop can spend on others in between.
        return await asyncio.to_thread(
            self._face(viewer).timeline,
            list(found.values()),
            since=since,
            until=until,
            nodes=nodes,
            is_current=is_current,
        )

    async def slots(
        self, viewer: Viewer, wanted: AnyDevices, *, seconds: int, since: int | None, limit: int
    ) -> list[FreeSlot]:
        """Find the next spans in which so many devices are free, as far ahead as the viewer may book."""
        herd, now = self._herd_now(), self._now()
        since = max(now, since or now)
        until = min(now + round(self._sight_days(viewer) * DAY), LATEST)
        bookings = self.memory.window.between(since, until + seconds)

        def find() -> list[ChosenSlot]:
            spans = booked_spans(bookings)
            add_split_gpus(spans, herd)
            return find_slots(
                herd, wanted, spans, seconds=seconds, since=since, until=until, limit=limit, now=now
            )

        with telling_refusals(herd):
            found = await asyncio.to_thread(find)  # not where the records are asked: they may be frozen
        return [
            FreeSlot(
                starts_at=slot.starts_at,
                ends_at=slot.starts_at + seconds,
                free_until=slot.free_until,
                devices=tuple(herd.label(device) for device in slot.devices),
            )
            for slot in found
        ]

    async def policy(self, viewer: Viewer) -> BookingPolicy:
        """Tell what the viewer may book, and what is used of it."""
        account = _account(viewer)
        allowance = allowance_of(account, self.settings)
        usage = await self._calls.run(self._desk.usage, account.id, self._now())
        return BookingPolicy(
            may_book=self.settings.enabled and viewer.may("member", "book"),
            is_exempt=allowance.is_exempt,
            horizon_days=allowance.horizon_days,
            max_days=allowance.max_days,
            max_devices=allowance.max_devices,
            gpu_hours_ahead=allowance.gpu_hours_ahead,
            needs_approval=allowance.needs_approval,
            devices_booked=usage.devices_at_once,
            gpu_hours_booked=usage.gpu_seconds_ahead / 3600,
            groups=account.groups,
            zone=self.settings.zone,
        )

    # -- writing -----------------------------------------------------------------------------------------------

    async def book(
        self, viewer: Viewer, request: BookingRequest, idempotency_key: str | None = None
    ) -> list[BookingView]:
        """Make one booking or a weekly series, all or nothing; with a key, at most once."""
        made = await self._decided(
            viewer, lambda asker, herd, now: self._desk.book(request, asker, herd, now, idempotency_key)
        )
        return self._shown(viewer, made)

    async def copy(
        self, viewer: Viewer, booking_id: int, request: CopyRequest, idempotency_key: str | None = None
    ) -> BookingView:
        """Book the same devices at another time; with a key, at most once."""
        made = await self._decided(
            viewer,
            lambda asker, herd, now: self._desk.copy(booking_id, request, asker, herd, now, idempotency_key),
        )
        return self._shown(viewer, [made])[0]

    async def change(self, viewer: Viewer, booking_id: int, change: BookingChange) -> BookingView:
        """Change one as a whole."""
        changed = await self._decided(
            viewer, lambda asker, herd, now: self._desk.change(booking_id, change, asker, herd, now)
        )
        return self._shown(viewer, [changed])[0]

    async def extend(self, viewer: Viewer, booking_id: int, extension: Extension) -> BookingView:
        """Give one a later end."""
        changed = await self._decided(
            viewer, lambda asker, herd, now: self._desk.extend(booking_id, extension, asker, herd, now)
        )
        return self._shown(viewer, [changed])[0]

    async def release(self, viewer: Viewer, booking_id: int) -> BookingView:
        """End a running one now; cancel one that has not begun. The answer comes when its devices are free."""
        changed = await self._decided(
            viewer, lambda asker, _, now: self._desk.release(booking_id, asker, now)
        )
        left_seconds = changed.ends_at - self._clock.wall()
        if changed.state == "active" and left_seconds > 0:  # released within its first second
            self.memory.learn([changed])
            await asyncio.sleep(min(1.0, left_seconds) + _TIMER_SECONDS)
        return self._shown(viewer, [changed])[0]

    async def cancel(self, viewer: Viewer, booking_id: int, request: Cancellation) -> list[BookingView]:
        """Cancel one that has not begun, and the later ones of its series if so wished."""
        changed = await self._decided(
            viewer, lambda asker, _, now: self._desk.cancel(booking_id, request, asker, now)
        )
        return self._shown(viewer, changed)

    async def decide(
        self, viewer: Viewer, booking_id: int, decision: Decision, *, is_approved: bool
    ) -> BookingView:
        """Approve or refuse a pending one."""
        changed = await self._decided(
            viewer,
            lambda asker, _, now: self._desk.decide(
                booking_id, decision, asker, now, is_approved=is_approved
            ),
        )
        return self._shown(viewer, [changed])[0]

    # -- in common ---------------------------------------------------------------------------------------------

    async def _decided(self, viewer: Viewer, verb: Callable[[Asker, Herd, int], T]) -> T:
        account, herd = _account(viewer), self._herd_now()
        by = Actor(account_id=account.id, label=account.name, peer=viewer.peer)
        with telling_refusals(herd):
            return await self._calls.run(verb, Asker(account=account, by=by), herd, self._now())

    def _shown(self, viewer: Viewer, bookings: Sequence[Booking]) -> list[BookingView]:
        self.memory.learn(booking for booking in bookings if booking.id)
        face = self._face(viewer)
        return [face.view(booking) for booking in bookings]

    def _face(self, viewer: Viewer) -> BookingFace:
        return BookingFace(viewer, self._herd_now(), self._clock.wall(), pseudonym=self._pseudonym)

    def _pseudonym(self, booking: Booking) -> str:
        """Call a holder as the same person's processes are called, where that is one user on the nodes."""
        return self._live.public_holder(booking.owner_name, self.memory.users_of(booking))

    def herd(self) -> Herd:
        """Give the devices that can be booked, as of the last tick."""
        return self._herd_now()

    def _herd_now(self) -> Herd:
        """Give the herd as of the last tick; made once a tick, however many ask."""
        if self._herd_tick != self._live.tick_number:
            self._herd_tick = self._live.tick_number
            self._herd = Herd(self._live.listing(), self.settings.quiet)
        return self._herd

    def _sight_days(self, viewer: Viewer) -> float:
        account = viewer.account
        horizon = None if account is None else allowance_of(account, self.settings).horizon_days
        return min(SIGHT_DAYS, horizon or (SIGHT_DAYS if account is not None else self.settings.horizon_days))

    def _now(self) -> int:
        return int(self._clock.wall())


def _account(viewer: Viewer) -> Account:
    if viewer.account is None:
        raise HttpError(401, "login_needed", "log in first")
    return viewer.account


def _check_timeline(since: int, until: int) -> None:
    if until <= since:
        raise Unfit("reversed", "until is not after since; choose a later until", path="until")
    if until - since > MAX_TIMELINE_SECONDS:
        raise Unfit("too_long", "a timeline can span at most 400 days", path="until")
