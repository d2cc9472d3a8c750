"""What a way to nodes is: it follows one node, handing over its reports, until the contact is lost."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Protocol

from gpuherd.model.errors import Failed
from gpuherd.model.reports import Report
from gpuherd.model.targets import NodeWay, Target

__all__ = ["Arrivals", "ContactFailed", "NodeIntake", "Way"]


class ContactFailed(Failed):
    """A node cannot be reached or understood; ``code`` is stable, the text names the node, the reason and the remedy.

    Codes: ``unreachable``, ``timeout``, ``link_lost``, ``server_busy``, ``login_refused``, ``host_key_unknown``,
    ``host_key_changed``, ``host_key_revoked``, ``ssh_config``, ``session_refused``, ``command_refused``,
    ``wrong_password``, ``node_unproven`` (the node does not know the secret), ``hub_refused`` (the node does not
    believe us), ``tls_failed``, ``other_version``, ``replaced``, ``garbled``, ``too_large``, ``no_data``.
    ``needs_person``: trying again soon will not change it.
    """

    def __init__(self, code: str, message: str, *, needs_person: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.needs_person = needs_person


class NodeIntake(Protocol):
    """Where one node's reports go. Called on the event loop that owns the fleet."""

    @property
    def node_id(self) -> str:
        """The id that the hub's configuration gives the node, whatever it says of itself."""

    def take(self, report: Report) -> None:
        """Take a report of right now. ``Refused`` if its parts do not line up.

        Facts and table that are the same objects as in the report before are not looked at again.
        """


class Way(Protocol):
    """A way to reach nodes, with its settings; one object serves many nodes."""

    @property
    def way(self) -> NodeWay:
        """How it is called."""

    @property
    def interval_seconds(self) -> float:
        """How often a node's report is to be expected."""

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        """Hand over a node's reports until cancelled; ``ContactFailed`` when it cannot be reached or is lost.

        The caller starts it with jitter, shows the failure, waits longer each time and calls it again; a first
        report ends the trouble. Everything the node sends is hostile: validated, capped.
        """

    async def close(self) -> None:
        """Let go of what nodes share; after every ``follow`` was cancelled."""


class Arrivals(Protocol):
    """Where nodes that nobody listed show up by themselves: old protocols, dropped files."""

    def intake(
        self,
        name: str,
        way: NodeWay,
        *,
        interval_seconds: float,
        place: str = "",
        sender: str = "",
        shown: str = "",
    ) -> NodeIntake:
        """Know a node from now on, also after a restart; the same name gives the same intake.

        ``place``: where its reports lie, where there may be several such places with one name in each. ``sender``: the
        address that speaks for it, where nothing better proves who that is; remembered too. ``shown``: what people call
        it, if that is another name. ``Refused`` with ``name_invalid``, ``name_taken`` (it is enrolled or listed, comes
        another way or from another place) or ``too_many_nodes``.
        """

    def senders(self, way: NodeWay) -> Mapping[str, str]:
        """Give the nodes that have come this way and are not forgotten yet, by id, with their senders."""

    def trouble(self, name: str, failure: ContactFailed | None) -> None:
        """Show of a node that has arrived before why there is nothing new of it, or that all is well again."""

    def keep_only(self, place: str, names: Container[str]) -> None:
        """Forget the nodes of a place that are called otherwise: a list there names them no longer."""

    def left_out(self, place: str, message: str | None) -> None:
        """Show a notice that not all nodes of a place fit; None removes it."""
