"""Whether files still hold what was written: half of all flipped bits would otherwise be read as other numbers."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from gpuherd.history.tables.segments import Segment, why_unsound

__all__ = ["Soundness"]


class Soundness:
    """Checks segments byte by byte, and remembers which it has checked and when. From any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._checked_at: dict[str, float] = {}
        self._changing = threading.Lock()

    def trust(self, segment: Segment) -> None:
        """Take a segment as checked: it has just been written and read again."""
        with self._changing:
            self._checked_at[segment.file] = time.monotonic()

    def unsound(
        self, segments: Iterable[Segment], *, within_seconds: float = math.inf, budget_bytes: float = math.inf
    ) -> list[tuple[Segment, str]]:
        """Check those not checked within this time, up to so many bytes; give the bad ones with the reason."""
        since = time.monotonic() - within_seconds
        bad = []
        for segment in segments:
            checked_at = self._checked_at.get(segment.file)
            if checked_at is not None and checked_at >= since:
                continue
            if budget_bytes <= 0:
                break
            budget_bytes -= segment.size_bytes
            reason = why_unsound(self._folder / segment.file, segment, thoroughly=True)
            if reason is None:
                self.trust(segment)
            else:
                bad.append((segment, reason))
        return bad

    def forget_others(self, files: Iterable[str]) -> None:
        """Keep in mind only these files."""
        listed = frozenset(files)
        with self._changing:
            self._checked_at = {file: at for file, at in self._checked_at.items() if file in listed}
