"""A node's id out of the name that someone has given it."""

from __future__ import annotations

import re
import unicodedata

from gpuherd.model.errors import Refused

__all__ = ["node_id_for"]

_NOT_PLAIN = re.compile(r"[^a-z0-9.-]+")
_MAX_ID_LENGTH = 63


def node_id_for(name: str) -> str:
    """Turn a name into an id fit for addresses and files; ``Refused`` ``name_invalid`` if nothing is left."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    node_id = _NOT_PLAIN.sub("-", plain)[:_MAX_ID_LENGTH].strip("-.")
    if not node_id:
        raise Refused("name_invalid", "the name has no letter a–z or digit; choose another with --name")
    return node_id
