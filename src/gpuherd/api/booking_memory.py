"""What the hub knows of bookings without asking the records: kept up to date, and told to the live state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from gpuherd.api.booking_window import KEPT_SECONDS, BookingWindow
from gpuherd.api.record_calls import RecordCalls
from gpuherd.bookings.times import LATEST
from gpuherd.fleet.clock import Clock
from gpuherd.model.bookings import PAST_SHOWN_SECONDS, Booking, DeviceBookingFacts, DeviceRef
from gpuherd.model.people import HUB, Account
from gpuherd.records.bookings import BookingRecords

__all__ = ["BookedHerd", "BookingMemory", "People"]

HAND_OVER_SECONDS = 60.0
SHOWN_AHEAD = 4
"""Bookings of one device, the running one and the next, that the live state is told of at a time: as none is shorter
than a minute, it does not get through them before it is told again."""
CURRENT_SECONDS = 15.0
"""What was compared with the records longer ago is no longer called current."""


class BookedHerd(Protocol):
    """The live state as it is told of bookings."""

    def set_bookings(self, bookings: Iterable[DeviceBookingFacts]) -> None:
        """Know these bookings instead of those known before."""


class People(Protocol):
    """Accounts, in memory."""

    generation: int
    """Counted up whenever something about them has changed."""

    def account(self, account_id: str) -> Account | None:
        """Give an account."""

    def accounts(self) -> tuple[Account, ...]:
        """Give all accounts."""


class BookingMemory:
    """Follows the records by their revision, so that several hubs may write. Used on one event loop."""

    def __init__(
        self, *, records: BookingRecords, calls: RecordCalls, herd: BookedHerd, people: People, clock: Clock
    ) -> None:
        self._records = records
        self._calls = calls
        self._herd = herd
        self._people = people
        self._clock = clock
        self.window = BookingWindow()
        self._revision: int | None = None
        self._compared_at = -CURRENT_SECONDS
        self._handed_at = -HAND_OVER_SECONDS
        self._handed_generation = -1
        self._facts: dict[DeviceRef, tuple[DeviceBookingFacts, ...]] = {}

    @property
    def is_current(self) -> bool:
        """Whether the records were heard of lately."""
        return self._clock.monotonic() - self._compared_at < CURRENT_SECONDS

    @property
    def complete_from(self) -> int:
        """From when on everything is known here."""
        return int(self._clock.wall()) - KEPT_SECONDS

    async def refresh(self) -> None:
        """Read what has changed in the records and tell the live state; ``Failed`` if they do not answer.

        While they do not, everything here stays as it was last known.
        """
        now = int(self._clock.wall())
        if self._revision is None:
            revision, found = await self._calls.run(self._read_all)
        else:
            revision, found = await self._calls.run(self._read_changes, self._revision)
        if self._revision is None or revision < self._revision:
            self.window.clear()
        self.learn(found)
        self._revision, self._compared_at = revision, self._clock.monotonic()
        if any(one.state == "pending" and one.starts_at <= now for one in self.window):
            # Nobody has answered in time. Another hub may be quicker, then there is nothing left to do.
            self.learn(await self._calls.run(self._records.close_pending, now=now, by=HUB))
        self._hand_over(now)

    def learn(self, bookings: Iterable[Booking]) -> None:
        """Take in bookings as they are in the records."""
        for booking in bookings:
            if booking.ends_at > self.complete_from:
                self.window.put(booking)

    def users_of(self, booking: Booking) -> frozenset[str]:
        """Give who on the nodes may use what is booked: the holder, and everyone of its group."""
        owner = None if booking.owner_id is None else self._people.account(booking.owner_id)
        names: set[str] = set()
        if owner is not None:
            names.update(owner.linux_names)
        elif booking.origin == "comments":
            names.add(booking.owner_name)  # such a file names people as the nodes do
        if booking.group is not None:
            for account in self._people.accounts():
                if booking.group in account.groups:
                    names.update(account.linux_names)
        return frozenset(names)

    def _read_all(self) -> tuple[int, tuple[Booking, ...]]:
        revision = self._records.revision()
        return revision, self._records.overlapping(starts_at=max(0, self.complete_from), ends_at=LATEST)

    def _read_changes(self, since: int) -> tuple[int, tuple[Booking, ...]]:
        revision = self._records.revision()
        if revision == since:
            return revision, ()
        if revision < since:
            return self._read_all()  # a backup was restored
        return revision, self._records.changed_after(since)

    def _hand_over(self, now: int) -> None:
        """Tell the live state of the bookings around now: of devices where something changed; now and then of all."""
        moment, generation = self._clock.monotonic(), self._people.generation
        devices = self.window.take_touched()
        if moment - self._handed_at >= HAND_OVER_SECONDS or generation != self._handed_generation:
            self._handed_at, self._handed_generation = moment, generation
            self.window.forget_before(self.complete_from)
            devices = {*self.window.take_touched(), *self.window.devices(), *self._facts}
        if not devices:
            return
        users: dict[int, frozenset[str]] = {}
        for device in devices:
            facts = self._facts_of(device, users, now)
            if facts:
                self._facts[device] = facts
            else:
                self._facts.pop(device, None)
        self._herd.set_bookings([fact for facts in self._facts.values() for fact in facts])

    def _facts_of(
        self, device: DeviceRef, users: dict[int, frozenset[str]], now: int
    ) -> tuple[DeviceBookingFacts, ...]:
        known = self.window.of_device(device)
        past = [
            one for one in known if one.state == "active" and now - PAST_SHOWN_SECONDS < one.ends_at <= now
        ]
        ahead = [
            one
            for one in known
            if (one.state == "active" and one.ends_at > now)
            or (one.state == "pending" and one.starts_at > now)
        ]
        facts = []
        for booking in (*past[-1:], *ahead[:SHOWN_AHEAD]):
            if booking.id not in users:
                users[booking.id] = self.users_of(booking)
            facts.append(
                DeviceBookingFacts(
                    device=device,
                    booking_id=booking.id,
                    holder=booking.owner_name,
                    title=booking.title,
                    starts_at=booking.starts_at,
                    ends_at=booking.ends_at,
                    linux_names=users[booking.id],
                    is_pending=booking.state == "pending",
                )
            )
        return tuple(facts)
