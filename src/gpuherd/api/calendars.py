"""Calendars of bookings behind secret addresses: programs that read calendars can log in nowhere."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from gpuherd.api.errors import HttpError
from gpuherd.api.open_records import OpenRecords
from gpuherd.api.people_views import FeedView
from gpuherd.api.reception import actor_of
from gpuherd.api.record_calls import RecordCalls
from gpuherd.auth.secrets import digest, is_secret, new_id, new_secret
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.ical import PAST_SHOWN_SECONDS, CalendarFeed, write_calendar
from gpuherd.bookings.times import LATEST
from gpuherd.fleet.clock import Clock
from gpuherd.model.bookings import BookingState, DeviceRef
from gpuherd.model.people import Account, Viewer
from gpuherd.records.people import FeedKind, FeedRecord

__all__ = ["Calendars", "CreatedFeed", "FeedRequest", "LiveHerd"]

FEED_PREFIX = "ghf_"
MAX_FEEDS = 50
"""Of one account, at a time."""
_ALL_STATES: tuple[BookingState, ...] = ("active", "pending", "cancelled", "refused")


class FeedRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A calendar to create."""

    kind: Annotated[
        FeedKind,
        Meta(
            description="account: your own bookings and those of your groups; device: all bookings of one device."
        ),
    ] = "account"
    device: Annotated[DeviceRef | None, Meta(description="The device, for a device's calendar.")] = None


class CreatedFeed(Struct, frozen=True, kw_only=True):
    """A new calendar."""

    id: str
    kind: FeedKind
    device: DeviceRef | None
    created_at: Annotated[float, Meta(description="UTC epoch seconds.")]
    path: Annotated[
        str,
        Meta(description="Path of the address, with the secret in it. Shown only once; keep it to yourself."),
    ]


class LiveHerd(Protocol):
    """The devices as calendars need to know them."""

    def herd(self) -> Herd:
        """Give the devices as they are now."""


class People(Protocol):
    """Accounts, in memory."""

    def account(self, account_id: str) -> Account | None:
        """Give an account."""


class Calendars:
    """Makes calendars, and hands them out. Called on the event loop."""

    def __init__(
        self,
        *,
        records: OpenRecords,
        calls: RecordCalls,
        people: People,
        live: LiveHerd,
        mount: str,
        clock: Clock,
    ) -> None:
        self._people = records.people
        self._bookings = records.bookings
        self._calls = calls
        self._accounts = people
        self._live = live
        self._mount = mount
        self._clock = clock
        self._hub: str | None = None

    async def feeds(self, viewer: Viewer) -> list[FeedView]:
        """List one's own calendars, the newest first; never their addresses."""
        found = await self._calls.run(self._people.feeds, _own(viewer).id)
        return [
            FeedView(id=feed.id, kind=feed.kind, device=feed.device, created_at=feed.created_at)
            for feed in found
        ]

    async def create(self, viewer: Viewer, request: FeedRequest) -> CreatedFeed:
        """Make a calendar for oneself; ``HttpError`` 422 for a device that there is not."""
        own = _own(viewer)
        if (request.kind == "device") != (request.device is not None):
            told = "give the device" if request.kind == "device" else "only allowed with the kind device"
            raise HttpError(422, "device_needed", told, path="device")
        if request.device is not None and request.device not in self._live.herd().devices:
            message = "there is no such device; GET /api/v1/gpus lists them"
            raise HttpError(422, "unknown_device", message, path="device")
        secret, feed_id, now = new_secret(FEED_PREFIX), new_id(), self._clock.wall()
        await self._calls.run(
            partial(
                self._people.add_feed,
                id=feed_id,
                digest=digest(secret),
                account_id=own.id,
                kind=request.kind,
                device=request.device,
                created_at=now,
                by=actor_of(viewer),
                at_most=MAX_FEEDS,
            )
        )
        return CreatedFeed(
            id=feed_id,
            kind=request.kind,
            device=request.device,
            created_at=now,
            path=f"{self._mount}/api/v1/calendar/{secret}.ics",
        )

    async def end(self, viewer: Viewer, feed_id: str) -> None:
        """Void the address of one of one's own calendars; ``HttpError`` 404 for anyone else's."""
        ended = await self._calls.run(
            self._people.end_feed,
            feed_id,
            account_id=_own(viewer).id,
            now=self._clock.wall(),
            by=actor_of(viewer),
        )
        if not ended:
            raise HttpError(
                404, "unknown_feed", "you have no such calendar address; it may have been removed"
            )

    async def read(self, file_name: str) -> bytes:
        """Give the calendar at a secret address; ``HttpError`` 404 if nobody has it, or nobody any more."""
        secret = file_name.removesuffix(".ics")
        if secret == file_name or not is_secret(secret, FEED_PREFIX):
            raise _nothing_here()
        return await self._calls.run(self._read, digest(secret), self._live.herd(), self._clock.wall())

    # -- in a thread -------------------------------------------------------------------------------------------

    def _read(self, secret_digest: str, herd: Herd, now: float) -> bytes:
        # Found by the digest: how long that takes tells nothing about a secret that is stored.
        feed = self._people.feed(secret_digest)
        owner = None if feed is None else self._accounts.account(feed.account_id)
        if feed is None or owner is None or owner.is_disabled:
            raise _nothing_here()
        if self._hub is None:
            self._hub = hashlib.sha256(self._people.secret("calendar")).hexdigest()[:16]
        since = max(0, int(now) - PAST_SHOWN_SECONDS)
        if feed.device is None:
            bookings = self._bookings.of_account(owner.id, owner.groups, since=since)
        else:
            parts = (feed.device, *herd.slices_of(feed.device))
            bookings = self._bookings.overlapping(
                devices=parts, starts_at=since, ends_at=LATEST, states=_ALL_STATES
            )
        return write_calendar(bookings, self._described(feed, owner, herd, self._hub), now)

    def _described(self, feed: FeedRecord, owner: Account, herd: Herd, hub: str) -> CalendarFeed:
        if feed.device is None:
            name = f"GPUs of {owner.display_name or owner.name}"
            return CalendarFeed(name=name, hub=hub, device_name=herd.word, owner_id=owner.id)
        return CalendarFeed(name=herd.word(feed.device), hub=hub, device_name=herd.word)


def _nothing_here() -> HttpError:
    return HttpError(404, "not_found", "there is no calendar at this address; it may have been removed")


def _own(viewer: Viewer) -> Account:
    if viewer.account is None:  # the route asks for a login, so this is a mistake of ours
        raise HttpError(401, "login_needed", "log in first")
    return viewer.account
