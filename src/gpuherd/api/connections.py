"""Connections: a share for each address without a login, one for each node and account, and room kept for both.

Who connects and says nothing is not seen by the web server's application, but at the socket. See
docs/adr/0020-connections-are-counted-at-the-socket.md.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from gpuherd.api.asgi import Scope
from gpuherd.api.errors import HttpError
from gpuherd.api.networks import Address
from gpuherd.api.sender import place_of
from gpuherd.api.sockets import Connection, Connections, Peer, in_turns, open_file_count, peer_of, reset
from gpuherd.api.sparing_log import SparingLog

__all__ = ["ConnectionWatch", "surplus"]

log = logging.getLogger(__name__)

T = TypeVar("T")

LEAST_SHARE = 16
LEAST_KNOWN_SHARE = 64
"""Of a node or an account; but never more than half of the capacity."""
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
    """Closes what one address, node or account has too many of. Used on one event loop."""

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
        self._capacity = sys.maxsize
        self._serving: Counter[str | None] = Counter()
        """Requests and links under way, by holder."""
        self._look_from = 0.0
        self._known: dict[Peer, str | None] = {}
        """The holder of each connection that has shown a credential: a node or an account, None for no limit."""
        self._in_use: Counter[Peer] = Counter()
        self._unread: set[Peer] = set()
        """Clients that do not read their response."""
        self._closed: set[int] = set()
        """Inodes: a port may be used again at once."""
        self._sparing = SparingLog(log, monotonic=monotonic)

    def begin(self, capacity: int) -> None:
        """Say how many connections there can be."""
        self._capacity = capacity

    @contextlib.contextmanager
    def serving(self, scope: Scope, holder: str | None) -> Iterator[None]:
        """Note that a connection belongs to a node or to someone who is logged in, and is in use.

        ``holder``: which node or account; None: a program of the hub's own machine, which has no limit. ``HttpError``
        503 if it uses too many at a time.
        """
        peer = peer_of(scope)
        is_full = holder is not None and self._serving[holder] >= _known_share(self._capacity)
        if is_full and not (peer and self._is_proxy(ipaddress.ip_address(peer[0]))):
            raise HttpError(
                503,
                "too_many_connections",
                "your node or account has too many requests under way; try again in a moment",
                headers={"Retry-After": "2"},
            )
        if peer is not None:
            self._known[peer] = holder
            self._in_use[peer] += 1
        self._serving[holder] += 1
        try:
            yield
        finally:
            _count_down(self._serving, holder)
            if peer is not None:
                _count_down(self._in_use, peer)

    def give_up(self, scope: Scope) -> None:
        """Close the connection of a request soon: its client does not read the response, which holds memory."""
        peer = peer_of(scope)
        if peer is not None:
            self._unread.add(peer)

    async def look(self) -> None:
        """Close what is too much. Quick while there is little to look at."""
        idle = open_file_count() - self._serving.total()
        is_due = idle > _share(self._capacity) or len(self._known) > 2 * self._capacity
        if (is_due or self._unread) and self._monotonic() >= self._look_from:
            await self._look_at_all()

    async def _look_at_all(self) -> None:
        unread, self._unread = self._unread, set()
        found = await self._connections.find()
        self._look_from = self._monotonic() + len(found) * PAUSE_SECONDS
        peers = {connection.peer for connection in found}
        self._known = {peer: holder for peer, holder in self._known.items() if peer in peers}
        self._closed &= {connection.inode for connection in found}
        closing = surplus(self._strangers(found), self._capacity)
        if closing:
            place, count = Counter(place_of(one.peer[0]) for one in closing).most_common(1)[0]
            self._sparing.warning(
                "closed",
                f"too many connections: closed {len(closing)} without a login, {count} of them from {place}",
            )
        idle = self._idle_surplus(found)
        if idle:
            holder, count = Counter(self._known[one.peer] for one in idle).most_common(1)[0]
            self._sparing.warning(
                "idle",
                f"too many connections: closed {len(idle)} that were idle, {count} of them of {holder}",
            )
        closing += idle
        closing += [one for one in found if one.peer in unread]
        self._closed.update(connection.inode for connection in closing)
        async for connection in in_turns(closing):
            reset(connection)

    def _idle_surplus(self, found: Iterable[Connection]) -> list[Connection]:
        """Return the idle connections of nodes and accounts that have more than their share, oldest first."""
        by_holder: defaultdict[str, list[Connection]] = defaultdict(list)
        for one in found:
            holder = self._known.get(one.peer)
            if holder is not None and one.inode not in self._closed:
                by_holder[holder].append(one)
        share = _known_share(self._capacity)
        closing: list[Connection] = []
        for connections in by_holder.values():
            excess = len(connections) - share
            if excess > 0:
                idle = [
                    one
                    for one in sorted(connections, key=_since)
                    if not self._in_use[one.peer] and not self._is_proxy(ipaddress.ip_address(one.peer[0]))
                ]
                closing += idle[:excess]
        return closing

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


def _known_share(capacity: int) -> int:
    """Return how many connections a node or account can have, so that one of them cannot shut out all others."""
    return min(capacity // 2, max(LEAST_KNOWN_SHARE, capacity // 16))


def _count_down(counts: Counter[T], key: T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _since(connection: Connection) -> float:
    return connection.since
