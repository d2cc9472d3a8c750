"""What the desks of the past ask: readers of what is remembered. All their verbs block, in any thread."""

from __future__ import annotations

from typing import NamedTuple

from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.store import SeriesReader
from gpuherd.history.usage.asking import UsageReader

__all__ = ["Memory"]


class Memory(NamedTuple):
    """All that is remembered."""

    samples: SeriesReader | None
    """None: samples are kept where they cannot be asked for."""
    herd: HerdReader
    usage: UsageReader
    is_outside: bool = False
    """Samples are asked of a store elsewhere, which may be slow or gone."""
