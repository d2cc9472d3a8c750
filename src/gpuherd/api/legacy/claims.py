"""Whose a host name is, where anyone may say it: the first sender keeps it until it has been silent for a while."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from gpuherd.model.errors import Refused
from gpuherd.model.reports import Problem

__all__ = ["NameClaims"]


class _Claim(Struct):
    sender: str
    heard_at: float
    rival: str | None = None
    rival_at: float = 0.0


class NameClaims:
    """Remembers which address speaks for which node."""

    def __init__(self, *, kept_seconds: float, monotonic: Callable[[], float]) -> None:
        self._kept_seconds = kept_seconds
        self._monotonic = monotonic
        self._claims: dict[str, _Claim] = {}

    def claim(self, node_id: str, sender: str) -> None:
        """Let ``sender`` speak for a node; ``Refused`` if another address does."""
        now = self._monotonic()
        held = self._claims.get(node_id)
        if held is None or (held.sender != sender and now - held.heard_at > self._kept_seconds):
            held = self._claims[node_id] = _Claim(sender, now)
        if held.sender != sender:
            held.rival, held.rival_at = sender, now
            raise Refused(
                "name_taken",
                "another address posts under this name; it is yours when that one has been silent for "
                f"{self._kept_seconds:g} s",
            )
        held.heard_at = now

    def doubts(self, node_id: str) -> Problem | None:
        """Say so if another address has tried to speak for this node lately."""
        held = self._claims.get(node_id)
        if held is None or held.rival is None or self._monotonic() - held.rival_at > self._kept_seconds:
            return None
        return Problem(
            code="two_senders",
            message=f"{held.rival} posts under this name too and is refused; {held.sender} was first. Give one of the "
            "machines another host name, or find out who pretends to be it",
        )

    def forget(self, node_id: str) -> None:
        """Leave a name to whoever comes next."""
        self._claims.pop(node_id, None)
