"""Failed attempts, counted per sender and per name in bounded memory."""

from __future__ import annotations

import ipaddress
import unicodedata
from collections import OrderedDict

from msgspec import Struct

from gpuherd.model.errors import Refused

__all__ = ["FailedAttempts", "NameAttempts"]

MAX_FAILURES_BY_NAME = 5


class _Count(Struct):
    since: float
    failures: int = 0


class FailedAttempts:
    """Lets each sender fail ``limit`` times per window. ``clock`` gives monotonic seconds as an argument."""

    def __init__(
        self,
        *,
        limit: int = 20,
        window_seconds: float = 60.0,
        max_senders: int = 1024,
        whose: str = "from this address",
    ) -> None:
        self._limit = limit
        self._window_seconds = window_seconds
        self._max_senders = max_senders
        self._whose = whose
        self._counts: OrderedDict[str, _Count] = OrderedDict()
        self.total = 0

    def check(self, sender: str, now: float) -> None:
        """Raise ``Refused`` ``too_many_attempts`` if this sender has used up its failures."""
        count = self._counts.get(sender)
        if count is None:
            return
        if now - count.since > self._window_seconds:
            del self._counts[sender]
        elif count.failures >= self._limit:
            raise Refused(
                "too_many_attempts", f"too many failed attempts {self._whose}; wait a minute and try again"
            )

    def failed(self, sender: str, now: float) -> None:
        """Count a failure; the longest-known senders are forgotten first when there are too many."""
        self.total += 1
        count = self._counts.setdefault(sender, _Count(now))
        count.failures += 1
        while len(self._counts) > self._max_senders:
            self._counts.popitem(last=False)

    def forgive(self, sender: str) -> None:
        """Take back one failure."""
        count = self._counts.get(sender)
        if count is not None and count.failures > 0:
            self.total -= 1
            count.failures -= 1


class NameAttempts:
    """Lets a name be tried a few times per minute from one network, whoever checks the password.

    PAM and directories lock an account after some failures, for everything and everywhere: nobody shall be able to do
    that to others through us. An attempt counts as failed from its beginning on, or many at a time would all be let
    through; nothing but success takes that back, as what else ends it says little about what the service has counted.
    """

    def __init__(
        self, *, limit: int = MAX_FAILURES_BY_NAME, window_seconds: float = 60.0, max_names: int = 16_384
    ) -> None:
        self._attempts = FailedAttempts(
            limit=limit, window_seconds=window_seconds, max_senders=max_names, whose="with this name"
        )

    def begin(self, name: str, address: str, now: float) -> None:
        """Count an attempt; ``Refused`` ``too_many_attempts`` if there were too many. Takes monotonic seconds."""
        place = _name_at(name, address)
        self._attempts.check(place, now)
        self._attempts.failed(place, now)

    def succeeded(self, name: str, address: str) -> None:
        """Take an attempt back."""
        self._attempts.forgive(_name_at(name, address))


def _name_at(name: str, address: str) -> str:
    # As loosely as any directory compares names: Active Directory heeds neither capitals nor accents.
    letters = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold().strip()
    return f"{_network(address)} {plain[:128]}"


def _network(address: str) -> str:
    """Give the network of an address: what an office or a home has."""
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 24 if version == 4 else 48), strict=False))
