"""Who is let in as a node: credentials in memory, enrolment in a thread, changes by others seen within a second."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec import structs

from gpuherd.api.errors import HttpError
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.sender import place_of
from gpuherd.api.sparing_log import SparingLog
from gpuherd.auth.attempts import FailedAttempts
from gpuherd.auth.enrolment import Credentials, Enrolled, Enrolment
from gpuherd.auth.secrets import digest
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Refused
from gpuherd.records.nodes import EnrolledNodes, NodeRecord

__all__ = ["Admission"]

log = logging.getLogger(__name__)

MAX_LINES = 20
"""Lines of each kind per minute."""
MAX_WAITING = 64
"""Enrolments under way; more are turned away, so that a flood cannot pile up."""

Change = Callable[[EnrolledNodes | None, EnrolledNodes], None]
Addition = Callable[[Enrolled], None]


class Admission:
    """The event loop's side of enrolment."""

    def __init__(
        self,
        enrolment: Enrolment,
        calls: RecordCalls,
        clock: Clock,
        *,
        on_change: Change,
        on_enrolled: Addition,
    ) -> None:
        """``on_enrolled`` is called with each node that enrols at this hub, before the records are read again."""
        self._enrolment = enrolment
        self._calls = calls
        self._clock = clock
        self._on_change = on_change
        self._on_enrolled = on_enrolled
        self._added: dict[str, Enrolled] = {}
        """Nodes that enrolled since the records were last read, by the digest of their credential."""
        self._enrolled: EnrolledNodes | None = None
        self._credentials: Credentials | None = None
        self._attempts = FailedAttempts()
        self._sparing = SparingLog(log, limit=MAX_LINES, monotonic=clock.monotonic)
        self._waiting = 0
        self.refused_credentials = 0

    async def refresh(self) -> None:
        """Read nodes and credentials anew and pass on what changed."""
        enrolled = await self._calls.run(self._enrolment.load)
        before = self._enrolled
        if before is None or enrolled.revision > before.revision:
            added = [(key, node) for key, node in self._added.items() if node.revision <= enrolled.revision]
            for key, _ in added:
                del self._added[key]
            self._enrolled = enrolled
            self._credentials = Credentials(enrolled)
            for key, node in self._added.items():
                self._credentials.add(key, node.node_id)
            self._on_change(None if before is None else _with(before, added), enrolled)

    async def watch(self) -> None:
        """See what others (the command line, another hub) have changed. Every second."""
        revision = await self._calls.run(self._enrolment.revision)
        if self._enrolled is None or revision != self._enrolled.revision:
            await self.refresh()

    def node_of(self, authorization: str | None, address: str) -> str:
        """Give the node that an ``Authorization`` header belongs to; ``HttpError`` 401 otherwise."""
        node_id = self.known_node(authorization)
        if node_id is None:
            self.refused_credentials += 1
            self._sparing.warning("credential", f"node refused: unknown credential from {address}")
            raise HttpError(
                401,
                "unauthorized",
                "a node credential is required (Authorization: Bearer); enrol with POST /api/v1/enroll",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return node_id

    def known_node(self, authorization: str | None) -> str | None:
        """Return the node that an ``Authorization`` header belongs to; None if there is none."""
        scheme, _, credential = (authorization or "").partition(" ")
        if self._credentials is None or scheme.lower() != "bearer":
            return None
        return self._credentials.node_of(credential.strip())

    async def enrol(self, *, token: str, name: str, peer: str, credential: str | None = None) -> Enrolled:
        """Buy a credential; ``Refused`` if the token or name will not do, or ``peer`` has failed too often."""
        place = place_of(peer)
        self._attempts.check(place, self._clock.monotonic())
        if self._waiting >= MAX_WAITING:
            raise Refused("too_many_attempts", "too many enrolments at once; try again in a moment")
        self._waiting += 1
        try:
            enrolled = await self._calls.run(
                self._enrolment.enrol,
                token=token,
                name=name,
                now=self._clock.wall(),
                credential=credential,
                peer=peer,
            )
        except Refused as refusal:
            self._attempts.failed(place, self._clock.monotonic())
            self._sparing.warning("enrolment", f"enrolment refused from {peer}: {refusal}")
            raise
        finally:
            self._waiting -= 1
        self._sparing.log(logging.INFO, "enrolled", f"node {enrolled.name} enrolled from {peer}")
        await self._add(enrolled)
        return enrolled

    async def _add(self, enrolled: Enrolled) -> None:
        """Accept a new node at once. Reading all records for each new node would take quadratic time.

        If it is missing in records that were read since it enrolled, it was removed meanwhile.
        """
        if self._credentials is None or self._enrolled is None:
            await self.refresh()
        elif (
            enrolled.revision > self._enrolled.revision
            and self._credentials.node_of(enrolled.credential) is None
        ):
            key = digest(enrolled.credential)
            self._added[key] = enrolled
            self._credentials.add(key, enrolled.node_id)
            self._on_enrolled(enrolled)

    async def admit(self, name: str) -> Enrolled:
        """Enrol without a token."""
        enrolled = await self._calls.run(self._enrolment.admit, name, now=self._clock.wall())
        await self.refresh()
        return enrolled


def _with(known: EnrolledNodes, added: list[tuple[str, Enrolled]]) -> EnrolledNodes:
    """Return the known nodes and those that were added since."""
    return structs.replace(
        known,
        nodes=(
            *known.nodes,
            *(NodeRecord(id=node.node_id, name=node.name, enrolled_at=0.0) for _, node in added),
        ),
        credentials={**known.credentials, **{key: node.node_id for key, node in added}},
    )
