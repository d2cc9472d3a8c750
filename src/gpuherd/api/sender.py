"""Where a request really comes from: what proxies tell is believed only of those that are listed."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Any, cast

from litestar.connection import ASGIConnection
from msgspec import Struct

from gpuherd.api.asgi import Scope, header
from gpuherd.api.legacy.gate import peer_address
from gpuherd.api.networks import Address, parse_networks

__all__ = ["SENDER_KEY", "Sender", "Senders", "place_of", "sender_of"]

SENDER_KEY = "gpuherd.sender"

_TOLD_BY_PROXIES = frozenset(
    {
        *(b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"x-cluster-client-ip"),
        *(b"cf-connecting-ip", b"true-client-ip"),
    }
)
"""Besides all that begin with X-Forwarded."""
_LOOPBACKS = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
_LOCAL_HOST = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
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
    is_proxy: bool = False
    """Whether it is a listed proxy itself that asks."""
    is_certain: bool = False
    """Whether ``address`` is that of the client: told by a listed proxy, or of a connection that no proxy made."""

    @property
    def has_place(self) -> bool:
        """Whether a place in the login queue is reserved for it: it is a program on the hub's own machine."""
        return self.is_local and not self.is_proxy

    @property
    def place(self) -> str:
        """The key under which a sender is counted: its address; with IPv6 its /64, which one machine may own."""
        return place_of(self.address)


class Senders:
    """Finds out the sender of each request."""

    def __init__(self, trusted_proxies: Iterable[str]) -> None:
        self._proxies = parse_networks(trusted_proxies, "hub.trusted_proxies")

    def is_proxy(self, address: Address | None) -> bool:
        """Tell whether what this address says about others is believed."""
        return address is not None and any(address in network for network in self._proxies)

    def is_own_program(self, scope: Scope) -> bool:
        """Tell whether a program on the hub's own machine asks the loopback address, and surely not for others.

        A proxy on this machine either says for whom it asks, or is listed, or passes on the name that people typed.
        """
        host = (header(scope, b"host") or "").lower().removesuffix(".")
        if not _LOCAL_HOST.fullmatch(host):
            return False
        has_local_proxy = any(
            network.is_loopback
            or any(network.version == own.version and own in network for own in _LOOPBACKS)
            for network in self._proxies
        )
        return not has_local_proxy and self.of(scope).is_local

    def of(self, scope: Scope) -> Sender:
        """Give the sender of a request."""
        peer = peer_address(scope)
        is_https = scope.get("scheme") in ("https", "wss")
        told = _told(scope)
        if told and self.is_proxy(peer):
            origin = self._origin(told.get(b"x-forwarded-for", ""))
            return Sender(
                address="unknown" if origin is None else str(origin),
                is_https=_came_by_https(scope, told),
                is_local=False,
                is_certain=origin is not None,
            )
        is_loopback = peer is not None and peer.is_loopback
        # A proxy on this machine that is not listed: who asks is somebody else, and we do not know who. nginx says
        # nothing by default; before 1.29.7 it speaks HTTP/1.0, which Granian calls 1; no program of today does.
        is_passed_on = bool(told) or (is_loopback and scope.get("http_version") in ("1", "1.0"))
        return Sender(
            address="unknown" if peer is None else str(peer),
            is_https=is_https,
            is_local=is_loopback and not is_passed_on,
            is_proxy=self.is_proxy(peer),
            is_certain=peer is not None and not is_passed_on and not self.is_proxy(peer),
        )

    def _origin(self, forwarded_for: str) -> Address | None:
        """Give the last address that is no proxy of ours: whatever stands before it, anyone could have written."""
        for hop in reversed(forwarded_for.rsplit(",", MAX_HOPS)):
            address = _address(hop.strip())
            if address is None or not self.is_proxy(address):
                return address
        return None


def place_of(address: str) -> str:
    """Return the key under which an address is counted; see ``Sender.place``."""
    if ":" not in address:
        return address
    return str(ipaddress.IPv6Network((address.partition("%")[0], 64), strict=False))


def sender_of(request: ASGIConnection[Any, Any, Any, Any]) -> Sender:
    """Give where this request comes from."""
    return cast("Sender", cast("dict[str, Any]", request.scope)[SENDER_KEY])


def _told(scope: Scope) -> dict[bytes, str]:
    """Give what proxies say, repeated headers joined as HTTP has it."""
    told: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _TOLD_BY_PROXIES or name.startswith(b"x-forwarded"):
            text = bytes(value).decode("latin-1")
            told[name] = f"{told[name]},{text}" if name in told else text
    return told


def _came_by_https(scope: Scope, told: dict[bytes, str]) -> bool:
    """Whether a request came to the proxy by HTTPS, as the proxy says, else as the browser shows.

    Browsers send Sec-Fetch-Site only by HTTPS and to their own machine. A program that makes it up deceives itself.
    """
    if (proto := told.get(b"x-forwarded-proto")) is not None:
        return proto.rpartition(",")[2].strip().lower() == "https"
    return any(name == b"sec-fetch-site" for name, _ in scope["headers"])


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
