"""A node's id out of the name that someone has given it."""

from __future__ import annotations

import re
import unicodedata

from gpuherd.model.errors import Refused

__all__ = ["check_looks", "node_id_for"]

_NOT_PLAIN = re.compile(r"[^a-z0-9.-]+")
_MAX_ID_LENGTH = 63
_LOOKALIKE_SCRIPTS = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET"})
"""Scripts with letters that look like Latin ones."""


def check_looks(name: str) -> None:
    """Raise ``Refused`` ``name_invalid`` for a letter that looks like a Latin one, such as a Cyrillic ``o``.

    On the page, a node with such a name could not be distinguished from another.
    """
    for letter in name:
        script = unicodedata.name(letter, "").partition(" ")[0]
        if letter.isalpha() and script in _LOOKALIKE_SCRIPTS:
            raise Refused(
                "name_invalid",
                f"the name has a {script.capitalize()} letter ({letter}), which looks like a Latin one; "
                "use a–z for the name, and set the displayed name in display.nodes",
            )


def node_id_for(name: str) -> str:
    """Turn a name into an id fit for addresses and files; ``Refused`` ``name_invalid`` if nothing is left."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    node_id = _NOT_PLAIN.sub("-", plain)[:_MAX_ID_LENGTH].strip("-.")
    if not node_id:
        raise Refused("name_invalid", "the name has no letter a–z or digit; choose another with --name")
    return node_id
