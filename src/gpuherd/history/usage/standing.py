"""Where counting stands: what is needed to go on after a restart as if there had been none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gpuherd.history.batch import SessionKey
from gpuherd.history.usage.notes import HoleNote, aged_holes, forgotten_holes, stays_in
from gpuherd.history.usage.register import Register

__all__ = ["NAMES_SECONDS", "Ledger", "Standing", "kept_stays"]

NAMES_SECONDS = 3 * 86_400.0
"""For so long it is known who was beside a hole: what comes later still begins stays of its own."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What has been counted of each node, and the stays that may go on."""

    seen: Mapping[str, float] = field(default_factory=dict)
    """Time of each node's newest sample."""
    holes: Mapping[str, tuple[HoleNote, ...]] = field(default_factory=dict)
    """What has not been counted before that; a node that is not in it has no holes but before its first sample."""
    stays: Mapping[SessionKey, float] = field(default_factory=dict)
    """When each was last seen. All that can go on are in it, others may be."""

    def forgetting(self, users: Collection[str]) -> Standing:
        """Give the same without these users: what they have beside holes is an unknown user's."""
        holes = {node_id: forgotten_holes(each, users) for node_id, each in self.holes.items()}
        stays = {stay: last for stay, last in self.stays.items() if stay.user not in users}
        return Standing(self.seen, holes, stays)

    def since(self, time: float) -> Standing:
        """Give the same without who was last seen before a moment."""
        holes = {node_id: aged_holes(each, time) for node_id, each in self.holes.items()}
        return Standing(self.seen, holes, {stay: last for stay, last in self.stays.items() if last >= time})


class Ledger(Protocol):
    """Who knows what is safely counted: the book."""

    @property
    def register(self) -> Register:
        """The numbers of stays; of the writer's thread."""

    @property
    def taken(self) -> int:
        """How many times something was taken that goes by these numbers."""

    def standing(self) -> Standing:
        """Tell where counting stands after all that was taken."""

    def apply_erasures(self) -> bool:
        """Forget open stays of users who have been erased; if so, counting is to go on from ``standing`` anew."""

    def release(self, in_use: Collection[int]) -> None:
        """Take back all numbers but these and those that stays in memory still go by."""


def kept_stays(standing: Standing, gap_seconds: float) -> dict[SessionKey, float]:
    """Give the stays that can go on: seen lately by the clock of their node's samples, or beside a hole."""
    kept = {
        stay: last
        for stay, last in standing.stays.items()
        if standing.seen.get(stay.node_id, last) - last <= gap_seconds
    }
    for node_id, holes in standing.holes.items():
        for stay in stays_in(node_id, holes):
            kept[stay] = standing.stays.get(stay, stay.opened_at)
    return kept
