"""Bookings in the eyes of one viewer: names or pseudonyms, and what may be done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from gpuherd.bookings.herd import Herd
from gpuherd.bookings.rights import editor_of, is_own, may_edit
from gpuherd.bookings.views import (
    BookingConflict,
    BookingPhase,
    BookingView,
    TimelineBooking,
    TimelineDevice,
    TimelineView,
)
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.people import Viewer

__all__ = ["BookingFace", "conflicts_of"]

MAX_CONFLICTS = 20


class BookingFace:
    """What one viewer sees at one moment. ``pseudonym`` gives what a booking's holder is called in public."""

    def __init__(
        self, viewer: Viewer, herd: Herd, now: float, *, pseudonym: Callable[[Booking], str]
    ) -> None:
        self._account = viewer.account
        self._editor = editor_of(viewer)
        self._herd = herd
        self._now = now
        self._pseudonym = pseudonym
        self._is_public = viewer.privacy not in ("member", "admin")
        self._has_names = viewer.privacy in ("names", "member", "admin")

    def _holder(self, booking: Booking) -> str:
        return booking.owner_name if self._has_names else self._pseudonym(booking)

    def view(self, booking: Booking) -> BookingView:
        """Show a booking. The public view names every field that it shows: new ones stay hidden by themselves."""
        devices = tuple(self._herd.label(device) for device in booking.devices)
        phase = _phase(booking, self._now)
        if self._is_public:
            return BookingView(
                id=booking.id,
                title="",
                comment="",
                holder=self._holder(booking),
                owner_id=None,
                group=None,
                devices=devices,
                starts_at=booking.starts_at,
                ends_at=booking.ends_at,
                zone="UTC",
                state=booking.state,
                phase=phase,
                series_id=booking.series_id,
                released_from=None,
                origin=booking.origin,
                created_at=booking.created_at,
                changed_at=booking.changed_at,
                revision=booking.revision,
                is_own=False,
                may_edit=False,
            )
        return BookingView(
            id=booking.id,
            title=booking.title,
            comment=booking.comment,
            holder=booking.owner_name,
            owner_id=booking.owner_id,
            group=booking.group,
            devices=devices,
            starts_at=booking.starts_at,
            ends_at=booking.ends_at,
            zone=booking.zone,
            state=booking.state,
            phase=phase,
            series_id=booking.series_id,
            released_from=booking.released_from,
            origin=booking.origin,
            created_at=booking.created_at,
            changed_at=booking.changed_at,
            revision=booking.revision,
            is_own=is_own(booking, self._account),
            may_edit=may_edit(booking, self._editor, self._now),
        )

    def timeline(
        self,
        bookings: Iterable[Booking],
        *,
        since: int,
        until: int,
        nodes: Collection[str] | None,
        is_current: bool,
    ) -> TimelineView:
        """Show devices × time. Devices that are gone come last, and only if they are booked."""
        herd = self._herd
        lines = [
            TimelineDevice(
                node_id=device.ref.node_id,
                node_name=device.node_name,
                uuid=device.ref.uuid,
                index=device.index,
                parent_index=device.parent_index,
                short_name=device.short_name,
                is_quiet=device.ref in herd.quiet,
                is_gone=False,
            )
            for device in herd.lines
            if nodes is None or device.ref.node_id in nodes
        ]
        places = {(line.node_id, line.uuid): place for place, line in enumerate(lines)}
        bars = []
        for booking in sorted(bookings, key=_begin):
            drawn: list[int] = []
            for device in booking.devices:
                place = places.get((device.node_id, device.uuid))
                if place is not None:
                    drawn.append(place)
                elif nodes is None or device.node_id in nodes:
                    drawn += self._strange_places(device, places, lines)
            if drawn:
                bars.append(self._bar(booking, tuple(drawn)))
        return TimelineView(
            time=self._now,
            since=since,
            until=until,
            is_current=is_current,
            devices=tuple(lines),
            bookings=tuple(bars),
        )

    def _strange_places(
        self, device: DeviceRef, places: dict[tuple[str, str], int], lines: list[TimelineDevice]
    ) -> list[int]:
        """Give the lines of a device that has none of its own; one that is gone gets one."""
        # A GPU that was split after it was booked is booked with all its slices.
        slices = [places[part.node_id, part.uuid] for part in self._herd.slices_of(device)]
        if slices:
            return slices
        label = self._herd.label(device)
        places[device.node_id, device.uuid] = len(lines)
        lines.append(
            TimelineDevice(
                node_id=label.node_id,
                node_name=label.node_name,
                uuid=label.uuid,
                index=label.index,
                parent_index=label.parent_index,
                short_name=label.short_name,
                is_quiet=device in self._herd.quiet,
                is_gone=label.is_gone,
            )
        )
        return [len(lines) - 1]

    def _bar(self, booking: Booking, places: tuple[int, ...]) -> TimelineBooking:
        if self._is_public:
            return TimelineBooking(
                id=booking.id,
                title="",
                holder=self._holder(booking),
                group=None,
                starts_at=booking.starts_at,
                ends_at=booking.ends_at,
                state=booking.state,
                series_id=booking.series_id,
                revision=booking.revision,
                is_own=False,
                may_edit=False,
                devices=places,
            )
        return TimelineBooking(
            id=booking.id,
            title=booking.title,
            holder=booking.owner_name,
            group=booking.group,
            starts_at=booking.starts_at,
            ends_at=booking.ends_at,
            state=booking.state,
            series_id=booking.series_id,
            revision=booking.revision,
            is_own=is_own(booking, self._account),
            may_edit=may_edit(booking, self._editor, self._now),
            devices=places,
        )


def conflicts_of(
    bookings: Iterable[Booking], devices: Collection[DeviceRef], herd: Herd
) -> tuple[BookingConflict, ...]:
    """Tell which bookings are in the way of some devices, and on which of them; the first few."""
    wanted = set(devices)
    # A GPU that was booked before it was split is in the way of its slices, and they of it.
    wanted.update(herd.sharing_with(wanted))
    found = [
        BookingConflict(
            booking_id=booking.id,
            holder=booking.owner_name,
            starts_at=booking.starts_at,
            ends_at=booking.ends_at,
            device=herd.label(device),
        )
        for booking in bookings
        for device in booking.devices
        if device in wanted
    ]
    return tuple(found[:MAX_CONFLICTS])


def _begin(booking: Booking) -> tuple[int, int]:
    return booking.starts_at, booking.id


def _phase(booking: Booking, now: float) -> BookingPhase:
    if booking.ends_at <= now:
        return "past"
    return "current" if booking.starts_at <= now else "upcoming"
