"""The lists of nodes, asked once, and what resembles a name that is in none of them."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable, Sequence

from gpuherd.model.errors import Failed
from gpuherd.wiring.config import Config
from gpuherd.wiring.doctor.steps import plural
from gpuherd.wiring.lookup import FoundList, find_lists

__all__ = ["FIND_SECONDS", "ask_lists", "looked_in", "resembling"]

FIND_SECONDS = 60.0


async def ask_lists(config: Config) -> list[FoundList]:
    """Ask every list; ``Failed`` if that takes too long."""
    try:
        async with asyncio.timeout(FIND_SECONDS):
            return await find_lists(config)
    except TimeoutError:
        raise Failed(f"the node lists cannot be read within {FIND_SECONDS:g} s") from None


def looked_in(lists: Sequence[FoundList], others: Sequence[str] = ()) -> str:
    """Say where was looked for a node. ``others``: further places, in words."""
    if not lists and not others:
        return "there is no [[nodes]] table in the configuration"
    places = [
        f"{found.name} (cannot be loaded)"
        if found.trouble
        else f"{found.name} ({plural(len(found.nodes), 'node')})"
        for found in lists
    ]
    places += others
    return f"looked in {', '.join(places[:8])}{' and more' if len(places) > 8 else ''}"


def resembling(host: str, names: Iterable[str]) -> str:
    """Suggest names that are nearly the same."""
    near = difflib.get_close_matches(host, sorted(set(names)), n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""
