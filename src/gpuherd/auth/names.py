"""Names of accounts."""

from __future__ import annotations

from gpuherd.auth.ways import clean_name
from gpuherd.model.errors import Refused

__all__ = ["account_name"]


def account_name(text: str) -> str:
    """Give a name as it is kept; ``Refused`` ``name_invalid`` for one that will not do."""
    name = clean_name(text.strip())
    if name is None:
        raise Refused(
            "name_invalid",
            "a name has up to 96 letters, digits and . _ @ + -, and begins with a letter or digit",
        )
    return name
