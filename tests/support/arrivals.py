"""A herd's side of what arrives, without a herd: keeps every report and every trouble in order of arrival."""

from __future__ import annotations

from collections.abc import Container

from gpuherd.model.errors import Refused
from gpuherd.model.reports import Report
from gpuherd.model.targets import NodeWay
from gpuherd.sources.following import ContactFailed

__all__ = ["KeptArrivals", "KeptIntake"]


class KeptIntake:
    """One node's reports."""

    def __init__(self, node_id: str) -> None:
        self.id = node_id
        self.reports: list[Report] = []

    @property
    def node_id(self) -> str:
        return self.id

    def take(self, report: Report) -> None:
        problem = report.mismatch()
        if problem is not None:
            raise Refused("report_misaligned", problem)
        self.reports.append(report)

    @property
    def last(self) -> Report:
        assert self.reports, f"nothing was heard of {self.id}"
        return self.reports[-1]


class KeptArrivals:
    """Knows every node that arrives, refuses the names it is told to."""

    def __init__(self, *, taken: tuple[str, ...] = ()) -> None:
        self.taken = taken
        self.nodes: dict[str, KeptIntake] = {}
        self.ways: dict[str, tuple[NodeWay, float]] = {}
        self.troubles: dict[str, ContactFailed | None] = {}
        self.addresses: dict[str, str] = {}
        self.left_out_of: dict[str, str | None] = {}
        self.shown: dict[str, str] = {}

    def intake(
        self,
        name: str,
        way: NodeWay,
        *,
        interval_seconds: float,
        place: str = "",
        sender: str = "",
        shown: str = "",
    ) -> KeptIntake:
        if name in self.taken:
            raise Refused("name_taken", f"{name} is enrolled and comes another way")
        if not name.isprintable() or len(name) > 128:
            raise Refused("name_invalid", "this is not a node name")
        self.ways[name] = (way, interval_seconds)
        self.addresses[name] = sender
        self.shown[name] = shown
        return self.nodes.setdefault(name, KeptIntake(name))

    def senders(self, way: NodeWay) -> dict[str, str]:
        return {name: sender for name, sender in self.addresses.items() if self.ways[name][0] == way}

    def keep_only(self, place: str, names: Container[str]) -> None:
        for name in [name for name in self.nodes if name not in names]:
            del self.nodes[name]

    def left_out(self, place: str, message: str | None) -> None:
        self.left_out_of[place] = message

    def trouble(self, name: str, failure: ContactFailed | None) -> None:
        assert name in self.nodes, "trouble is told of nodes that have arrived before"
        self.troubles[name] = failure
