"""Networks as they are written in settings. Light to import."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from gpuherd.model.errors import Misconfigured

__all__ = ["Address", "Network", "parse_networks"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(texts: Iterable[str], key: str) -> tuple[Network, ...]:
    """Read networks such as ``192.168.0.0/24`` or single addresses; ``Misconfigured`` names the ``key``."""
    networks = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError as error:
            raise Misconfigured(
                f'{key}: "{text}" is not a network; write for example "192.168.0.0/24", or one address'
            ) from error
    return tuple(networks)
