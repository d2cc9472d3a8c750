"""Bookings: the verbs on them. Blocking; one transaction each, with its lines in the audit log.

Every verb that writes begins by counting up the revision, so those of several hubs come one after the other: what a
verb has checked still holds when it writes. Should that ever fail, the database itself refuses overlaps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType, structs
from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, insert, or_, select, true, update
from sqlalchemy.exc import IntegrityError

from gpuherd.model.bookings import Booking, BookingState, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Actor
from gpuherd.records.audit import Deed, write_audit
from gpuherd.records.booking_checks import (
    check_change,
    check_draft,
    during,
    is_id,
    known_booking,
    of_devices,
    refuse_clashing_drafts,
    refuse_conflicts,
    spans_ahead,
)
from gpuherd.records.booking_keys import BookingKey, booked_with, forget_keys, keep_key
from gpuherd.records.booking_limits import BookedSpan, Limits, Usage, check_limits, usage_of
from gpuherd.records.booking_rows import (
    HOLDING,
    BookingDraft,
    Conflict,
    booking_of,
    booking_row,
    describe,
    describe_change,
    device_rows,
    read_bookings,
)
from gpuherd.records.tables import booking_devices, booking_revision, bookings
from gpuherd.records.transactions import BadText, count_change, lock, reading, revision_of, writing

__all__ = ["BookingDraft", "BookingRecords", "Conflict", "Holders", "Limits", "Usage"]


# Made once: putting a statement together costs more than carrying it out.
_ADD_BOOKING = insert(bookings).returning(bookings.c.id)
_ADD_DEVICES = insert(booking_devices)

MANY_DEVICES = 50
"""From which on it is quicker to read all bookings of a time and to leave out those of other devices."""


class Holders(NamedTuple):
    """Whose bookings are meant: those of an account, and those of any of these groups."""

    account_id: str
    groups: tuple[str, ...]


class BookingRecords:
    """The bookings' records. Database trouble is ``Failed``; a broken rule is ``Refused``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def revision(self) -> int:
        """Count of changes so far; cheap enough to ask every second."""
        return revision_of(self._engine, booking_revision)

    def create(
        self,
        drafts: Sequence[BookingDraft],
        *,
        now: float,
        by: Actor,
        limits: Limits | None = None,
        also_free: Collection[DeviceRef] = (),
        key: BookingKey | None = None,
    ) -> tuple[Booking, ...]:
        """Make all these bookings or none; several are a series. Nobody may hold ``also_free`` at their times either.

        If the same request was made before with the same ``key``, return what it made; ``KeyReused`` if it was another.

        ``Conflict`` if a device is held by someone at one of the times; ``Refused`` ``too_many_devices``,
        ``too_many_gpu_hours`` or ``too_many_bookings`` beyond the limits, which hold for each owner; ``no_devices``,
        ``reversed``, ``unknown_account``.
        """
        for draft in drafts:
            check_draft(draft)
        refuse_clashing_drafts(drafts)
        with self._writing() as connection:
            # The counter is also the lock: of two requests with one key, the second sees what the first has booked.
            revision = count_change(connection, booking_revision)
            if key is not None and (earlier := booked_with(connection, key)):
                return earlier
            for draft in drafts:
                if draft.state in HOLDING:
                    needed = (*draft.devices, *also_free)
                    refuse_conflicts(connection, needed, draft.starts_at, draft.ends_at)
            if limits is not None:
                self._check_limits(connection, drafts, limits, int(now))
            made: list[Booking] = []
            for draft in drafts:
                booking = booking_of(
                    draft, series_id=made[0].id if made else None, now=now, revision=revision
                )
                number = connection.execute(_ADD_BOOKING, booking_row(booking)).scalar_one()
                made.append(structs.replace(booking, id=number))
            if len(made) > 1:
                made[0] = structs.replace(made[0], series_id=made[0].id)
                connection.execute(
                    update(bookings).where(bookings.c.id == made[0].id).values(series_id=made[0].id)
                )
            connection.execute(
                _ADD_DEVICES,
                [row for booking in made for row in device_rows(booking, booking.devices)],
            )
            write_audit(
                connection,
                [Deed("booking.create", str(booking.id), describe(booking), by, now) for booking in made],
            )
            if key is not None:
                keep_key(connection, key, made[0].id, now=now)
            return tuple(made)

    def booked_with(self, key: BookingKey) -> tuple[Booking, ...]:
        """Return what a request with this key has booked, None if there was none; ``KeyReused`` as above."""
        with reading(self._engine) as connection:
            return booked_with(connection, key)

    def prune_keys(self, now: float) -> int:
        """Delete Idempotency keys that are too old and return their number; ``now`` must be trustworthy."""
        with writing(self._engine) as connection:
            return forget_keys(connection, now)

    def _check_limits(
        self, connection: Connection, drafts: Sequence[BookingDraft], limits: Limits, now: int
    ) -> None:
        for owner_id in {draft.owner_id for draft in drafts if draft.owner_id is not None}:
            wanted = [
                BookedSpan(draft.starts_at, draft.ends_at, len(set(draft.devices)))
                for draft in drafts
                if draft.owner_id == owner_id and draft.state in HOLDING
            ]
            check_limits(limits, spans_ahead(connection, owner_id, now), wanted, now=now)

    def change(
        self,
        id: int,  # noqa: A002 - what it is called everywhere
        *,
        revision: int | None,
        now: float,
        by: Actor,
        title: str | UnsetType = UNSET,
        comment: str | UnsetType = UNSET,
        group: str | UnsetType | None = UNSET,
        owner_name: str | UnsetType = UNSET,
        devices: Collection[DeviceRef] | UnsetType = UNSET,
        starts_at: int | UnsetType = UNSET,
        ends_at: int | UnsetType = UNSET,
        state: BookingState | UnsetType = UNSET,
        released_from: int | UnsetType | None = UNSET,
        limits: Limits | None = None,
        also_free: Collection[DeviceRef] = (),
        action: str = "booking.change",
    ) -> Booking:
        """Change what is given, as one; ``action`` is what the audit log calls it.

        ``revision`` is that of the booking the change was thought out for, or none to change it whatever it is now:
        ``Refused`` ``changed_meanwhile`` if it is another. Otherwise ``unknown_booking``, ``past`` (it has ended, or
        has begun and its start shall change), ``Conflict``, and as ``create``. A limit that was exceeded before
        forbids only to exceed it further; what has no owner counts as of whoever changes it.
        """
        given: dict[str, Any] = {
            name: value
            for name, value in (
                ("title", title),
                ("comment", comment),
                ("group", group),
                ("owner_name", owner_name),
                ("devices", devices if devices is UNSET else tuple(sorted(set(devices)))),
                ("starts_at", starts_at),
                ("ends_at", ends_at),
                ("state", state),
                ("released_from", released_from),
            )
            if value is not UNSET
        }
        with self._writing() as connection:
            lock(connection, booking_revision)
            before = known_booking(connection, id)
            if revision is not None and revision != before.revision:
                raise Refused("changed_meanwhile", "someone else has changed this booking; load it again")
            after = structs.replace(before, **given)
            if after == before:
                return before
            check_change(before, after, now)
            number = count_change(connection, booking_revision)
            after = structs.replace(after, changed_at=now, revision=number)
            if after.state in HOLDING:
                needed = (*after.devices, *also_free)
                refuse_conflicts(connection, needed, after.starts_at, after.ends_at, but=id)
                holder_id = after.owner_id or by.account_id
                if limits is not None and holder_id is not None:
                    check_limits(
                        limits,
                        spans_ahead(connection, holder_id, int(now), but=id),
                        [BookedSpan(after.starts_at, after.ends_at, len(after.devices))],
                        replaced=[BookedSpan(before.starts_at, before.ends_at, len(before.devices))]
                        if before.state in HOLDING
                        else [],
                        now=int(now),
                    )
            self._write_change(connection, before, after)
            write_audit(connection, [Deed(action, str(id), describe_change(before, after), by, now)])
            return after

    def _write_change(self, connection: Connection, before: Booking, after: Booking) -> None:
        # Devices that go are taken away first and those that come are added last: neither is ever seen at times that
        # are not its own.
        gone = set(before.devices) - set(after.devices)
        come = set(after.devices) - set(before.devices)
        if gone:
            connection.execute(
                delete(booking_devices).where(booking_devices.c.booking_id == before.id, of_devices(gone))
            )
        connection.execute(update(bookings).where(bookings.c.id == before.id).values(**booking_row(after)))
        if come:
            connection.execute(insert(booking_devices), device_rows(after, tuple(sorted(come))))

    def cancel_series(
        self, series_id: int, *, now: float, by: Actor, held_by: Holders | None, since: int = 0
    ) -> tuple[Booking, ...]:
        """Cancel those of a series that start at ``since`` or later, and give them; what has begun is left alone.

        Of the series only what is ``held_by`` these; none is everyone's.
        """
        return self._close(
            and_(
                true() if held_by is None else _is_of(held_by.account_id, held_by.groups),
                bookings.c.series_id == series_id,
                bookings.c.holds,
                bookings.c.starts_at > int(now),
                bookings.c.starts_at >= since,
            ),
            "cancelled",
            "booking.cancel",
            now=now,
            by=by,
        )

    def close_pending(self, *, now: float, by: Actor) -> tuple[Booking, ...]:
        """Refuse the requests whose start has passed without an answer, and give them."""
        return self._close(
            and_(bookings.c.state == "pending", bookings.c.starts_at <= int(now)),
            "refused",
            "booking.refuse",
            now=now,
            by=by,
        )

    def _close(
        self, condition: ColumnElement[bool], state: BookingState, action: str, *, now: float, by: Actor
    ) -> tuple[Booking, ...]:
        with self._writing() as connection:
            lock(connection, booking_revision)
            found = read_bookings(connection, condition)
            if not found:
                return ()
            revision = count_change(connection, booking_revision)
            connection.execute(
                update(bookings)
                .where(bookings.c.id.in_([booking.id for booking in found]))
                .values(state=state, holds=False, changed_at=now, revision=revision)
            )
            closed = [
                structs.replace(booking, state=state, changed_at=now, revision=revision) for booking in found
            ]
            write_audit(
                connection,
                [
                    Deed(action, str(new.id), describe_change(old, new), by, now)
                    for old, new in zip(found, closed, strict=True)
                ],
            )
            return tuple(closed)

    def get(self, id: int) -> Booking | None:  # noqa: A002
        """Give one booking."""
        found = self._read(bookings.c.id == id) if is_id(id) else ()
        return found[0] if found else None

    def changed_after(self, revision: int) -> tuple[Booking, ...]:
        """Give every booking, of any state, that has changed since then: all that a hub must read anew."""
        return self._read(bookings.c.revision > revision)

    def overlapping(
        self,
        *,
        devices: Collection[DeviceRef] | None = None,
        starts_at: int,
        ends_at: int,
        states: Collection[BookingState] = HOLDING,
    ) -> tuple[Booking, ...]:
        """Give the bookings of these devices, or of any, that touch this time; by their ids."""
        condition = and_(
            bookings.c.starts_at < ends_at, bookings.c.ends_at > starts_at, bookings.c.state.in_(states)
        )
        if devices is None:
            return self._read(condition)
        if len(devices) > MANY_DEVICES:
            wanted = frozenset(devices)
            return tuple(one for one in self._read(condition) if not wanted.isdisjoint(one.devices))
        theirs = select(booking_devices.c.booking_id).where(of_devices(devices), during(starts_at, ends_at))
        return self._read(and_(condition, bookings.c.id.in_(theirs)))

    def of_account(
        self, account_id: str, groups: Collection[str] = (), *, since: int | None = None
    ) -> tuple[Booking, ...]:
        """Give everything that someone, or one of these groups, has booked and that ends after ``since``."""
        condition = _is_of(account_id, groups)
        return self._read(condition if since is None else and_(condition, bookings.c.ends_at > since))

    def search(
        self,
        *,
        account_id: str | None = None,
        groups: Collection[str] = (),
        node_id: str | None = None,
        uuid: str | None = None,
        since: int | None = None,
        until: int | None = None,
        states: Collection[BookingState] | None = None,
        series_id: int | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> tuple[Booking, ...]:
        """Give the newest bookings that match everything asked for, newest first; ``before_id`` pages back.

        ``account_id`` and ``groups`` together ask for those of either; ``since`` and ``until`` for those that touch
        that time.
        """
        conditions: list[ColumnElement[bool]] = []
        if account_id is not None or groups:
            owners = [] if account_id is None else [account_id]
            conditions.append(or_(bookings.c.owner_id.in_(owners), bookings.c.group_name.in_(groups)))
        if node_id is not None or uuid is not None:
            device = select(booking_devices.c.booking_id)
            if node_id is not None:
                device = device.where(booking_devices.c.node_id == node_id)
            if uuid is not None:
                device = device.where(booking_devices.c.uuid == uuid)
            conditions.append(bookings.c.id.in_(device))
        if since is not None:
            conditions.append(bookings.c.ends_at > since)
        if until is not None:
            conditions.append(bookings.c.starts_at < until)
        if states is not None:
            conditions.append(bookings.c.state.in_(states))
        if series_id is not None:
            conditions.append(bookings.c.series_id == series_id)
        if before_id is not None:
            conditions.append(bookings.c.id < before_id)
        query = select(bookings.c.id).where(*conditions).order_by(bookings.c.id.desc()).limit(limit)
        try:
            with reading(self._engine) as connection:
                ids = connection.execute(query).scalars().all()
                return read_bookings(connection, bookings.c.id.in_(ids))[::-1]
        except BadText:
            return ()

    def usage_ahead(self, owner_id: str, now: float) -> Usage:
        """Give what someone holds from now on."""
        with reading(self._engine) as connection:
            return usage_of(spans_ahead(connection, owner_id, int(now)), now=int(now))

    def _read(self, condition: ColumnElement[bool]) -> tuple[Booking, ...]:
        with reading(self._engine) as connection:
            return read_bookings(connection, condition)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Write; what the database itself refuses is told as if it had been seen before."""
        with writing(self._engine) as connection:
            try:
                yield connection
            except IntegrityError as error:
                reason = str(error.orig)
                if "booking_conflict" in reason or "ex_booking_devices_overlap" in reason:
                    raise Conflict((), ()) from None
                if "booking_keys" in reason and "FOREIGN KEY" not in reason and "fk_" not in reason:
                    raise Refused(
                        "idempotency_key_in_use",
                        "another request with this Idempotency-Key is being processed; try again",
                    ) from None
                if "FOREIGN KEY" in reason or "fk_bookings_owner_id" in reason:
                    raise Refused(
                        "unknown_account", "the account that should own it no longer exists"
                    ) from None
                raise


def _is_of(account_id: str, groups: Collection[str]) -> ColumnElement[bool]:
    return or_(bookings.c.owner_id == account_id, bookings.c.group_name.in_(groups))
