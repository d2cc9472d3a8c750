"""Where a request really comes from: what proxies tell is believed only of those that are listed."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any, cast

from litestar import Request
from msgspec import Struct

from gpuherd.api.asgi import Scope
from gpuherd.api.legacy.gate import peer_address
from gpuherd.api.networks import Address, parse_networks

__all__ = ["SENDER_KEY", "Sender", "Senders", "sender_of"]

SENDER_KEY = "gpuherd.sender"

_TOLD_BY_PROXIES = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-real-ip"}
)
MAX_HOPS = 16
"""Addresses looked at in X-Forwarded-For, from its end."""


class Sender(Struct, frozen=True, kw_only=True):
    """Who is at the other end."""

    address: str
    """Of the person's machine as far as it can be known; "unknown" otherwise."""
    is_https: bool
    """Whether nobody on the way can read along."""
    is_local: bool
    """Whether it is a program on the hub's own machine, and none that passes on what others ask."""


class Senders:
    """Finds out the sender of each request."""

    def __init__(self, trusted_proxies: Iterable[str]) -> None:
        self._proxies = parse_networks(trusted_proxies, "hub.trusted_proxies")

    def is_proxy(self, address: Address | None) -> bool:
        """Tell whether what this address says about others is believed."""
        return address is not None and any(address in network for network in self._proxies)

    def of(self, scope: Scope) -> Sender:
        """Give the sender of a request."""
        peer = peer_address(scope)
        is_https = scope.get("scheme") in ("https", "wss")
        told = _told(scope)
        if told and self.is_proxy(peer):
            origin = self._origin(told.get(b"x-forwarded-for", ""))
            return Sender(
                address="unknown" if origin is None else str(origin),
                is_https=told.get(b"x-forwarded-proto", "").rpartition(",")[2].strip().lower() == "https",
                is_local=False,
            )
        return Sender(
            address="unknown" if peer is None else str(peer),
            is_https=is_https,
            # A proxy on this machine that is not listed: who asks is somebody else, and we do not know who.
            is_local=peer is not None and peer.is_loopback and not told,
        )

    def _origin(self, forwarded_for: str) -> Address | None:
        """Give the last address that is no proxy of ours: whatever stands before it, anyone could have written."""
        for hop in reversed(forwarded_for.rsplit(",", MAX_HOPS)):
            address = _address(hop.strip())
            if address is None or not self.is_proxy(address):
                return address
        return None


def sender_of(request: Request[Any, Any, Any]) -> Sender:
    """Give where this request comes from."""
    return cast("Sender", cast("dict[str, Any]", request.scope)[SENDER_KEY])


def _told(scope: Scope) -> dict[bytes, str]:
    """Give what proxies say, repeated headers joined as HTTP has it."""
    told: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _TOLD_BY_PROXIES:
            text = bytes(value).decode("latin-1")
            told[name] = f"{told[name]},{text}" if name in told else text
    return told


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
