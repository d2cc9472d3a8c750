"""The time by which something may be forgotten for good: not one look at a clock that may be wrong."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gpuherd.history.tables.disk import write_whole

__all__ = ["TrustedTime"]

_log = logging.getLogger(__name__)

HOLD_SECONDS = 3600.0
"""A clock that was set is believed when it has run evenly for this long."""
STEP_SECONDS = 60.0
"""By less than this, a clock is put right while it runs."""
AHEAD_SECONDS = 2 * 86_400.0
"""At a start, a clock is believed at once that is no further than this beyond the last time that was trusted."""
NOTE_SECONDS = 600.0


class TrustedTime:
    """Tells by what time things are old; what deletes or takes names away goes by it. In one thread at a time.

    A wall clock may be wrong for a moment (a dead battery, a typing error, a virtual machine that was stopped), and
    what is deleted then is gone for good. So it must have agreed with the monotonic clock for an hour; and the last
    time that was trusted is kept, lest a hub that is started with a wrong clock believes it at once. A hub that was off
    for weeks deletes an hour later.
    """

    def __init__(
        self,
        place: Path,
        *,
        is_new: bool,
        wall: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
        of: str = "history",
    ) -> None:
        """``place``: the file to keep it in. ``is_new``: there is nothing yet that could be deleted.

        ``of``: names for the log what is deleted by this time.
        """
        self._of = of
        self._place = place
        self._wall = wall
        self._monotonic = monotonic
        self._kept = math.inf if is_new else _read(place)
        self._last: tuple[float, float] | None = None
        self._trusted_from = 0.0
        self._noted_at = -math.inf

    def __call__(self, now: float) -> float | None:
        """Give a time that was read off the wall clock if it is to be trusted, else none: nothing is old enough."""
        # Looked at anew: what was told may be from before work that took minutes, and that is no step.
        wall, moment = self._wall(), self._monotonic()
        if self._last is None:
            is_known = self._kept is not None and wall <= self._kept + AHEAD_SECONDS
            self._trusted_from = moment if is_known else moment + HOLD_SECONDS
            if not is_known:
                _log.info("%s: deleting nothing by age until the clock has been steady for an hour", self._of)
        else:
            stepped = (wall - self._last[0]) - (moment - self._last[1])
            if abs(stepped) > STEP_SECONDS:
                self._trusted_from = moment + HOLD_SECONDS
                _log.warning(
                    "%s: the clock has jumped by %.0f s; deleting nothing by age and assigning no new pseudonyms "
                    "until it has been steady for an hour",
                    self._of,
                    stepped,
                )
        self._last = (wall, moment)
        if moment < self._trusted_from:
            return None
        if moment >= self._noted_at + NOTE_SECONDS:
            self._noted_at = moment
            self._note(wall)
        # Read before the clock was set back, it would be beyond what is trusted.
        return min(now, wall)

    def _note(self, now: float) -> None:
        try:
            write_whole(self._place, msgspec.json.encode(now))
        except OSError as error:  # after the next start it takes an hour
            _log.info("%s: cannot write %s: %s", self._of, self._place, error.strerror)


def _read(place: Path) -> float | None:
    try:
        return msgspec.json.decode(place.read_bytes(), type=float)
    except (OSError, msgspec.DecodeError):
        return None
