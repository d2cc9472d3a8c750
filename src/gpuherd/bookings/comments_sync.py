"""From the entries of a comments.json to bookings: made once, changed when the file changes, never in anyone's way.

What the file said last time is remembered (``Taken``). Only what is different from that has effect, so that what people
do here with such a booking, as to extend or release it, stands until the file itself says something new.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from gpuherd.bookings.comments_json import CommentEntry, Comments, Complaint
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.texts import clean_comment, clean_title
from gpuherd.bookings.times import LATEST
from gpuherd.model.bookings import PAST_SHOWN_SECONDS, Booking, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Actor
from gpuherd.records.bookings import BookingDraft, BookingRecords, Conflict

__all__ = [
    "CommentsSync",
    "Owner",
    "Placed",
    "SyncOutcome",
    "Taken",
    "entry_key",
    "missing_from",
    "place_entries",
    "plain_host",
]


_NOT_PLAIN = re.compile(r"[^a-z0-9.-]+")


class Owner(Struct, frozen=True):
    """Whose a booking is: an account, or only a name."""

    account_id: str | None
    name: str


class Placed(Struct, frozen=True):
    """An entry and the devices that it means."""

    entry: CommentEntry
    devices: tuple[DeviceRef, ...]
    shared: tuple[DeviceRef, ...] = ()
    """Others that are of the same GPU, and that nobody else may hold then either."""


class Taken(Struct, frozen=True, kw_only=True):
    """What an entry said when it was last taken, and the booking that came of it; none if it was past."""

    name: str
    until: int
    comment: str
    booking_id: int | None
    account_id: str | None = None
    """Whose account the name meant; people may get one later."""
    devices: tuple[DeviceRef, ...] = ()
    """Those that host and index meant, sorted; a GPU may be exchanged later. None if it is not known any more."""


class SyncOutcome(Struct, frozen=True, kw_only=True):
    """What has come of a file."""

    taken: dict[str, Taken]
    made: tuple[Booking, ...]
    changed: tuple[Booking, ...]
    ended: tuple[Booking, ...]
    complaints: tuple[Complaint, ...]


def entry_key(entry: CommentEntry) -> str:
    """Give what an entry is remembered by."""
    return f"{entry.host}:{entry.index}"


def missing_from(comments: Comments) -> Callable[[str], bool]:
    """Tell of keys whether the file has no such entry. One that stands there, but cannot be read, is not missing."""
    there = {entry_key(entry) for entry in comments.entries}
    there |= {f"{complaint.host}:{complaint.index}" for complaint in comments.complaints}
    unreadable = {complaint.host for complaint in comments.complaints if complaint.index is None}
    return lambda key: key not in there and key.rpartition(":")[0] not in unreadable


def place_entries(
    entries: Iterable[CommentEntry], herd: Herd
) -> tuple[tuple[Placed, ...], tuple[Complaint, ...]]:
    """Find the devices that entries mean: hosts by their id, shown name or first part of it, GPUs by their index.

    A node may stand in the file under several names. Of entries that mean the same device the one with the latest end
    is placed, because what is over is often left standing.
    """
    hosts = _Hosts(herd)
    placed: list[Placed] = []
    complaints: list[Complaint] = []
    for entry in entries:
        try:
            devices = hosts.devices(entry.host, entry.index)
            placed.append(Placed(entry, devices, herd.sharing_with(devices)))
        except _NotFound as error:
            complaints.append(_complaint(entry, str(error)))
    doubles = _doubles(placed)
    for one, other in doubles.values():
        reason = (
            f"is the same GPU as {entry_key(other)}, which ends later or at the same time and is used; "
            "keep one of them"
        )
        complaints.append(_complaint(one, reason))
    return tuple(one for one in placed if entry_key(one.entry) not in doubles), tuple(complaints)


def _complaint(entry: CommentEntry, reason: str) -> Complaint:
    return Complaint(host=entry.host, index=str(entry.index), reason=reason, line=entry.line)


def _doubles(placed: Iterable[Placed]) -> dict[str, tuple[CommentEntry, CommentEntry]]:
    """Give by its key every entry whose device another one has, and that other one."""
    holders: dict[DeviceRef, CommentEntry] = {}
    doubles: dict[str, tuple[CommentEntry, CommentEntry]] = {}
    for one in sorted(placed, key=lambda one: -one.entry.until):
        other = next((holders[device] for device in one.devices if device in holders), None)
        if other is None:
            holders.update(dict.fromkeys(one.devices, one.entry))
        else:
            doubles[entry_key(one.entry)] = one.entry, other
    return doubles


class _NotFound(Exception):  # noqa: N818 - says what an entry is
    pass


class _Hosts:
    def __init__(self, herd: Herd) -> None:
        self._herd = herd
        self._gpus: dict[str, dict[int, DeviceRef]] = {}
        self._names: list[dict[str, set[str]]] = [{}, {}]
        for device in herd.devices.values():
            node_id = device.ref.node_id
            for known, names in zip(
                self._names,
                (
                    (node_id, device.node_name),
                    (node_id.partition(".")[0], device.node_name.partition(".")[0]),
                ),
                strict=True,
            ):
                for name in names:
                    known.setdefault(name.casefold(), set()).add(node_id)
            if device.parent_uuid is None:
                self._gpus.setdefault(node_id, {})[device.index] = device.ref

    def devices(self, host: str, index: int) -> tuple[DeviceRef, ...]:
        gpu = self._gpus.get(self._node(host), {}).get(index)
        if gpu is None:
            raise _NotFound(
                "this node has no GPU with that index; correct it, or wait until the node reports it"
            )
        parts = self._herd.slices_of(gpu) if self._herd.devices[gpu].is_partitioned else (gpu,)
        if not parts:
            raise _NotFound("this GPU is in MIG mode but has no slices; create slices, or remove the entry")
        if gpu in self._herd.quiet or not self._herd.quiet.isdisjoint(parts):
            raise _NotFound("this GPU is not bookable (bookings.quiet); remove the entry")
        return parts

    def _node(self, host: str) -> str:
        whole, first = host.casefold(), host.partition(".")[0].casefold()
        names = (
            (self._names[0], whole),
            (self._names[0], plain_host(host)),
            (self._names[1], whole),
            (self._names[1], first),
        )
        for known, name in names:
            found = known.get(name, set())
            if len(found) == 1:
                return next(iter(found))
            if found:
                raise _NotFound(
                    f"several nodes have that name ({', '.join(sorted(found)[:5])}); write the node's id"
                )
        raise _NotFound("there is no such node; correct the host, or wait until the node reports")


def plain_host(name: str) -> str:
    """Give a host's name as it looks in a node's id."""
    return _NOT_PLAIN.sub("-", name.casefold()).strip("-.")


class CommentsSync:
    """Does what a file says. Blocking."""

    def __init__(
        self, records: BookingRecords, *, owner_of: Callable[[str], Owner], zone: str, by: Actor
    ) -> None:
        """``owner_of`` finds the person whom a name means; ``by`` is who the audit log says did it."""
        self._records = records
        self._owner_of = owner_of
        self._zone = zone
        self._by = by

    def apply(
        self,
        placed: Iterable[Placed],
        before: Mapping[str, Taken],
        *,
        is_missing: Callable[[str], bool] = lambda _: False,
        now: float,
    ) -> SyncOutcome:
        """Take what is new or different; entries that cannot be had are told and left for the next time.

        ``is_missing`` tells by its key whether an entry is gone from the file; its booking then ends now.
        """
        work = _Work(self._records, self._zone, self._by, now)
        taken = dict(before)
        gone = {taken.pop(key).booking_id for key in filter(is_missing, before)}
        # The node may stand in the file under another name too, and that entry have the booking by now.
        gone -= {one.booking_id for one in taken.values()}
        for booking_id in gone:
            work.end(booking_id)
        for one in placed:
            key = entry_key(one.entry)
            known = before.get(key)
            owner = self._owner_of(one.entry.name)
            is_said = known is not None and _said(known) == (
                one.entry.name,
                one.entry.until,
                one.entry.comment,
            )
            devices = tuple(sorted(one.devices))
            is_moved = known is not None and known.devices not in ((), devices)
            if known is not None and is_said and not is_moved and known.account_id == owner.account_id:
                continue
            try:
                if known is not None and is_said:
                    booking_id = work.hand_over(known.booking_id, owner, one if is_moved else None)
                else:
                    booking_id = work.take(one, owner, None if known is None else known.booking_id)
            except Conflict as error:
                work.complain(one.entry, _in_the_way(error))
                if is_moved:
                    taken.pop(key)  # where it was, it has ended; next time it is asked for like a new one
            except Refused as error:
                work.complain(one.entry, str(error))
            else:
                taken[key] = Taken(
                    name=one.entry.name,
                    until=one.entry.until,
                    comment=one.entry.comment,
                    booking_id=booking_id,
                    account_id=owner.account_id,
                    devices=devices,
                )
        return SyncOutcome(
            taken=taken,
            made=tuple(work.made),
            changed=tuple(work.changed),
            ended=tuple(work.ended),
            complaints=tuple(work.complaints),
        )


class _Work:
    """One round, and what has come of it so far."""

    def __init__(self, records: BookingRecords, zone: str, by: Actor, now: float) -> None:
        self._records = records
        self._zone = zone
        self._by = by
        self._now = now
        self.made: list[Booking] = []
        self.changed: list[Booking] = []
        self.ended: list[Booking] = []
        self.complaints: list[Complaint] = []

    def complain(self, entry: CommentEntry, reason: str) -> None:
        self.complaints.append(_complaint(entry, f"{entry.name}: {reason}"))

    def take(self, placed: Placed, owner: Owner, known_id: int | None) -> int | None:
        """Bring the records to what an entry says and give its booking; ``Refused`` if they do not allow it."""
        entry = placed.entry
        until = min(entry.until, LATEST)
        there = self._there(placed, known_id)
        if until <= self._now:
            self.end(None if there is None else there.id)
            return self._show_past(placed, owner, until) if there is None and known_id is None else None
        if (
            there is None
            and known_id is None
            and (released := self._released(placed, owner, until)) is not None
        ):
            return released
        if there is not None and _is_of(there, owner) and there.devices == tuple(sorted(placed.devices)):
            changed = self._records.change(
                there.id,
                revision=None,
                now=self._now,
                by=self._by,
                title=clean_title(entry.comment),
                comment=_rest(entry.comment),
                ends_at=until,
                also_free=placed.shared if until > there.ends_at else (),
            )
            self.changed += [changed] if changed.revision != there.revision else []
            return there.id
        self.end(None if there is None else there.id)
        title, comment = clean_title(entry.comment), _rest(entry.comment)
        return self._create(owner, placed.devices, title, comment, until, placed.shared)

    def _show_past(self, placed: Placed, owner: Owner, until: int) -> int | None:
        """Book the last second of what ended lately, so that it is shown as past; when it began nobody knows."""
        if until <= self._now - PAST_SHOWN_SECONDS:
            return None
        draft = BookingDraft(
            title=clean_title(placed.entry.comment),
            comment=_rest(placed.entry.comment),
            owner_id=owner.account_id,
            owner_name=owner.name,
            devices=placed.devices,
            starts_at=until - 1,
            ends_at=until,
            zone=self._zone,
            origin="comments",
        )
        try:
            (made,) = self._records.create([draft], now=self._now, by=self._by)
        except Conflict:
            return None  # it is here already, or someone else had the device then
        self.made.append(made)
        return made.id

    def hand_over(self, booking_id: int | None, owner: Owner, moved: Placed | None) -> int | None:
        """Give a booking to the account that its holder has got by now, as it is; one that is over stays as it was.

        ``moved`` has other devices that the entry means by now; none if they are still the same.
        """
        booking = None if booking_id is None else self._records.get(booking_id)
        if booking is None or not self._is_ours(booking):
            return booking_id
        self.end(booking.id)
        devices, shared = (booking.devices, ()) if moved is None else (moved.devices, moved.shared)
        return self._create(owner, devices, booking.title, booking.comment, booking.ends_at, shared)

    def _create(
        self,
        owner: Owner,
        devices: tuple[DeviceRef, ...],
        title: str,
        comment: str,
        ends_at: int,
        shared: tuple[DeviceRef, ...] = (),
    ) -> int:
        # One that has just ended holds its last second, since a booking lasts a second at least.
        needed = {*devices, *shared}
        starts_at = max(
            [int(self._now), *(one.ends_at for one in self.ended if not needed.isdisjoint(one.devices))]
        )
        draft = BookingDraft(
            title=title,
            comment=comment,
            owner_id=owner.account_id,
            owner_name=owner.name,
            devices=devices,
            starts_at=starts_at,
            ends_at=max(ends_at, starts_at + 1),
            zone=self._zone,
            origin="comments",
        )
        (made,) = self._records.create([draft], now=self._now, by=self._by, also_free=shared)
        self.made.append(made)
        return made.id

    def end(self, booking_id: int | None) -> None:
        """End a booking that came from the file now, if it still runs; what people make of it stays theirs."""
        booking = None if booking_id is None else self._records.get(booking_id)
        if booking is None or not self._is_ours(booking):
            return
        ended = self._records.change(
            booking.id,
            revision=None,
            now=self._now,
            by=self._by,
            ends_at=max(int(self._now), booking.starts_at + 1),
            action="booking.release",
        )
        self.ended.append(ended)

    def _there(self, placed: Placed, known_id: int | None) -> Booking | None:
        """Give the booking that an entry has already: the remembered one, or one from a round that was broken off."""
        if known_id is not None:
            booking = self._records.get(known_id)
            return booking if booking is not None and self._is_ours(booking) else None
        now = int(self._now)
        meant = (*placed.devices, *placed.shared)
        running = self._records.overlapping(devices=meant, starts_at=now, ends_at=now + 1)
        return next((booking for booking in running if self._is_ours(booking)), None)

    def _released(self, placed: Placed, owner: Owner, until: int) -> int | None:
        """Give a booking that would have lasted just as long, had its holder not given it back here."""
        now = int(self._now)
        found = self._records.overlapping(
            devices=placed.devices, starts_at=max(0, now - 366 * 86_400), ends_at=now
        )
        same = [
            one
            for one in found
            if one.origin == "comments" and _is_of(one, owner) and one.released_from == until
        ]
        return same[-1].id if same else None

    def _is_ours(self, booking: Booking) -> bool:
        return booking.origin == "comments" and booking.state == "active" and booking.ends_at > self._now


def _said(taken: Taken) -> tuple[str, int, str]:
    return taken.name, taken.until, taken.comment


def _is_of(booking: Booking, owner: Owner) -> bool:
    if owner.account_id is not None:
        return booking.owner_id == owner.account_id
    return booking.owner_id is None and booking.owner_name == owner.name


def _rest(comment: str) -> str:
    """Give what does not fit into a title."""
    return "" if clean_title(comment) == comment else clean_comment(comment)


def _in_the_way(error: Conflict) -> str:
    others = ", ".join(dict.fromkeys(f"{one.owner_name} (booking {one.id})" for one in error.bookings[:3]))
    return f"is booked here already, by {others or 'someone'}; agree with them, or remove the entry"
