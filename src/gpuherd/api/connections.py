"""Connections of strangers: a share for each address, and room kept for nodes and people who are logged in.

Who connects and says nothing is not seen by the web server's application, but at the socket. See
docs/adr/0020-connections-are-counted-at-the-socket.md.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from gpuherd.api.asgi import Scope
from gpuherd.api.networks import Address
from gpuherd.api.sender import place_of
from gpuherd.api.sockets import Connection, Connections, Peer, in_turns, open_file_count, peer_of, reset
from gpuherd.api.sparing_log import SparingLog

__all__ = ["ConnectionWatch", "surplus"]

log = logging.getLogger(__name__)

LEAST_SHARE = 16
PAUSE_SECONDS = 4e-5
"""Between two looks, for each connection: ten times what looking costs."""


def surplus(by_place: Mapping[str, Iterable[Connection]], capacity: int) -> list[Connection]:
    """Return the connections of strangers to close, those that have waited longest first.

    A place (an address, or with IPv6 its /64) may have a sixteenth of the capacity, all together three quarters.
    """
    share = _share(capacity)
    closing: list[Connection] = []
    left: list[Connection] = []
    for some in by_place.values():
        connections = sorted(some, key=_since)
        excess = max(0, len(connections) - share)
        closing += connections[:excess]
        left += connections[excess:]
    left.sort(key=_since)
    return closing + left[: max(0, len(left) - capacity * 3 // 4)]


class ConnectionWatch:
    """Closes what strangers have too many of. Used on one event loop."""

    def __init__(
        self,
        connections: Connections,
        *,
        is_proxy: Callable[[Address], bool],
        monotonic: Callable[[], float],
    ) -> None:
        """``is_proxy`` tells which addresses speak for many people: their connections are never closed."""
        self._connections = connections
        self._is_proxy = is_proxy
        self._monotonic = monotonic
        self._capacity = 0
        self._serving = 0
        self._look_from = 0.0
        self._known: set[Peer] = set()
        self._closed: set[int] = set()
        """Inodes: a port may be used again at once."""
        self._sparing = SparingLog(log, monotonic=monotonic)

    def begin(self, capacity: int) -> None:
        """Say how many connections there can be."""
        self._capacity = capacity

    @contextlib.contextmanager
    def serving(self, scope: Scope) -> Iterator[None]:
        """Note that a connection belongs to a node or to someone who is logged in, and is in use."""
        peer = peer_of(scope)
        if peer is not None:
            self._known.add(peer)
        self._serving += 1
        try:
            yield
        finally:
            self._serving -= 1

    async def look(self) -> None:
        """Close what is too much. Quick while there is little to look at."""
        idle = open_file_count() - self._serving
        is_due = idle > _share(self._capacity) or len(self._known) > 2 * self._capacity
        if is_due and self._monotonic() >= self._look_from:
            await self._look_at_all()

    async def _look_at_all(self) -> None:
        found = await self._connections.find()
        self._look_from = self._monotonic() + len(found) * PAUSE_SECONDS
        self._known &= {connection.peer for connection in found}
        self._closed &= {connection.inode for connection in found}
        closing = surplus(self._strangers(found), self._capacity)
        if closing:
            place, count = Counter(place_of(one.peer[0]) for one in closing).most_common(1)[0]
            self._sparing.warning(
                "closed",
                f"too many connections: closed {len(closing)} without a login, {count} of them from {place}",
            )
        self._closed.update(connection.inode for connection in closing)
        async for connection in in_turns(closing):
            reset(connection)

    def _strangers(self, found: Iterable[Connection]) -> Mapping[str, list[Connection]]:
        by_host: defaultdict[str, list[Connection]] = defaultdict(list)
        for one in found:
            if one.peer not in self._known and one.inode not in self._closed:
                by_host[one.peer[0]].append(one)
        by_place: defaultdict[str, list[Connection]] = defaultdict(list)
        for host, connections in by_host.items():
            if not self._is_proxy(ipaddress.ip_address(host)):
                by_place[place_of(host)] += connections
        return by_place


def _share(capacity: int) -> int:
    return max(LEAST_SHARE, capacity // 16)


def _since(connection: Connection) -> float:
    return connection.since
