"""Which requests may come in at all: known Host names, and from browsers only our own pages."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

from gpuherd.api.asgi import Scope, header
from gpuherd.api.errors import HttpError
from gpuherd.model.text import clean

__all__ = ["Guard"]

_READING = frozenset({"GET", "HEAD"})
_AUTHORITY = re.compile(r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<name>[^\[\]:@/\s]+))(?::[0-9]*)?")


def _hostname(authority: str) -> str:
    """Give the name of ``name:port``, without brackets; nothing if it is written in another way."""
    found = _AUTHORITY.fullmatch(authority)
    return "" if found is None else (found["bracketed"] or found["name"] or "").lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Refuses rebound DNS names and foreign web pages."""

    def __init__(
        self, allowed_hosts: Iterable[str], *, is_https: Callable[[Scope], bool] = lambda _: False
    ) -> None:
        """``is_https`` tells whether a request came by HTTPS, to the hub or to a proxy that is believed."""
        self._names = {"localhost", *(_hostname(name) for name in allowed_hosts)} - {""}
        self._is_https = is_https

    def check(self, scope: Scope, *, is_sensitive: bool) -> None:
        """Raise ``HttpError`` for a request that must not come in.

        ``is_sensitive``: streams and WebSockets, which browsers open across origins; writes always are. Programs
        that are no browsers send no Origin and pass.
        """
        if sum(key == b"host" for key, _ in scope["headers"]) > 1:
            raise HttpError(400, "invalid_request", "the request has more than one Host header; send one")
        host = header(scope, b"host") or ""
        name = _hostname(host)
        # An attacker can point a name of his at our address, but he cannot make a browser send an address as Host.
        if name not in self._names and not _is_address(name):
            raise HttpError(
                421,
                "foreign_host",
                f'this hub does not answer to the name "{clean(name or host, 80)}"; to allow it, add it to '
                "hub.allowed_hosts",
            )
        if is_sensitive or scope.get("method", "GET") not in _READING:
            self._check_origin(scope, host)

    def _check_origin(self, scope: Scope, host: str) -> None:
        origin = header(scope, b"origin")
        site = header(scope, b"sec-fetch-site")
        is_ours = origin is None or self._is_own(origin.lower(), host.lower(), scope)
        if not is_ours or site not in (None, "same-origin", "none"):
            raise HttpError(403, "foreign_origin", "this can only be used from the hub's own page")

    def _is_own(self, origin: str, host: str, scope: Scope) -> bool:
        scheme, _, authority = origin.partition("://")
        # A request by plain HTTP may have reached an unlisted proxy by HTTPS.
        schemes = ("https",) if self._is_https(scope) else ("http", "https")
        return authority == host and scheme in schemes
