"""A booking that a command makes for as long as it needs it, and surely gives back.

A request that is not answered may have booked all the same. Therefore each booking carries a mark of its own, by which
it is found again: either it is taken over or it is given back, but never forgotten.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from gpuherd.client.errors import HubRefused, HubSilent
from gpuherd.client.hub import HubClient
from gpuherd.client.views import Booking
from gpuherd.model.errors import GpuherdError, Refused

__all__ = ["Holding"]

END_DEADLINE_SECONDS = 10.0
"""How long each try to give back may take: someone has pressed Ctrl-C."""
PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""Between tries to give back."""
REST_STEP_SECONDS = 0.1
_FOUND_LIMIT = 200


class Holding:
    """At most one booking at a time."""

    def __init__(self, hub: HubClient, *, words: str, sleep: Callable[[float], None] = time.sleep) -> None:
        """``words`` say in the booking's comment what made it."""
        self.booking: Booking | None = None
        self.is_unsure = False
        """A request was not answered, and nobody has looked yet what became of it."""
        self._hub = hub
        self._words = words
        self._sleep = sleep
        self._marks: set[str] = set()
        """Of requests that were not answered. A hub that hangs may come to them long after we have looked."""

    def book(self, devices: Sequence[dict[str, str]], wish: dict[str, Any]) -> Booking | None:
        """Book exactly these devices from now on; none if someone else was faster.

        ``HubSilent`` if the hub did not answer: then call ``settle`` before anything else. ``Refused`` if it would have
        to be approved first.
        """
        mark = f"{self._words} ({secrets.token_hex(6)})"
        self._marks.add(mark)
        self.is_unsure = True
        try:
            # Not repeated here: someone else may have started to use them. The caller checks with `settle`.
            wanted = {**wish, "devices": list(devices), "start": "now", "comment": mark}
            made = self._hub.book(wanted, repeats=False)
        except HubRefused as error:
            if not (error.is_final or error.is_unheard):  # it may have been done before it went wrong
                raise HubSilent(f"{self._hub.line.url} did not confirm the booking: {error}") from error
            self._marks.discard(mark)
            self.is_unsure = False
            if error.detail.code == "conflict":
                return None
            raise
        self.booking, self.is_unsure = made[0], False
        self._marks.discard(mark)
        return self._checked()

    def settle(self) -> Booking | None:
        """Find out what became of requests that were not answered; give the booking if there is one."""
        self._find(self._hub)
        return self._checked()

    def _find(self, hub: HubClient) -> None:
        """Take over a booking that was made unheard; others of which one hears late are given back."""
        if self._marks:
            found = hub.bookings(mine="true", since=int(time.time()) - 86_400, limit=_FOUND_LIMIT)
            for booking in found:
                if booking.comment in self._marks:
                    if self.booking is None:
                        self.booking = booking
                    else:
                        _release(hub, booking)
                    self._marks.discard(booking.comment)
        self.is_unsure = False

    def _checked(self) -> Booking | None:
        if self.booking is not None and self.booking.state == "pending":
            self.give_back()
            raise Refused(
                "needs_approval",
                "bookings need an admin's approval here, so you cannot book for right now; book ahead "
                "with gpuherd book, and leave out --book",
            )
        return self.booking

    def give_back(
        self,
        *,
        is_hurried: Callable[[], bool] = lambda: False,
        on_trouble: Callable[[GpuherdError], None] = lambda _: None,
    ) -> None:
        """End the booking, if there is one; ``HubSilent`` or ``HubRefused`` if that cannot be done.

        Tries several times, unless ``is_hurried``; ``on_trouble`` hears of the first that fails. What is over already
        is over.
        """
        hub = HubClient(self._hub.line.with_deadline(END_DEADLINE_SECONDS))
        for number, pause_seconds in enumerate((*PAUSES_SECONDS, None)):
            try:
                self._find(hub)
                if self.booking is not None:
                    _release(hub, self.booking)
            except (HubSilent, HubRefused) as error:
                is_final = isinstance(error, HubRefused) and error.is_final
                if is_final or pause_seconds is None or is_hurried():
                    raise
                if number == 0:
                    on_trouble(error)
                self._rest(pause_seconds, is_hurried)
            else:
                self.booking = None
                return

    def _rest(self, seconds: float, is_hurried: Callable[[], bool]) -> None:
        for _ in range(round(seconds / REST_STEP_SECONDS)):
            if is_hurried():
                return
            self._sleep(REST_STEP_SECONDS)


def _release(hub: HubClient, booking: Booking) -> None:
    try:
        hub.release(booking.id)
    except HubRefused as error:
        if error.status not in (404, 409) or not error.is_final:  # else it is over
            raise
