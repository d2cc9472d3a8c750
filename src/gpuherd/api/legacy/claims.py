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
    """Remembers which address speaks for which name, for a bounded number of names."""

    def __init__(self, *, kept_seconds: float, max_names: int, monotonic: Callable[[], float]) -> None:
        self._kept_seconds = kept_seconds
        self._max_names = max_names
        self._monotonic = monotonic
        self._claims: dict[str, _Claim] = {}

    def check(self, name: str, sender: str) -> None:
        """Raise ``Refused`` if another address speaks for ``name``, and remember that this one tried."""
        now = self._monotonic()
        held = self._claims.get(name)
        if held is not None and held.sender != sender and now - held.heard_at <= self._kept_seconds:
            held.rival, held.rival_at = sender, now
            raise Refused(
                "name_taken",
                "another address posts under this name; it is yours when that one has been silent for "
                f"{self._kept_seconds:g} s",
            )
        if held is None:
            self._make_room(now)

    def hold(self, name: str, sender: str) -> None:
        """Let ``sender`` speak for ``name`` from now on, after ``check``."""
        held = self._claims.get(name)
        if held is None or held.sender != sender:
            held = self._claims[name] = _Claim(sender, self._monotonic())
        held.heard_at = self._monotonic()

    def doubts(self, name: str) -> Problem | None:
        """Say so if another address has tried to speak for this name lately."""
        held = self._claims.get(name)
        if held is None or held.rival is None or self._monotonic() - held.rival_at > self._kept_seconds:
            return None
        return Problem(
            code="two_senders",
            message=f"{held.rival} posts under this name too and is refused; {held.sender} was first. Give one of the "
            "machines another host name, or find out who pretends to be it",
        )

    def _make_room(self, now: float) -> None:
        if len(self._claims) < self._max_names:
            return
        self._claims = {
            name: claim for name, claim in self._claims.items() if now - claim.heard_at <= self._kept_seconds
        }
        if len(self._claims) >= self._max_names:
            raise Refused(
                "too_many_nodes", f"{self._max_names} nodes post already; raise legacy.gpustat.max_nodes"
            )
