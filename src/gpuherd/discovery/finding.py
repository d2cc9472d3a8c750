"""What a finder is: it names the nodes now, and says when it is worth looking again."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from gpuherd.model.targets import Target

__all__ = ["Finder", "Remarking"]


class Finder(Protocol):
    """A list, an inventory or a service that names nodes."""

    @property
    def name(self) -> str:
        """What messages call it, such as ``consul gpu at http://127.0.0.1:8500``; never with a secret in it."""

    async def find(self) -> tuple[Target, ...]:
        """Give every node named now, in the order of the list, each name once.

        ``Failed`` (try again) or ``Misconfigured`` (a person must mend it, the text has place and remedy) if the list
        cannot be had or read; the caller keeps the last good one. An empty list is an answer; the caller doubts it.
        """

    async def wait(self) -> None:
        """Return when it is worth looking again: the file changed, the service answered, time has passed."""

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class Remarking(Protocol):
    """A finder that has something to say although the list could be read."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences with place and remedy about what was passed over when the list was last read."""
