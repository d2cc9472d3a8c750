"""Whether a service that runs was started before what it is made of was last changed."""

from __future__ import annotations

import sysconfig
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["changed_at", "installed_files", "is_changed_since"]


def installed_files() -> list[Path]:
    """Give what every installation or update of gpuherd, or of a package it needs, makes anew."""
    folders = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return [place for folder in sorted(folders) for place in folder.glob("*.dist-info")]


def changed_at(place: Path) -> float | None:
    """Tell when a file was last written; None if it is not there."""
    try:
        return place.stat().st_mtime
    except OSError:
        return None


def is_changed_since(started_at: float, places: Iterable[Path]) -> bool:
    """Tell whether any of these was written after ``started_at``.

    A time that is yet to come is not believed: no start would ever be late enough.
    """
    now = time.time()
    times = (changed_at(place) for place in places)
    return any(started_at < moment <= now for moment in times if moment is not None)
