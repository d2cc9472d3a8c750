"""How someone who waits is told what they wait for: one line that is kept up to date, or a few lines in a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from gpuherd.cli.asking import moment
from gpuherd.cli.saying import write
from gpuherd.cli.showing import Screen, ago, fitted
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.waiting import Holder, Situation

__all__ = ["Progress"]

QUIET_SECONDS = 60.0
"""Between two lines of a log, unless the hub goes or comes back."""
_CLEAR = "\r\x1b[K"


class Progress:
    """What is told on stderr meanwhile; stdout is for what was found."""

    def __init__(
        self,
        what: str,
        *,
        stream: TextIO | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``what`` says what is waited for, and where."""
        self._what = what
        self._stream = stream
        self._monotonic = monotonic
        shown = self._shown
        self._is_live = shown is not None and shown.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._last = ""
        self._last_at = -QUIET_SECONDS
        self._trouble: str | None = None

    @property
    def _shown(self) -> TextIO | None:
        """Where it is told: to stderr, whatever that is by now, unless a stream was named."""
        return sys.stderr if self._stream is None else self._stream

    def tell(self, situation: Situation, now: float) -> None:
        """Tell how things stand at ``now``, by the hub's clock."""
        self._show(f"waiting for {self._what}: {_words(situation, now)}")

    def tell_trouble(self, error: Exception | None) -> None:
        """Tell that the hub is away, or, by none, that it is back."""
        told = None if error is None else clean(str(error), 300)
        if told == self._trouble:
            return
        self._trouble = told
        words = "the hub is back" if told is None else f"{told}; still waiting"
        self._show(f"waiting for {self._what}: {words}", is_urgent=True)

    def end(self) -> None:
        """Take the line away."""
        if self._is_live and self._last:
            write(_CLEAR, self._stream)
            self._last = ""

    def _show(self, line: str, *, is_urgent: bool = False) -> None:
        shown = self._shown
        if self._is_live and shown is not None:
            self._last = line
            write(_CLEAR + fitted(line, max(8, Screen.of(shown).width - 1)).rstrip(" "), self._stream)
            return
        now = self._monotonic()
        if line != self._last and (is_urgent or now - self._last_at >= QUIET_SECONDS):
            self._last, self._last_at = line, now
            write(f"gpuherd: {line}\n", self._stream)


def _words(situation: Situation, now: float) -> str:
    parts = [f"{situation.able_count} of {situation.known_count} available"]
    parts += [_holder(holder, now) for holder in situation.likely]
    if situation.free_at is not None and situation.free_at > now:
        parts.append(f"bookings end {moment(int(situation.free_at))}")
    else:
        parts.append("no end time known")
    return " · ".join(parts)


def _holder(holder: Holder, now: float) -> str:
    who = "someone" if holder.who is None else clean(holder.who, 40)
    idle = "" if holder.since is None else f" for {ago(now - holder.since)}"
    how = {"held": f"held idle{idle}", "booked": "booked", "free": "booked"}.get(
        holder.state, f"{holder.state}{idle}"
    )
    return f"{clean(holder.place, 60)} {who}, {how}"
