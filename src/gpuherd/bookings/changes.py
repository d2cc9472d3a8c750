"""What can be done to a booking that exists. The past stays as it was; what has begun keeps its start and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import UNSET

from gpuherd.bookings.asking import Asker, check_group, check_length, limits_of, not_past
from gpuherd.bookings.choosing import check_count, named_devices
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.policy import Allowance, allowance_of, check_span, general_allowance, stricter
from gpuherd.bookings.refusals import Forbidden, Taken, Unfit, Untimely
from gpuherd.bookings.requests import BookingChange, Cancellation, Decision, Extension
from gpuherd.bookings.rights import is_editor
from gpuherd.bookings.settings import BookingSettings
from gpuherd.bookings.slots import Span, booked_spans, next_free
from gpuherd.bookings.texts import clean_comment, clean_title
from gpuherd.bookings.times import LATEST, read_end, read_start, read_zone
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Account
from gpuherd.records.bookings import BookingRecords, Conflict, Holders

__all__ = ["BookingChanges"]

SIGHT_SECONDS = 400 * 86_400
"""How far ahead to look for a time when all would be free."""


class BookingChanges:
    """The verbs on bookings that exist, and what they have in common with making one."""

    def __init__(
        self, records: BookingRecords, settings: BookingSettings, account_of: Callable[[str], Account | None]
    ) -> None:
        """``account_of`` gives an account by its id."""
        self._records = records
        self._settings = settings
        self._account_of = account_of

    def get(self, booking_id: int) -> Booking:
        """Give a booking; ``Refused`` ``unknown_booking`` if there is none."""
        found = self._records.get(booking_id)
        if found is None:
            raise Refused("unknown_booking", "there is no booking with this number")
        return found

    def change(self, booking_id: int, change: BookingChange, asker: Asker, herd: Herd, now: int) -> Booking:
        """Change a booking as one whole."""
        before = self._editable(booking_id, asker, now)
        if change.revision is not UNSET and change.revision != before.revision:
            raise Refused("changed_meanwhile", "someone else has changed this booking; load it again")
        given: dict[str, Any] = {}
        if change.title is not UNSET:
            given["title"] = clean_title(change.title)
        if change.comment is not UNSET:
            given["comment"] = clean_comment(change.comment)
        if change.group is not UNSET and change.group != before.group:
            check_group(change.group, asker.account)
            given["group"] = change.group
            given["owner_name"] = change.group or self._owner_name(before)
        span = self._changed_span(before, change, now)
        devices = self._changed_devices(before, change, herd, now)
        if (span, devices) != (Span(before.starts_at, before.ends_at), before.devices):
            given.update(starts_at=span.starts_at, ends_at=span.ends_at, devices=devices)
        return self._write(before, given, asker, herd, now)

    def extend(self, booking_id: int, extension: Extension, asker: Asker, herd: Herd, now: int) -> Booking:
        """Give a booking a later end; a duration counts from the end it has."""
        before = self._editable(booking_id, asker, now)
        if extension.revision not in (None, before.revision):
            raise Refused("changed_meanwhile", "someone else has changed this booking; load it again")
        zone = read_zone(extension.zone or before.zone)
        ends_at = read_end(extension.end, starts_at=before.ends_at, now=now, zone=zone)
        if ends_at <= before.ends_at:
            message = (
                "the new end is not later than the current one; to end earlier, change or release the booking"
            )
            raise Unfit("not_later", message, path="end")
        return self._write(before, {"ends_at": ends_at}, asker, herd, now, action="booking.extend")

    def release(self, booking_id: int, asker: Asker, now: int) -> Booking:
        """Give devices back: a running booking ends now, one that has not begun is cancelled.

        Times are whole seconds and a booking lasts at least one: a booking that began in this second ends with it.
        """
        before = self._editable(booking_id, asker, now)
        given: dict[str, Any] = {"state": "cancelled"}
        if before.starts_at <= now and before.state == "active":
            ends_at = max(now, before.starts_at + 1)
            if ends_at == before.ends_at:
                return before
            given = {"ends_at": ends_at, "released_from": before.ends_at}
        return self._records.change(
            before.id, revision=before.revision, now=now, by=asker.by, action="booking.release", **given
        )

    def cancel(self, booking_id: int, request: Cancellation, asker: Asker, now: int) -> tuple[Booking, ...]:
        """Cancel a booking that has not begun; if so wished with all later ones of its series.

        Each week of a series can be given to a group of its own: only those that the asker may change are cancelled.
        """
        if request.series:
            one = self.get(booking_id)
            self._check_editor(one, asker)
            if one.series_id is not None:
                account = asker.account
                cancelled = self._records.cancel_series(
                    one.series_id,
                    now=now,
                    by=asker.by,
                    since=one.starts_at,
                    held_by=None if account.role == "admin" else Holders(account.id, account.groups),
                )
                if not cancelled:
                    raise Untimely("past", "you have no upcoming booking in this series")
                return cancelled
        before = self._editable(booking_id, asker, now)
        if before.starts_at <= now:
            raise Untimely("begun", "this booking has started and cannot be cancelled; release it instead")
        return (
            self._records.change(
                before.id,
                revision=before.revision,
                now=now,
                by=asker.by,
                action="booking.cancel",
                state="cancelled",
            ),
        )

    def decide(
        self, booking_id: int, decision: Decision, asker: Asker, now: int, *, is_approved: bool
    ) -> Booking:
        """Approve or refuse a pending booking as it was read. That the asker is an admin is checked before."""
        before = self.get(booking_id)
        if before.state != "pending":
            raise Untimely("not_pending", f"this booking is not pending approval: it is {before.state}")
        return self._records.change(
            before.id,
            revision=decision.revision,
            now=now,
            by=asker.by,
            action="booking.approve" if is_approved else "booking.refuse",
            state="active" if is_approved else "refused",
        )

    # -- what making and changing have in common ---------------------------------------------------------------

    def check_enabled(self) -> None:
        """Raise ``Untimely`` if the hub takes no bookings."""
        if not self._settings.enabled:
            raise Untimely(
                "bookings_off", "bookings are turned off on this hub; an admin can set bookings.enabled"
            )

    def sight_ends_at(self, since: int) -> int:
        """Tell how far ahead free times are looked for."""
        return min(since + SIGHT_SECONDS, LATEST)

    def check_free(self, devices: Sequence[DeviceRef], span: Span, *, but: int = 0) -> None:
        """Raise ``Conflict`` if someone holds one of these then, besides the booking ``but``."""
        found = self._records.overlapping(devices=devices, starts_at=span.starts_at, ends_at=span.ends_at)
        in_the_way = tuple(booking for booking in found if booking.id != but)
        if in_the_way:
            held = {device for booking in in_the_way for device in booking.devices}
            raise Conflict(in_the_way, tuple(sorted(held.intersection(devices))))

    @contextmanager
    def telling_conflicts(
        self, devices: Sequence[DeviceRef], spans: Sequence[Span], herd: Herd, *, but: int = 0
    ) -> Iterator[None]:
        """Turn what the records say of a conflict into who, which devices, and when all would be free."""
        try:
            yield
        except Conflict as conflict:
            first = spans[0]
            until = self.sight_ends_at(first.starts_at)
            needed = [*devices, *herd.sharing_with(devices)]
            ahead = self._records.overlapping(devices=needed, starts_at=first.starts_at, ends_at=until)
            others = [booking for booking in ahead if booking.id != but]
            in_the_way = conflict.bookings or tuple(
                booking
                for booking in others
                if any(booking.starts_at < s.ends_at and booking.ends_at > s.starts_at for s in spans)
            )
            seconds = first.ends_at - first.starts_at
            raise Taken(
                _conflict_message(conflict, in_the_way, herd),
                bookings=in_the_way,
                devices=tuple(devices),
                next_free=next_free(
                    booked_spans(others), needed, seconds=seconds, since=first.starts_at, until=until
                )
                if len(spans) == 1
                else None,
                path="devices",
            ) from None

    # -- changing ----------------------------------------------------------------------------------------------

    def _check_editor(self, booking: Booking, asker: Asker) -> None:
        if not is_editor(booking, asker.account):
            raise Forbidden(
                "not_yours",
                f"this booking belongs to {booking.owner_name}; only its holder or an admin can change it",
            )

    def _editable(self, booking_id: int, asker: Asker, now: int) -> Booking:
        before = self.get(booking_id)
        self._check_editor(before, asker)
        if before.state in ("cancelled", "refused"):
            raise Untimely(before.state, f"this booking was {before.state}; make a new one")
        if before.ends_at <= now:
            raise Untimely("past", "this booking is over; the past cannot be changed")
        return before

    def _owner_name(self, booking: Booking) -> str:
        owner = None if booking.owner_id is None else self._account_of(booking.owner_id)
        return booking.owner_name if owner is None else owner.display_name

    def _allowance(self, booking: Booking, asker: Asker) -> Allowance:
        """Give what someone may make of a booking: it counts as its owner's, so no more than the owner may."""
        own = allowance_of(asker.account, self._settings)
        if own.is_exempt or booking.owner_id in (None, asker.account.id):
            return own
        owner = self._account_of(booking.owner_id)
        theirs = general_allowance(self._settings) if owner is None else allowance_of(owner, self._settings)
        return stricter(own, theirs)

    def _changed_span(self, before: Booking, change: BookingChange, now: int) -> Span:
        zone = read_zone(before.zone if change.zone is UNSET else change.zone)
        starts_at, ends_at = before.starts_at, before.ends_at
        if change.start is not UNSET:
            starts_at = read_start(change.start, now=now, zone=zone)
            if before.starts_at > now:
                starts_at = not_past(starts_at, now)
            elif starts_at != before.starts_at:
                raise Untimely("begun", "this booking has started; its start cannot be changed", path="start")
        if change.end is not UNSET:
            ends_at = read_end(change.end, starts_at=starts_at, now=now, zone=zone)
            if ends_at <= now:
                raise Unfit("in_the_past", "the end has passed; to end now, release the booking", path="end")
        if (starts_at, ends_at) != (before.starts_at, before.ends_at):
            check_length(starts_at, ends_at, path="start" if change.end is UNSET else "end")
        return Span(starts_at, ends_at)

    def _changed_devices(
        self, before: Booking, change: BookingChange, herd: Herd, now: int
    ) -> tuple[DeviceRef, ...]:
        if change.devices is UNSET:
            return before.devices
        kept = set(before.devices)
        # One by one, so that a complaint names the right place; those it has already may be gone by now.
        chosen = {
            part
            for number, ref in enumerate(change.devices)
            for part in ([ref] if ref in kept else named_devices(herd, [ref], path="devices", first=number))
        }
        if chosen != kept and before.starts_at <= now:
            message = (
                "this booking has started; its GPUs cannot be changed. Release it and make a new booking"
            )
            raise Untimely("begun", message, path="devices")
        check_count(chosen)
        return tuple(sorted(chosen))

    def _write(
        self,
        before: Booking,
        given: dict[str, Any],
        asker: Asker,
        herd: Herd,
        now: int,
        *,
        action: str = "booking.change",
    ) -> Booking:
        span = Span(given.get("starts_at", before.starts_at), given.get("ends_at", before.ends_at))
        devices: tuple[DeviceRef, ...] = given.get("devices", before.devices)
        takes_time = span.starts_at < before.starts_at or span.ends_at > before.ends_at
        takes_more = takes_time or not set(devices) <= set(before.devices)
        limits = None
        if takes_more:
            self.check_enabled()
            allowance = self._allowance(before, asker)
            if takes_time and not allowance.is_exempt:
                _check_not_quiet(devices, before, span, herd)
            _check_change_allowed(allowance, before, span, now)
            limits = limits_of(allowance)
        with self.telling_conflicts(devices, [span], herd, but=before.id):
            return self._records.change(
                before.id,
                revision=before.revision,
                now=now,
                by=asker.by,
                limits=limits,
                action=action,
                also_free=herd.sharing_with(devices) if takes_more else (),
                **given,
            )


