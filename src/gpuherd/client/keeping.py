"""A booking while a command runs: extended if that was asked for, and never at its end without a word."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from gpuherd.client.errors import HubRefused, HubSilent
from gpuherd.client.hub import HubClient
from gpuherd.client.views import Booking
from gpuherd.model.text import clean

__all__ = ["BookingKeeper"]

LEAD_SECONDS = 600.0
"""So long before its end a booking is extended, or its end told; of a short one, a quarter of its time."""
AGAIN_SECONDS = 30.0
LONGEST_SLEEP_SECONDS = 60.0
"""Clocks are set and machines sleep: look at the clock as often as that."""


class BookingKeeper:
    """Looks after one booking, on a thread of its own between ``start`` and ``stop``."""

    def __init__(
        self,
        hub: HubClient,
        booking: Booking,
        *,
        tell: Callable[[str], None],
        extend: str | None = None,
        zone: str | None = None,
        hub_now: Callable[[], float] = time.time,
    ) -> None:
        """``extend``: by how much, such as 2h. ``hub_now`` tells the time by the hub's clock."""
        self.booking = booking
        self._hub, self._tell, self._hub_now = hub, tell, hub_now
        self._extend, self._zone = extend, zone
        self._lead = _lead_of(booking.ends_at - booking.starts_at)
        self._is_told = False
        self._is_silence_told = self._is_fault_told = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="booking", daemon=True)

    def start(self) -> None:
        """Begin to look after it."""
        self._thread.start()

    def stop(self) -> None:
        """End; does not wait for a request that is under way."""
        self._stopped.set()

    def _keep(self) -> None:
        pause = 0.0
        while not self._stopped.wait(min(pause, LONGEST_SLEEP_SECONDS)):
            try:
                pause = self.step(self._hub_now())
            except Exception as error:  # noqa: BLE001 - whatever it is: the command runs on, and relies on us
                pause = AGAIN_SECONDS
                if not self._is_fault_told:
                    self._is_fault_told = True
                    with suppress(Exception):
                        self._say(f"could not be checked: {clean(str(error), 300)}")

    def step(self, now: float) -> float:
        """Do what is due at ``now``, by the hub's clock; give the seconds until something is due again."""
        left = self.booking.ends_at - now
        if left <= 0:
            if not self._is_told or self._extend is not None:
                self._say("has ended, but the command is still running; others may take the GPUs")
            self._is_told, self._extend = True, None
            return math.inf
        if left > self._lead:
            return left - self._lead
        if self._extend is not None:
            return self._try_to_extend(self._extend, left)
        if not self._is_told:
            self._is_told = True
            self._say(
                f"ends in {math.ceil(left / 60)} min; extend it with: gpuherd bookings extend {self.booking.id} 2h"
            )
        return left

    def _try_to_extend(self, by: str, left: float) -> float:
        before = self.booking.ends_at
        try:
            self.booking = self._hub.extend(self.booking.id, by, self._zone)
        except (HubSilent, HubRefused) as error:
            if isinstance(error, HubRefused) and error.is_final:
                self._extend, self._is_told = None, True
                self._say(
                    f"cannot be extended: {clean(str(error), 300)}; it ends in {math.ceil(left / 60)} min"
                )
                return left
            if not self._is_silence_told:
                self._is_silence_told = True
                self._say(f"could not be extended, retrying: {clean(str(error), 300)}")
            return min(AGAIN_SECONDS, max(1.0, left / 2))
        self._is_silence_told = False
        self._lead = _lead_of(self.booking.ends_at - before)
        return max(1.0, left)

    def _say(self, words: str) -> None:
        self._tell(f"booking {self.booking.id} {words}")


def _lead_of(seconds: int) -> float:
    return min(LEAD_SECONDS, max(seconds, 0) / 4)
