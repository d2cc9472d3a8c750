"""Failed attempts, counted per sender and per name in bounded memory."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

from msgspec import Struct

from gpuherd.model.errors import Refused
from gpuherd.model.text import plain_name

__all__ = ["FailedAttempts", "NameAttempts"]

MAX_FAILURES_BY_NAME = 5
MAX_FAILURES_BY_NETWORK = 10


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
    """Limits how often a name can be tried per minute from one address and from one network.

    PAM and directories lock an account after some failures, for everything and everywhere: nobody shall be able to do
    that to others through us. An attempt counts as failed from its beginning on, or many at a time would all be let
    through; nothing but success takes that back, as what else ends it says little about what the service has counted.
    """

    def __init__(
        self,
        *,
        limit: int = MAX_FAILURES_BY_NAME,
        network_limit: int = MAX_FAILURES_BY_NETWORK,
        window_seconds: float = 60.0,
        max_names: int = 16_384,
    ) -> None:
        self._by_address, self._by_network = (
            FailedAttempts(
                limit=most, window_seconds=window_seconds, max_senders=max_names, whose="with this name"
            )
            for most in (limit, network_limit)
        )

    def begin(self, name: str, address: str, now: float) -> None:
        """Count an attempt; ``Refused`` ``too_many_attempts`` if there were too many. Takes monotonic seconds."""
        plain = plain_name(name)
        own, all_around = f"{_network(address, 32, 64)} {plain}", f"{_network(address, 24, 48)} {plain}"
        self._by_address.check(own, now)
        self._by_network.check(all_around, now)
        self._by_address.failed(own, now)
        self._by_network.failed(all_around, now)

    def succeeded(self, name: str, address: str) -> None:
        """Take an attempt back."""
        plain = plain_name(name)
        self._by_address.forgive(f"{_network(address, 32, 64)} {plain}")
        self._by_network.forgive(f"{_network(address, 24, 48)} {plain}")


def _network(address: str, ipv4_bits: int, ipv6_bits: int) -> str:
    """Return the network of an address with this prefix length."""
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return address
    bits = ipv4_bits if version == 4 else ipv6_bits
    return str(ipaddress.ip_network((address.partition("%")[0], bits), strict=False))
