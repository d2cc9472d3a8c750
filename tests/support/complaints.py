"""What a parser says about text that it cannot use."""

from __future__ import annotations

from collections.abc import Callable

from gpuherd.model.errors import GpuherdError, Misconfigured

__all__ = ["complaint_of"]


def complaint_of(parse: Callable[[], object], kind: type[GpuherdError] = Misconfigured) -> str | None:
    """Give the text of the one kind of error that may be raised, None if there is none; any other passes through."""
    try:
        parse()
    except kind as error:
        return str(error)
    return None
