"""The booking desk: takes wishes, checks them against the rules and has the records write them.

Blocking; called in threads. What needs the database to be sure (overlaps, what someone holds already) is decided there,
in the transaction that writes; everything else is decided here, before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zoneinfo import ZoneInfo

from msgspec import json

from gpuherd.bookings.asking import Asker, check_group, check_length, limits_of, not_past
from gpuherd.bookings.changes import BookingChanges
from gpuherd.bookings.choosing import (
    candidates,
    check_count,
    choose,
    named_devices,
    running_devices,
    whole_nodes,
)
from gpuherd.bookings.free_slots import SOON_SECONDS, add_split_gpus, find_slots
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.policy import Allowance, allowance_of, check_span
from gpuherd.bookings.refusals import Taken, Unfit
from gpuherd.bookings.requests import AnyDevices, BookingRequest, CopyRequest
from gpuherd.bookings.series import weekly_spans
from gpuherd.bookings.settings import BookingSettings
from gpuherd.bookings.slots import Span, booked_spans
from gpuherd.bookings.texts import clean_comment, clean_title
from gpuherd.bookings.times import read_end, read_start, read_zone
from gpuherd.bookings.wishes import read_wish
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Account
from gpuherd.records.booking_keys import BookingKey, key_of
from gpuherd.records.booking_limits import BookedSpan, Usage, check_limits
from gpuherd.records.booking_rows import HOLDING
from gpuherd.records.bookings import BookingDraft, BookingRecords

__all__ = ["Desk"]

RIVAL_ROUNDS = 5
"""How often devices are chosen anew when someone else was quicker."""


class Desk(BookingChanges):
    """Decides on bookings. Every verb is given the herd and the time (UTC seconds) as they are now."""

    def __init__(
        self,
        records: BookingRecords,
        settings: BookingSettings,
        account_of: Callable[[str], Account | None] = lambda _: None,
    ) -> None:
        super().__init__(records, settings, account_of)

    def book(
        self, request: BookingRequest, asker: Asker, herd: Herd, now: int, idempotency_key: str | None = None
    ) -> tuple[Booking, ...]:
        """Book, all or nothing; with ``dry_run`` only return what would be booked, with the id 0.

        A repeated request with the same key books nothing more and returns what the first one booked.
        """
        if idempotency_key is None or request.dry_run:
            return self._book(request, asker, herd, now, None)
        key = key_of(asker.account.id, idempotency_key, json.encode(request, order="sorted"))
        return self._once(key, lambda: self._book(request, asker, herd, now, key))

    def _once(self, key: BookingKey, make: Callable[[], tuple[Booking, ...]]) -> tuple[Booking, ...]:
        """Make bookings, unless a request with the same key already has."""
        if made := self._records.booked_with(key):
            return made
        try:
            return make()
        except Refused:
            # The conflict may be with what the same request has just booked.
            if made := self._records.booked_with(key):
                return made
            raise

    def _book(
        self, request: BookingRequest, asker: Asker, herd: Herd, now: int, key: BookingKey | None
    ) -> tuple[Booking, ...]:
        self.check_enabled()
        check_group(request.group, asker.account)
        zone = read_zone(request.zone or self._settings.zone)
        starts_at = not_past(read_start(request.start, now=now, zone=zone), now)
        ends_at = read_end(request.end, starts_at=starts_at, now=now, zone=zone)
        check_length(starts_at, ends_at)
        allowance = allowance_of(asker.account, self._settings)
        times = 1 if request.weekly is None else request.weekly.times
        spans = _spans(starts_at, ends_at, zone, times, allowance, now)
        draft = BookingDraft(
            title=clean_title(request.title),
            comment=clean_comment(request.comment),
            owner_id=asker.account.id,
            owner_name=request.group or asker.account.display_name,
            group=request.group,
            devices=(),
            starts_at=starts_at,
            ends_at=ends_at,
            zone=zone.key,
            state="pending" if allowance.needs_approval else "active",
        )
        ways = (request.any is not None, request.running, bool(request.devices or request.nodes))
        if sum(ways) > 1:
            message = "give only one of: devices and nodes, any, or running"
            raise Unfit("mixed_devices", message, path="any" if request.any is not None else "running")
        if request.any is not None:
            wish = read_wish(request.any) if isinstance(request.any, str) else request.any
            return self._book_any(wish, draft, spans, asker, herd, now, is_dry=request.dry_run, key=key)
        return self._create(
            _devices(request, asker, herd), draft, spans, asker, herd, now, is_dry=request.dry_run, key=key
        )

    def copy(
        self,
        booking_id: int,
        request: CopyRequest,
        asker: Asker,
        herd: Herd,
        now: int,
        idempotency_key: str | None = None,
    ) -> Booking:
        """Book the same devices for the asker at another time, for the same duration unless given.

        ``key`` is as in ``book``.
        """
        if idempotency_key is None:
            return self._copy(booking_id, request, asker, herd, now, None)[0]
        asked = json.encode(["copy", booking_id, request], order="sorted")
        key = key_of(asker.account.id, idempotency_key, asked)
        return self._once(key, lambda: self._copy(booking_id, request, asker, herd, now, key))[0]

    def _copy(
        self,
        booking_id: int,
        request: CopyRequest,
        asker: Asker,
        herd: Herd,
        now: int,
        key: BookingKey | None,
    ) -> tuple[Booking, ...]:
        first = self.get(booking_id)
        zone = read_zone(request.zone or first.zone)
        starts_at = not_past(read_start(request.start, now=now, zone=zone), now)
        lasts = (first.released_from or first.ends_at) - first.starts_at
        ends_at = starts_at + lasts
        if request.end is not None:
            ends_at = read_end(request.end, starts_at=starts_at, now=now, zone=zone)
        same = BookingRequest(
            devices=first.devices,
            start=starts_at,
            end=ends_at,
            zone=zone.key,
            title=first.title,
            comment=first.comment,
            group=first.group if first.group in asker.account.groups else None,
        )
        return self._book(same, asker, herd, now, key)

    def usage(self, account_id: str, now: int) -> Usage:
        """Tell what someone holds from now on."""
        return self._records.usage_ahead(account_id, now)

    # -- making ------------------------------------------------------------------------------------------------

    def _book_any(
        self,
        wish: AnyDevices,
        draft: BookingDraft,
        spans: Sequence[Span],
        asker: Asker,
        herd: Herd,
        now: int,
        *,
        is_dry: bool,
        key: BookingKey | None,
    ) -> tuple[Booking, ...]:
        able = candidates(herd, wish)
        quicker: Taken | None = None
        for _ in range(RIVAL_ROUNDS):
            found = [
                booking
                for span in spans
                for booking in self._records.overlapping(starts_at=span.starts_at, ends_at=span.ends_at)
            ]
            taken = booked_spans(found)
            add_split_gpus(taken, herd)
            free = frozenset(device.ref for device in able if device.ref not in taken)
            starts_now = draft.starts_at <= now + SOON_SECONDS
            chosen = choose(able, wish, is_free=free.__contains__, starts_now=starts_now)
            if chosen is None:
                raise self._too_few(wish, [device.ref for device in able], found, spans, herd, now)
            try:
                return self._create(
                    tuple(sorted(chosen)), draft, spans, asker, herd, now, is_dry=is_dry, key=key
                )
            except Taken as error:
                quicker = error
        raise quicker or AssertionError("a round was made")

    def _too_few(
        self,
        wish: AnyDevices,
        refs: Sequence[DeviceRef],
        found: Sequence[Booking],
        spans: Sequence[Span],
        herd: Herd,
        now: int,
    ) -> Taken:
        first, able = spans[0], frozenset(refs)
        next_free = None
        if len(spans) == 1:
            until = self.sight_ends_at(first.starts_at)
            ahead = booked_spans(self._records.overlapping(starts_at=first.starts_at, ends_at=until))
            add_split_gpus(ahead, herd)
            seconds = first.ends_at - first.starts_at
            slots = find_slots(
                herd, wish, ahead, seconds=seconds, since=first.starts_at, until=until, limit=1, now=now
            )
            next_free = slots[0].starts_at if slots else None
        what = f" of {wish.model}" if wish.model else ""
        where = " on one node" if wish.same_node else ""
        return Taken(
            f"fewer than {wish.count} devices{what} are free{where} at that time; choose fewer, or another time",
            bookings=tuple(booking for booking in found if not able.isdisjoint(booking.devices)),
            devices=tuple(refs),
            next_free=next_free,
            path="any",
        )

    def _create(
        self,
        devices: tuple[DeviceRef, ...],
        draft: BookingDraft,
        spans: Sequence[Span],
        asker: Asker,
        herd: Herd,
        now: int,
        *,
        is_dry: bool,
        key: BookingKey | None,
    ) -> tuple[Booking, ...]:
        limits = limits_of(allowance_of(asker.account, self._settings))
        drafts = [_with(draft, devices, span) for span in spans]
        with self.telling_conflicts(devices, spans, herd):
            shared = herd.sharing_with(devices)
            if not is_dry:
                return self._records.create(
                    drafts, now=now, by=asker.by, limits=limits, also_free=shared, key=key
                )
            for span in spans:
                self.check_free([*devices, *shared], span)
        if limits is not None:
            held = [
                BookedSpan(booking.starts_at, booking.ends_at, len(booking.devices))
                for booking in self._records.of_account(asker.account.id, since=now)
                if booking.owner_id == asker.account.id and booking.state in HOLDING
            ]
            wanted = [BookedSpan(span.starts_at, span.ends_at, len(devices)) for span in spans]
            check_limits(limits, held, wanted, now=now)
        return tuple(_imagined(one, now) for one in drafts)


def _spans(
    starts_at: int, ends_at: int, zone: ZoneInfo, times: int, allowance: Allowance, now: int
) -> list[Span]:
    check_span(allowance, starts_at=starts_at, ends_at=ends_at, now=now)
    if times == 1:
        return [Span(starts_at, ends_at)]
    spans = weekly_spans(starts_at, ends_at, zone=zone, times=times)
    check_span(
        allowance, starts_at=spans[-1].starts_at, ends_at=spans[-1].starts_at, now=now, path="weekly.times"
    )
    return spans


def _devices(request: BookingRequest, asker: Asker, herd: Herd) -> tuple[DeviceRef, ...]:
    if request.running:
        chosen = running_devices(herd, asker.account.linux_names)
    else:
        chosen = [*named_devices(herd, request.devices), *whole_nodes(herd, request.nodes)]
    if not chosen:
        message = "say what to book: devices, nodes, any (such as 2 x A100), or running"
        raise Unfit("no_devices", message, path="devices")
    check_count(set(chosen), path="running" if request.running else "nodes" if request.nodes else "devices")
    return tuple(sorted(set(chosen)))


def _with(draft: BookingDraft, devices: tuple[DeviceRef, ...], span: Span) -> BookingDraft:
    return BookingDraft(
        title=draft.title,
        comment=draft.comment,
        owner_id=draft.owner_id,
        owner_name=draft.owner_name,
        group=draft.group,
        devices=devices,
        starts_at=span.starts_at,
        ends_at=span.ends_at,
        zone=draft.zone,
        state=draft.state,
    )


def _imagined(draft: BookingDraft, now: int) -> Booking:
    return Booking(
        id=0,
        title=draft.title,
        comment=draft.comment,
        owner_id=draft.owner_id,
        owner_name=draft.owner_name,
        group=draft.group,
        devices=draft.devices,
        starts_at=draft.starts_at,
        ends_at=draft.ends_at,
        zone=draft.zone,
        state=draft.state,
        created_at=now,
        changed_at=now,
        revision=0,
    )
