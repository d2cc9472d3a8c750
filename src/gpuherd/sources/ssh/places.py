"""How far a login has come, and what to call the machine it is for."""

from __future__ import annotations

from typing import Literal

from gpuherd.model.text import SENTENCE_LENGTH, clip
from gpuherd.sources.following import ContactFailed

__all__ = ["Phase", "Progress"]

Phase = Literal[
    "reading the SSH configuration",
    "resolving the name",
    "connecting",
    "waiting for the server's greeting",
    "exchanging keys",
    "logging in",
    "opening a session",
    "waiting for the first line of the script",
]


class Progress:
    """Told while a login goes on, so that a deadline can say in which phase it struck."""

    __slots__ = ("hop", "node", "phase", "said")

    def __init__(self, node: str) -> None:
        self.node = node
        self.hop = ""
        self.said = ""
        """What the server said in place of an SSH greeting."""
        self.phase: Phase = "reading the SSH configuration"

    @property
    def place(self) -> str:
        """The node, and the jump host if it is not yet the node itself that is dealt with."""
        return f"{self.node} (at jump host {self.hop})" if self.hop else self.node

    def failure(self, code: str, message: str, *, needs_person: bool = False) -> ContactFailed:
        """Name the place in front of what went wrong there."""
        return ContactFailed(
            code, clip(f"{self.place}: {message}", SENTENCE_LENGTH), needs_person=needs_person
        )

    def too_late(self, seconds: float) -> ContactFailed:
        """Say where the deadline struck."""
        if self.said:
            return self.failure(
                "unreachable",
                f'that is not an SSH server, it says "{self.said}"; check the port',
                needs_person=True,
            )
        remedy = _REMEDIES.get(self.phase, "raise connect_deadline_seconds if the network is slow")
        return self.failure("timeout", f"no response after {seconds:g} s of {self.phase}; {remedy}")


_REMEDIES: dict[str, str] = {
    "resolving the name": "check that the hub's name servers respond",
    "connecting": "is the machine up, and does a firewall let the hub through?",
    "waiting for the server's greeting": "something accepts connections there but does not speak SSH; "
    "check the port and the server's load",
    "logging in": "the server or the SSH agent takes too long to check the key",
    "opening a session": (
        "the server accepts the login but does not start a session; check its load and its home file systems"
    ),
    "waiting for the first line of the script": "the login shell or a forced command does not run the script "
    "it was given; log in by hand and see what it does",
}
