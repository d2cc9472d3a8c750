"""Which requests may come in at all: known Host names, and from browsers only our own pages."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from gpuherd.api.asgi import Scope, header
from gpuherd.api.errors import HttpError
from gpuherd.model.text import clean

__all__ = ["Guard"]

_READING = frozenset({"GET", "HEAD"})


def _hostname(authority: str) -> str:
    """Give the name of ``name:port``; brackets of an IPv6 address are dropped."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Refuses rebound DNS names and foreign web pages."""

    def __init__(self, allowed_hosts: Iterable[str]) -> None:
        self._names = {"localhost", *(_hostname(name) for name in allowed_hosts)}

    def check(self, scope: Scope, *, is_sensitive: bool) -> None:
        """Raise ``HttpError`` for a request that must not come in.

        ``is_sensitive``: streams and WebSockets, which browsers open across origins; writes always are. Programs
        that are no browsers send no Origin and pass.
        """
        host = header(scope, b"host") or ""
        name = _hostname(host)
        # An attacker can point a name of his at our address, but he cannot make a browser send an address as Host.
        if name not in self._names and not _is_address(name):
            raise HttpError(
                421,
                "foreign_host",
                f'this hub is not known as "{clean(name, 80)}"; if it should be, add the name to hub.allowed_hosts',
            )
        if is_sensitive or scope.get("method", "GET") not in _READING:
            self._check_origin(scope, host)

    def _check_origin(self, scope: Scope, host: str) -> None:
        origin = header(scope, b"origin")
        site = header(scope, b"sec-fetch-site")
        is_ours = origin is None or origin.partition("://")[2].lower() == host.lower()
        if not is_ours or site not in (None, "same-origin", "none"):
            raise HttpError(403, "foreign_origin", "this can only be used from the hub's own page")
