"""How states are told in a terminal: every one has a sign beside its word, so that colour never tells alone."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PLAIN_SIGNS", "SIGNS", "STATES", "sign_of", "state_rank", "state_word"]

STATES = ("free", "busy", "held", "booked", "fault", "stale", "offline", "unknown")
"""Those of devices, in the order in which people ask for them.

A newer hub may know others: they are shown by the name they have, and never as free.
"""
SIGNS: Mapping[str, str] = {
    "free": "○",
    "busy": "■",
    "held": "▨",
    "booked": "◩",
    "fault": "✕",
    "stale": "◌",
    "offline": "◌",
    "unknown": "?",
    # Of nodes alone.
    "live": "●",
    "never": "◌",
}
PLAIN_SIGNS: Mapping[str, str] = {
    "free": "o",
    "busy": "#",
    "held": "~",
    "booked": "b",
    "fault": "x",
    "stale": ".",
    "offline": ".",
    "unknown": "?",
    "live": "*",
    "never": ".",
}
"""Where there is only ASCII."""


def sign_of(state: str, *, is_plain: bool = False) -> str:
    """Give the one letter that stands for a state; ``is_plain``: in ASCII."""
    return (PLAIN_SIGNS if is_plain else SIGNS).get(state, "?")


def state_word(state: str) -> str:
    """Give the word that people read for a state, of a device or a node."""
    return {"held": "held idle", "never": "never reported"}.get(state, state)


def state_rank(state: str) -> tuple[int, str]:
    """Order states as ``STATES`` are, those of a newer hub after them by their names."""
    return (STATES.index(state) if state in STATES else len(STATES), state)