def _check_change_allowed(allowance: Allowance, before: Booking, span: Span, now: int) -> None:
    # What was allowed once is not taken back: the horizon binds only a start that is moved.
    horizon = allowance if span.starts_at != before.starts_at else Allowance(max_days=allowance.max_days)
    check_span(horizon, starts_at=span.starts_at, ends_at=span.ends_at, now=now)
    if allowance.needs_approval and before.state == "active":
        # To ask again would put what was approved at risk: nobody might answer before it starts.
        raise Untimely(
            "needs_approval",
            "only an admin can extend an approved booking; make a second booking, or ask an admin",
            path="end",
        )


def _check_not_quiet(devices: Sequence[DeviceRef], before: Booking, span: Span, herd: Herd) -> None:
    # What was booked before it was kept out of booking may be used up, and no longer.
    for ref in devices:
        if ref in herd.quiet:
            raise Unfit(
                "quiet_device",
                f"{herd.word(ref)} is no longer bookable; leave it out, or stay within the current time",
                path="end" if span.ends_at > before.ends_at else "start",
            )


def _conflict_message(conflict: Conflict, in_the_way: Sequence[Booking], herd: Herd) -> str:
    if not in_the_way:
        return str(conflict)
    first = in_the_way[0]
    shared = [ref for ref in first.devices if ref in conflict.devices] or first.devices
    what = herd.word(shared[0])
    others = len(conflict.devices) - 1
    what += f" and {others} more are" if others else " is"
    return f"{what} booked at that time by {first.owner_name}; choose other GPUs or another time"
