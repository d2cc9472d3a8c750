"""Texts as columns: what one database would refuse, the other does not take either."""

from __future__ import annotations

from sqlalchemy import Dialect, String, TypeDecorator

__all__ = ["KeptText", "UnkeepableText", "is_keepable"]


class UnkeepableText(ValueError):  # noqa: N818 - reads as a state
    """A text that not every database can keep; what it says stays out of the message."""


def is_keepable(text: str, length: int | None = None) -> bool:
    """Whether every database can keep this text: not too long, no NUL, no halves of surrogate pairs."""
    if length is not None and len(text) > length:
        return False
    if text.isascii():
        return "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


class KeptText(TypeDecorator[str]):
    """``VARCHAR``, as strict in SQLite as in PostgreSQL: records can move from one to the other at any time."""

    impl = String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self._length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Raise ``UnkeepableText`` before the database sees it."""
        if value is not None and not is_keepable(value, self._length):
            raise UnkeepableText("is too long or contains characters that cannot be stored")
        return value
