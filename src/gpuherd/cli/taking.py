"""Taking devices rather than only naming them: under a lock, looked at twice, and booked if that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuherd.cli.asking import moment
from gpuherd.cli.choosing import Asked
from gpuherd.cli.interrupts import Interrupts
from gpuherd.cli.pick import taken_here
from gpuherd.cli.saying import say
from gpuherd.model.errors import GpuherdError, Refused
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.choosing import Candidate, Sorted
    from gpuherd.client.device_locks import DeviceLocks
    from gpuherd.client.holding import Holding
    from gpuherd.client.look import Look
    from gpuherd.client.views import Booking

__all__ = ["Taken", "Taking"]

MAX_ROUNDS = 5
"""So often within one try someone else may have been faster."""


class Taken(NamedTuple):
    """What was taken, by which look, and the booking if there is one."""

    look: Look
    chosen: tuple[Candidate, ...]
    booking: Booking | None


class Taking:
    """Tries to take what was asked for. Either all of it is taken, or nothing is left of the try."""

    def __init__(
        self,
        asked: Asked,
        interrupts: Interrupts,
        *,
        locks: DeviceLocks | None = None,
        holding: Holding | None = None,
        booking_wish: dict[str, Any] | None = None,
        ahead_seconds: int = 0,
        tell: Callable[[Look, Sorted], None] = lambda _look, _found: None,
    ) -> None:
        """``tell`` hears how things stand whenever there is not enough."""
        self._asked, self._interrupts = asked, interrupts
        self._locks, self._holding = locks, holding
        self._booking_wish = booking_wish or {}
        self._ahead_seconds = ahead_seconds
        self._tell = tell
        self._tried: Taken | None = None
        self.last: tuple[Look, Sorted] | None = None
        """What there was at the last look that did not suffice."""

    def attempt(self) -> Taken | None:
        """Try once; none if it cannot be had now."""
        settled = self._settled()
        if settled is not None:
            return settled
        look = self._asked.look(ahead_seconds=self._ahead_seconds)
        avoid: set[str] = set()
        for _ in range(MAX_ROUNDS):
            found = self._asked.sort(look, avoid=avoid | self._locked(look))
            self.last = (look, found)
            chosen = self._asked.choose(found)
            if chosen is None:
                break
            uuids = {candidate.gpu.uuid for candidate in chosen}
            if self._locks is not None:
                if not self._locks.take(uuids):
                    continue
                # What was free before the lock was had may have been taken by whoever had it.
                look = self._asked.look(ahead_seconds=self._ahead_seconds)
                able = {candidate.gpu.uuid for candidate in self._asked.sort(look, avoid=avoid).able}
                if not uuids <= able:
                    self._locks.release()
                    continue
            taken = self._booked(Taken(look, chosen, None))
            if taken is not None:
                return taken
            avoid |= uuids
            self._release_locks()
            look = self._asked.look(ahead_seconds=self._ahead_seconds)
        self._release_locks()
        if self.last is not None:
            self._tell(*self.last)
        return None

    def _locked(self, look: Look) -> frozenset[str]:
        if self._locks is None:
            return taken_here(self._asked, look)
        return self._locks.taken_elsewhere(one.gpu.uuid for one in self._asked.sort(look).able)

    def _booked(self, taken: Taken) -> Taken | None:
        """Book what was taken, if it is to be; none if someone else was faster."""
        if self._holding is None:
            return taken
        self._tried = taken
        with self._interrupts.held():
            booking = self._holding.book(_refs(taken.chosen), self._booking_wish)
        return None if booking is None else taken._replace(booking=booking)

    def _settled(self) -> Taken | None:
        """Find out what became of a booking that the hub did not answer to."""
        if self._holding is None or self._tried is None or not self._holding.is_unsure:
            return None
        with self._interrupts.held():
            booking = self._holding.settle()
        if booking is None:
            self._release_locks()
            return None
        return self._tried._replace(booking=booking)

    def check(self) -> None:
        """Find out before any waiting whether it can ever be had, and booked if it is to be.

        Raises ``Refused`` if there are too few such devices, however free they may become; or what the hub has against
        such a booking.
        """
        from gpuherd.client.choosing import most_together

        look = self._asked.look()
        found = self._asked.sort(look)
        wish = self._asked.search.wish
        usable = [one for one in found.known if self._holding is None or not look.booked.is_quiet(one.gpu)]
        most = most_together(usable, wish)
        if most < wish.count:
            error = self._asked.nothing(look, found)
            together = " together" if most < len(usable) else ""
            bookable = " that can be booked" if len(usable) < len(found.known) else ""
            number = f"there is only {most}" if most == 1 else f"there are only {most}"
            such = f"{number if most else 'there is none'} such{together}{bookable}"
            raise Refused("too_few_devices", f"{error}; {such}, so waiting is pointless")
        if self._holding is not None:
            self._try_to_book(usable[: wish.count])

    def _try_to_book(self, candidates: list[Candidate]) -> None:
        """Ask the hub whether such a booking would be within the rules; that it is taken now does not matter."""
        from gpuherd.client import HubRefused

        if self._asked.hub is None or not candidates:
            return
        wish = {**self._booking_wish, "devices": _refs(candidates), "start": "now", "dry_run": True}
        try:
            self._asked.hub.book(wish)
        except HubRefused as error:
            if error.detail.code != "conflict":
                raise

    def _release_locks(self) -> None:
        if self._locks is not None:
            self._locks.release()

    def give_back(self) -> None:
        """Give back the locks and the booking; what cannot be given back is told on stderr."""
        self._interrupts.finish()
        self._release_locks()
        if self._holding is None:
            return
        booking, count = self._holding.booking, self._interrupts.count
        try:
            self._holding.give_back(
                is_hurried=lambda: self._interrupts.count > count, on_trouble=lambda _: _tell_trouble(booking)
            )
        except GpuherdError as error:
            left = _left_booked(self._holding.booking or booking)
            say(f"gpuherd: {left} ({clean(str(error), 300)})")


def _refs(candidates: Iterable[Candidate]) -> list[dict[str, str]]:
    return [{"node_id": one.node.id, "uuid": one.gpu.uuid} for one in candidates]


def _tell_trouble(booking: Booking | None) -> None:
    what = "a booking that may exist" if booking is None else f"booking {booking.id}"
    say(f"gpuherd: {what} cannot be released yet; retrying until Ctrl-C")


def _left_booked(booking: Booking | None) -> str:
    if booking is None:
        return "cannot tell whether something was booked; check with: gpuherd bookings"
    return (
        f"booking {booking.id} could not be released; it ends {moment(booking.ends_at)}, or end it with: "
        f"gpuherd release {booking.id}"
    )
