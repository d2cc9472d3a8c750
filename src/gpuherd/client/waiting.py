"""Waiting until something can be had: gently, honestly, and through the hub's absences."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from gpuherd.agent.backoff import Backoff
from gpuherd.client.booked_times import free_from
from gpuherd.client.choosing import Candidate, Search, Sorted, most_together, pool_of
from gpuherd.client.errors import HubOutdated, HubRefused
from gpuherd.client.look import Look
from gpuherd.model.errors import Failed

__all__ = ["Holder", "Pace", "Situation", "WaitedInVain", "situation_of", "wait_for"]

FIRST_SECONDS = 4.0
LONGEST_SECONDS = 15.0
JITTER = 0.25
LIKELY_COUNT = 2
_ALIVE_STATES = frozenset({"free", "busy", "held", "booked"})
T = TypeVar("T")


class WaitedInVain(Failed):
    """The time that someone was willing to wait is over."""


class Holder(Struct, frozen=True, kw_only=True):
    """A device that someone has, and until when by their booking; none if they have not said."""

    place: str
    who: str | None
    state: str
    since: float | None
    until: float | None


class Situation(Struct, frozen=True, kw_only=True):
    """How far one is from having what one waits for."""

    able_count: int
    known_count: int
    """All devices of the kind, in whatever state. Both count the most that could be had together."""
    likely: tuple[Holder, ...] = ()
    """Those that others have and that may be had next, the likeliest first."""
    free_at: float | None = None
    """When enough would be free by the bookings, by the hub's clock; none: nobody can tell."""


def situation_of(look: Look, found: Sorted, search: Search) -> Situation:
    """Tell how things stand, as far as bookings and processes tell it."""
    others = [one for of_reason in found.others.values() for one in of_reason]
    times = [(one, _free_at(look, one, search)) for one in others]
    taken = sorted((pair for pair in times if pair[0].gpu.state in _ALIVE_STATES), key=_likeliness)
    return Situation(
        able_count=most_together(found.able, search.wish),
        known_count=most_together(found.known, search.wish),
        likely=tuple(_holder(look, one, moment) for one, moment in taken[:LIKELY_COUNT]),
        free_at=_enough_at([*((one, look.now) for one in found.able), *times], search),
    )


def _free_at(look: Look, candidate: Candidate, search: Search) -> float | None:
    """Tell when a device is free by the bookings; none if it is in use by someone who has not booked it."""
    state = candidate.gpu.state
    if state not in _ALIVE_STATES or candidate.node.state != "live":
        return None
    spans = look.booked.of(candidate.gpu)
    is_used = state in ("busy", "held")
    if is_used and not any(span.starts_at <= look.now < span.ends_at for span in spans):
        return None
    moment = free_from(spans, look.now, search.seconds)
    return moment if moment > look.now else None


def _enough_at(times: Sequence[tuple[Candidate, float | None]], search: Search) -> float | None:
    pools: dict[tuple[str, str], list[float]] = {}
    for candidate, moment in times:
        if moment is not None:
            pools.setdefault(pool_of(candidate, search.wish), []).append(moment)
    count = search.wish.count
    return min((sorted(pool)[count - 1] for pool in pools.values() if len(pool) >= count), default=None)


def _likeliness(timed: tuple[Candidate, float | None]) -> tuple[float, bool, float]:
    candidate, moment = timed
    since = candidate.gpu.availability.since
    known = float("inf") if moment is None else moment
    return known, candidate.gpu.state != "held", float("inf") if since is None else since


def _holder(look: Look, candidate: Candidate, moment: float | None) -> Holder:
    spans = [span for span in look.booked.of(candidate.gpu) if span.starts_at <= look.now < span.ends_at]
    users = [user for user in candidate.gpu.users if user is not None]
    return Holder(
        place=candidate.place,
        who=users[0] if users else spans[0].holder if spans else None,
        state=candidate.gpu.state,
        since=candidate.gpu.availability.since,
        until=moment,
    )


class Pace:
    """How long to wait between two looks: a little longer each time, and never in step with others."""

    def __init__(self, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._uniform = uniform
        self._seconds = FIRST_SECONDS

    def next_seconds(self) -> float:
        """Give the next pause."""
        pause = self._seconds * self._uniform(1 - JITTER, 1 + JITTER)
        self._seconds = min(LONGEST_SECONDS, self._seconds * 1.3)
        return pause


def wait_for(
    attempt: Callable[[], T | None],
    *,
    timeout_seconds: float | None = None,
    on_trouble: Callable[[Failed | HubRefused | None], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
    uniform: Callable[[float, float], float] = random.uniform,
) -> T:
    """Try until it works; ``WaitedInVain`` after so long.

    While the hub is away, or knows nothing new, it is asked less and less often; ``on_trouble`` is told, and told none
    when all is well again. What a hub refuses for good is not tried again, nor where no hub has answered yet.
    """
    began, has_answered = monotonic(), False
    pace, backoff = Pace(uniform), Backoff(2.0, 60.0, uniform)
    while True:
        try:
            found = attempt()
        except (Failed, HubRefused) as error:
            if isinstance(error, HubOutdated) or (
                isinstance(error, HubRefused)
                and (error.is_final or (error.is_of_no_hub and not has_answered))
            ):
                raise
            on_trouble(error)
            pause = backoff.next_seconds()
        else:
            has_answered = True
            if backoff.failures:
                on_trouble(None)
                backoff.reset()
            if found is not None:
                return found
            pause = pace.next_seconds()
        if timeout_seconds is not None:
            left = timeout_seconds - (monotonic() - began)
            if left <= 0:
                raise WaitedInVain("timeout: not enough GPUs became free")
            pause = min(pause, left)
        sleep(pause)
