"""The bookings that matter around now, in memory: the timeline and the live state read them without a database."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator

from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.records.booking_rows import HOLDING

__all__ = ["KEPT_SECONDS", "BookingWindow"]

KEPT_SECONDS = 10 * 86_400
"""How long bookings stay here after their end."""


def _begin(booking: Booking) -> tuple[int, int]:
    return booking.starts_at, booking.id


class BookingWindow:
    """All that hold devices now or later, or did until a few days ago. Used on one event loop."""

    def __init__(self) -> None:
        self._bookings: dict[int, Booking] = {}
        self._devices: dict[DeviceRef, list[Booking]] = {}
        self._touched: set[DeviceRef] = set()

    def put(self, booking: Booking) -> None:
        """Take in a booking as it is now; one that is older than what is known is dropped."""
        known = self._bookings.get(booking.id)
        if known is not None:
            if known.revision > booking.revision:
                return
            self._remove(known)
        if booking.state in HOLDING:
            self._bookings[booking.id] = booking
            for device in booking.devices:
                insort(self._devices.setdefault(device, []), booking, key=_begin)
            self._touched.update(booking.devices)

    def clear(self) -> None:
        """Forget everything."""
        self._touched.update(self._devices)
        self._bookings.clear()
        self._devices.clear()

    def forget_before(self, moment: int) -> None:
        """Drop those that ended before."""
        for booking in [one for one in self._bookings.values() if one.ends_at <= moment]:
            self._remove(booking)

    def _remove(self, booking: Booking) -> None:
        del self._bookings[booking.id]
        for device in booking.devices:
            left = [one for one in self._devices[device] if one.id != booking.id]
            if left:
                self._devices[device] = left
            else:
                del self._devices[device]
        self._touched.update(booking.devices)

    def get(self, booking_id: int) -> Booking | None:
        """Give one that holds its devices, as last known."""
        return self._bookings.get(booking_id)

    def __iter__(self) -> Iterator[Booking]:
        return iter(self._bookings.values())

    def __len__(self) -> int:
        return len(self._bookings)

    def take_touched(self) -> set[DeviceRef]:
        """Give the devices of which something has changed since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def devices(self) -> Iterable[DeviceRef]:
        """Give every device that is booked."""
        return self._devices.keys()

    def of_device(self, device: DeviceRef) -> list[Booking]:
        """Give a device's bookings by their start."""
        return self._devices.get(device, [])

    def between(self, since: int, until: int) -> list[Booking]:
        """Give those that touch a span."""
        return [one for one in self._bookings.values() if one.starts_at < until and one.ends_at > since]
