"""The nodes that one list names and one way reaches, with all that is to be told of the list."""

from __future__ import annotations

from msgspec import structs

from gpuherd.api.contact import Contact
from gpuherd.api.health import GroupHealth
from gpuherd.discovery.finding import Finder, Remarking
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.views import FleetNotice
from gpuherd.model.targets import Target
from gpuherd.model.text import SENTENCE_LENGTH, clean
from gpuherd.sources.following import Way

__all__ = ["Group", "leads_elsewhere"]

TOLD_REFUSALS = 3


class Group:
    """The nodes that one finder names, reached one way."""

    def __init__(
        self, finder: Finder, way: Way, *, name: str | None = None, fixed: tuple[Target, ...] | None = None
    ) -> None:
        """``name`` is needed where two groups share a finder's. ``fixed``: what it will always find."""
        self.finder = finder
        self.way = way
        self.name = name or finder.name
        self.fixed = fixed
        self.targets: tuple[Target, ...] = ()
        self.contacts: dict[str, Contact] = {}
        self.missing: dict[str, float] = {}
        self.refused: dict[str, str] = {}
        self.remarks: tuple[str, ...] = ()
        self.found_at: float | None = None
        self.trouble: str | None = None
        self.trouble_since: float | None = None
        self.empty_since: float | None = None

    def found(self, clock: Clock) -> None:
        """Note that the list could be had and read."""
        self.empty_since = self.trouble = self.trouble_since = None
        self.found_at = clock.wall()
        said = self.finder.remarks if isinstance(self.finder, Remarking) else ()
        self.remarks = tuple(clean(remark, SENTENCE_LENGTH) for remark in said)

    def troubled(self, reason: str, clock: Clock) -> None:
        """Note why the list cannot be had; the last good one stays."""
        if self.trouble is None:
            self.trouble_since = clock.wall()
        self.trouble = clean(reason, SENTENCE_LENGTH)

    def notices(self) -> list[FleetNotice]:
        """Tell what everyone who looks should know."""
        told = []
        if self.trouble is not None:
            kept = (
                f"; the {len(self.contacts)} nodes of the last good list are still used"
                if self.contacts
                else ""
            )
            told.append(
                FleetNotice(
                    code="list_failed",
                    message=f"cannot load the node list {self.name}: {self.trouble}{kept}",
                    since=self.trouble_since,
                )
            )
        told += [FleetNotice(code="list_remark", message=remark) for remark in self.remarks]
        for name, reason in list(self.refused.items())[:TOLD_REFUSALS]:
            told.append(
                FleetNotice(code="node_refused", message=f"{name} in {self.name} is ignored: {reason}")
            )
        return told

    def health(self) -> GroupHealth:
        """Tell how the list and its contacts fare."""
        return GroupHealth(
            name=self.name,
            way=self.way.way,
            nodes=len(self.contacts),
            failing=sum(contact.is_failing for contact in self.contacts.values()),
            missing=len(self.missing),
            refused=self.refused,
            found_at=self.found_at,
            trouble=self.trouble,
            trouble_since=self.trouble_since,
        )


def leads_elsewhere(one: Target, other: Target) -> bool:
    """Tell whether two targets of one node must be reached differently."""
    return structs.replace(one, place="", expected_gpus=None) != structs.replace(
        other, place="", expected_gpus=None
    )
