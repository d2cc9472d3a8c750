"""Whose a host name is, where anyone may say it: the first sender keeps it until it has been silent for a while.

Nobody proves anything here, so all that can be done is to let nobody take what another has, to let no single sender
fill the herd with names, and to tell people what was refused and what changed hands.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Mapping

from msgspec import Struct

from gpuherd.api.networks import Address
from gpuherd.fleet.views import FleetNotice
from gpuherd.model.errors import Refused
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean

__all__ = ["NameClaims"]

NOTICED_SECONDS = 3600.0
"""How long people are told of something that happened."""
MAX_NOTICES = 16
_IPV6_SITE_BITS = 64
"""One machine can take any address of such a network."""


class _Claim(Struct):
    sender: str
    heard_at: float
    rival: str | None = None
    rival_at: float = 0.0


class _Event(Struct):
    notice: FleetNotice
    at: float


class NameClaims:
    """Remembers which address speaks for which node."""

    def __init__(
        self,
        *,
        kept_seconds: float,
        max_nodes: int,
        max_per_sender: int,
        known: Callable[[], Mapping[str, str]],
        monotonic: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        """``known`` gives every node that ever came this way and is not forgotten yet, also before a restart, with the
        address that speaks for it.
        """
        self._kept_seconds = kept_seconds
        self._max_nodes = max_nodes
        self._max_per_sender = max_per_sender
        self._known = known
        self._monotonic = monotonic
        self._wall = wall
        self._began_at = monotonic()
        self._claims: dict[str, _Claim] = {}
        self._events: OrderedDict[tuple[str, str], _Event] = OrderedDict()

    def check(self, node_id: str, sender: str) -> None:
        """Let ``sender`` speak for a node; ``Refused`` if another address does, or if there are too many names."""
        now = self._monotonic()
        held = self._held(node_id, sender)
        if held is None or held.sender == sender:
            return
        if now - held.heard_at <= self._kept_seconds:
            held.rival, held.rival_at = sender, now
            raise Refused(
                "name_taken",
                "another address posts under this name; you can use it when that address has not posted "
                f"for {self._kept_seconds:g} s",
            )
        self._tell(
            "name_taken_over",
            node_id,
            f"{clean(node_id)} is now posted by {sender} through the old gpustat protocol; {held.sender}, "
            "which used this name before, had stopped posting. If the machine's address has not changed, "
            "find out who is impersonating it",
        )

    def claim(self, node_id: str, sender: str) -> None:
        """Note that ``sender`` speaks for a node; after ``check``."""
        held = self._claims.get(node_id)
        if held is None or held.sender != sender:
            self._claims[node_id] = _Claim(sender, self._monotonic())
        else:
            held.heard_at = self._monotonic()

    def _held(self, node_id: str, sender: str) -> _Claim | None:
        held = self._claims.get(node_id)
        if held is not None:
            return held
        known = self._known()
        if known.get(node_id):
            # From before a restart: who had the name gets the time to come back.
            held = self._claims[node_id] = _Claim(known[node_id], self._began_at)
        elif node_id not in known:
            self._check_room(node_id, sender, known)
        return held

    def _check_room(self, node_id: str, sender: str, known: Mapping[str, str]) -> None:
        if len(known) >= self._max_nodes:
            self._tell(
                "too_many_nodes",
                "",
                f"{self._max_nodes} nodes post through the old gpustat protocol, the limit in "
                f"legacy.gpustat.max_nodes; {clean(node_id)}, which {sender} posts, is refused",
            )
            raise Refused(
                "too_many_nodes", f"{self._max_nodes} nodes post already; raise legacy.gpustat.max_nodes"
            )
        site = _site(sender)
        if sum(_site(other) == site for other in known.values()) >= self._max_per_sender:
            self._tell(
                "too_many_names",
                site,
                f"{site} has posted under {self._max_per_sender} names through the old gpustat protocol; "
                f"more, such as {clean(node_id)}, are refused. If that many machines share this address, "
                "raise legacy.gpustat.max_nodes_per_sender; otherwise find out who is inventing nodes",
            )
            raise Refused(
                "too_many_nodes",
                f"{self._max_per_sender} names already come from your address; raise "
                "legacy.gpustat.max_nodes_per_sender if several machines share it",
            )

    def doubts(self, node_id: str) -> Problem | None:
        """Say so if another address has tried to speak for this node lately."""
        held = self._claims.get(node_id)
        if held is None or held.rival is None or self._monotonic() - held.rival_at > self._kept_seconds:
            return None
        return Problem(
            code="two_senders",
            message=f"{held.rival} also posts under this name and is refused; {held.sender} was first. "
            "Give one of the machines another host name, or find out who is impersonating it",
        )

    def turned_away(self, sender: Address | None) -> None:
        """Tell that someone posts who is in none of the networks: a node that was forgotten, or nobody of ours."""
        message = (
            f"{sender or 'someone'} posts to the old gpustat address and is refused, because it is not in "
            "any of legacy.gpustat.networks; if it is a node, add its network there"
        )
        self._tell("posts_refused", "", message)

    def notices(self) -> list[FleetNotice]:
        """Tell what was refused, and which names changed hands, within the last hour."""
        now = self._monotonic()
        for key, event in list(self._events.items()):
            if now - event.at > NOTICED_SECONDS:
                del self._events[key]
        return [event.notice for event in self._events.values()]

    def _tell(self, code: str, subject: str, message: str) -> None:
        """Keep something to be told; of the same kind and subject only the latest, with the time of the first."""
        before = self._events.pop((code, subject), None)
        since = self._wall() if before is None else before.notice.since
        notice = FleetNotice(code=code, message=message, since=since)
        self._events[code, subject] = _Event(notice, self._monotonic())
        while len(self._events) > MAX_NOTICES:
            self._events.popitem(last=False)

    def forget(self, node_id: str) -> None:
        """Leave a name to whoever comes next."""
        self._claims.pop(node_id, None)


def _site(sender: str) -> str:
    """Give what counts as one sender: an address, or the network that one machine has to itself with IPv6."""
    try:
        address = ipaddress.ip_address(sender)
    except ValueError:
        return sender
    if address.version == 4:
        return sender
    return str(ipaddress.ip_network((address, _IPV6_SITE_BITS), strict=False))
