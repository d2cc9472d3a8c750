"""What is to be done about a part of gpuherd that does not run here."""

from __future__ import annotations

from gpuherd.model.errors import Failed, Unavailable
from gpuherd.wiring.installing.services import Services

__all__ = ["how_to_start"]


def how_to_start(what: str, reason: str, unit: str, command: str) -> str:
    """Say that something does not run and what helps: its service's own last words, or how it is started.

    ``what`` is the part, ``reason`` how one can tell, ``unit`` its service, ``command`` what runs it without one.
    """
    services = Services()
    try:
        if not services.is_known(unit):
            return f"{reason}: start it with `{command}`"
        words = services.last_words(unit) if services.is_failing(unit) else ""
    except (Unavailable, Failed):
        return f"{reason}: start it with `{command}`"
    if words:
        return f"the service of {what} does not start: {words}"
    return (
        f"{reason}: start it with `systemctl start {unit}`; to see why it stopped, run `journalctl -u {unit}`"
    )
