"""The hub's API as calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gpuherd.client.errors import OUTCOME_UNKNOWN, HubOutdated, HubRefused, HubSilent
from gpuherd.client.herd_views import Herd, Node
from gpuherd.client.line import HubLine
from gpuherd.client.usage_views import Stays, Trends, Usage
from gpuherd.client.views import (
    AcknowledgedFaults,
    Booking,
    BookingRules,
    Device,
    NewToken,
    Session,
    Timeline,
)
from gpuherd.model.text import clean

__all__ = ["HubClient"]

BOOK_PAUSES_SECONDS = (1.0, 3.0)
"""Pause before a booking whose answer was lost is sent again."""

T = TypeVar("T")


class HubClient:
    """Calls of one hub. Each raises ``HubRefused`` if the hub says no, ``HubSilent`` if it says nothing."""

    def __init__(self, line: HubLine, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.line = line
        self._sleep = sleep
        self.last_answer = b""
        """The body of the last answer as it came, for those who want all of it."""

    def session(self) -> Session:
        """Ask who one is."""
        return self._ask(Session, "GET", "session")

    def log_in(self, name: str, password: str) -> Session:
        """Log in with a password; what follows is asked with this login until ``log_out``."""
        return self._ask(Session, "POST", "session", {"name": name, "password": password})

    def log_out(self) -> None:
        """End the login."""
        self.line.ask("DELETE", "session")
        self.line.forget_cookies()

    def create_token(self, title: str, scopes: tuple[str, ...], days: int) -> NewToken:
        """Make an API token; needs a login, not a token."""
        return self._ask(NewToken, "POST", "account/tokens", {"title": title, "scopes": scopes, "days": days})

    def herd(self, *, node: str | None = None) -> Herd:
        """Give all nodes with their devices, processes and bookings, as of the hub's last tick.

        ``node``: only those that may be meant by this name, far cheaper in a large herd; an older hub gives all.
        """
        return self._ask(Herd, "GET", "fleet", node=node)

    def glance(self) -> Herd:
        """Give all nodes with what a look shows of them; far cheaper than the whole herd, which an older hub gives.

        Of processes only those that compute, without their command lines; of bookings those that run and the next.
        """
        from gpuherd.client.glance import Glance  # noqa: PLC0415 - most commands do not look

        try:
            glance = self._ask(Glance, "GET", "fleet/glance")
        except HubOutdated:
            return self.herd()
        try:
            return glance.herd()
        except (ValueError, OverflowError):
            raise self._strange() from None

    def node(self, node_id: str) -> Node:
        """Give one node as it is now; far cheaper than the whole herd."""
        return self._ask(Node, "GET", f"nodes/{node_id}")

    def forget_gpu(self, node_id: str, uuid: str) -> None:
        """Say that a missing GPU was taken out."""
        self.last_answer = self._answer("POST", f"nodes/{node_id}/forget-gpu", {"uuid": uuid}, {})

    def acknowledge_gpu(self, node_id: str, uuid: str) -> tuple[str, ...]:
        """Take the faults of a GPU as known; give what they were."""
        answer = self._ask(AcknowledgedFaults, "POST", f"nodes/{node_id}/acknowledge-gpu", {"uuid": uuid})
        return answer.faults

    def devices(self, now: int) -> tuple[Device, ...]:
        """Give every device that can be booked, a partitioned GPU as its slices."""
        return self.timeline(now, now + 1).devices

    def timeline(self, since: int, until: int, **wanted: Any) -> Timeline:
        """Tell what is booked from ``since`` to ``until``, UTC epoch seconds; ``wanted`` may name a node."""
        return self._ask(Timeline, "GET", "timeline", since=since, until=until, **wanted)

    def bookings(self, **wanted: Any) -> list[Booking]:
        """Give bookings, the newest first; ``wanted`` as the API has it: mine, node, since, until, state, limit."""
        return self._ask(list[Booking], "GET", "bookings", **wanted)

    def book(self, wish: dict[str, Any], *, repeats: bool = True) -> list[Booking]:
        """Book, all or nothing.

        If the answer is lost and ``repeats``, ask again with the same key, so that it is booked once. A hub that does
        not support keys is not asked again: the caller has to look whether it has booked.
        """
        key = os.urandom(16).hex()
        for pause_seconds in (*(BOOK_PAUSES_SECONDS if repeats else ()), None):
            try:
                return self._ask(list[Booking], "POST", "bookings", wish, idempotency_key=key)
            except (HubSilent, HubRefused) as error:
                if not _is_lost(error) or pause_seconds is None or not self._takes_keys():
                    raise
            self._sleep(pause_seconds)
        raise AssertionError("the last try returns or raises")

    def _takes_keys(self) -> bool:
        """Ask whether a booking can be repeated safely; if the hub does not answer, it cannot."""
        try:
            return self._ask(BookingRules, "GET", "booking-policy").takes_idempotency_keys
        except (HubSilent, HubRefused):
            return False

    def extend(self, booking_id: int, end: str, zone: str | None) -> Booking:
        """Give a booking a later end."""
        return self._ask(Booking, "POST", f"bookings/{booking_id}/extend", {"end": end, "zone": zone})

    def release(self, booking_id: int) -> Booking:
        """End a running booking now, or cancel one that has not begun."""
        return self._ask(Booking, "POST", f"bookings/{booking_id}/release")

    def cancel(self, booking_id: int, *, series: bool) -> list[Booking]:
        """Cancel a booking that has not begun, with ``series`` also all later ones of its week after week."""
        return self._ask(list[Booking], "POST", f"bookings/{booking_id}/cancel", {"series": series})

    def usage(self, **wanted: Any) -> Usage:
        """Tell who used how much; ``wanted`` as the API has it: by, from, to, user, group, node, type, job, limit."""
        return self._ask(Usage, "GET", "usage", **wanted)

    def trends(self) -> Trends:
        """Tell whom to ask for a GPU."""
        return self._ask(Trends, "GET", "usage/trends")

    def stays(self, **wanted: Any) -> Stays:
        """Tell who was on which device when; ``wanted`` as of ``usage``."""
        return self._ask(Stays, "GET", "usage/sessions", **wanted)

    def text(self, path: str, **wanted: Any) -> str:
        """Give what is no JSON, such as a table or a report."""
        self.last_answer = self._answer("GET", path, None, wanted)
        return self.last_answer.decode("utf-8", "replace")

    def _ask(
        self,
        kind: type[T],
        method: str,
        path: str,
        body: Any = None,
        *,
        idempotency_key: str | None = None,
        **query: Any,
    ) -> T:
        self.last_answer = self._answer(method, path, body, query, idempotency_key)
        try:
            return msgspec.json.decode(self.last_answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._strange() from None

    def _strange(self) -> HubSilent:
        return HubSilent(f"{self.line.url} responds, but not like a gpuherd hub of this version")

    def _answer(
        self,
        method: str,
        path: str,
        body: Any,
        query: dict[str, Any],
        idempotency_key: str | None = None,
    ) -> bytes:
        try:
            if idempotency_key is not None:
                return self.line.ask(method, path, body, idempotency_key=idempotency_key, **query)
            return self.line.ask(method, path, body, **query)
        except HubRefused as error:
            if error.detail.code not in ("not_found", "method_not_allowed"):
                raise
            told = clean(error.detail.message, 200)
            raise HubOutdated(
                f"{self.line.url} has no {method} /api/v1/{path} ({told}): check the address; if it is the hub's, the "
                "hub is older than this command needs, so update it"
            ) from None


def _is_lost(error: HubSilent | HubRefused) -> bool:
    """Whether this answer, or the lack of one, leaves open if the hub has done what was asked."""
    if isinstance(error, HubRefused):
        return error.detail.code == OUTCOME_UNKNOWN
    return not isinstance(error, HubOutdated)
