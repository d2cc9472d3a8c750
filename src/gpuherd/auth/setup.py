"""Setting up: a code that is shown once to whoever can read the hub's output makes the first admin."""

from __future__ import annotations

from gpuherd.auth.secrets import SETUP_CODE_PREFIX, digest, is_secret, new_secret
from gpuherd.model.errors import Refused
from gpuherd.model.people import HUB, Actor
from gpuherd.records.people import PeopleRecords

__all__ = ["SETUP_SECONDS", "new_setup_code", "setup_digest", "setup_link"]

SETUP_SECONDS = 86_400.0


def new_setup_code(records: PeopleRecords, now: float, by: Actor = HUB) -> str | None:
    """Make the code of the set-up link, voiding older ones; none if there is an admin already. Blocking."""
    if records.has_admin():
        return None
    code = new_secret(SETUP_CODE_PREFIX)
    records.put_setup_code(digest(code), now + SETUP_SECONDS, now=now, by=by)
    return code


def setup_link(url: str, code: str) -> str:
    """Give the address to open. The code is behind the ``#``: browsers keep that part to themselves."""
    return f"{url}?setup#{code}"


def setup_digest(code: str) -> str:
    """Give what is kept of a code; ``Refused`` ``code_invalid`` for what is none."""
    if not is_secret(code, SETUP_CODE_PREFIX):
        raise Refused(
            "code_invalid", "this is not a set-up code; open the whole link that the hub has printed"
        )
    return digest(code)
