"""Who is let in as a node: credentials in memory, enrolment in a thread, changes by others seen within a second."""

from __future__ import annotations

from collections.abc import Callable

from gpuherd.api.errors import HttpError
from gpuherd.api.record_calls import RecordCalls
from gpuherd.auth.attempts import FailedAttempts
from gpuherd.auth.enrolment import Credentials, Enrolled, Enrolment
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Refused
from gpuherd.records.nodes import EnrolledNodes

__all__ = ["Admission"]

MAX_WAITING = 64
"""Enrolments under way; more are turned away, so that a flood cannot pile up."""

Change = Callable[[EnrolledNodes | None, EnrolledNodes], None]


class Admission:
    """The event loop's side of enrolment."""

    def __init__(self, enrolment: Enrolment, calls: RecordCalls, clock: Clock, *, on_change: Change) -> None:
        self._enrolment = enrolment
        self._calls = calls
        self._clock = clock
        self._on_change = on_change
        self._enrolled: EnrolledNodes | None = None
        self._credentials: Credentials | None = None
        self._attempts = FailedAttempts()
        self._waiting = 0
        self.refused_credentials = 0

    async def refresh(self) -> None:
        """Read nodes and credentials anew and pass on what changed."""
        enrolled = await self._calls.run(self._enrolment.load)
        before = self._enrolled
        if before is None or enrolled.revision > before.revision:
            self._enrolled = enrolled
            self._credentials = Credentials(enrolled)
            self._on_change(before, enrolled)

    async def watch(self) -> None:
        """See what others (the command line, another hub) have changed. Every second."""
        revision = await self._calls.run(self._enrolment.revision)
        if self._enrolled is None or revision != self._enrolled.revision:
            await self.refresh()

    def node_of(self, authorization: str | None) -> str:
        """Give the node that an ``Authorization`` header belongs to; ``HttpError`` 401 otherwise."""
        scheme, _, credential = (authorization or "").partition(" ")
        node_id = None
        if self._credentials is not None and scheme.lower() == "bearer":
            node_id = self._credentials.node_of(credential.strip())
        if node_id is None:
            self.refused_credentials += 1
            raise HttpError(
                401,
                "unauthorized",
                "a node's credential is needed, as Authorization: Bearer; POST /api/v1/enroll gives one",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return node_id

    async def enrol(self, *, token: str, name: str, peer: str, credential: str | None = None) -> Enrolled:
        """Buy a credential; ``Refused`` if the token or name will not do, or ``peer`` has failed too often."""
        self._attempts.check(peer, self._clock.monotonic())
        if self._waiting >= MAX_WAITING:
            raise Refused("too_many_attempts", "too many enrolments at a time; try again in a moment")
        self._waiting += 1
        try:
            enrolled = await self._calls.run(
                self._enrolment.enrol, token=token, name=name, now=self._clock.wall(), credential=credential
            )
        except Refused:
            self._attempts.failed(peer, self._clock.monotonic())
            raise
        finally:
            self._waiting -= 1
        await self.refresh()
        return enrolled

    async def admit(self, name: str) -> Enrolled:
        """Enrol without a token."""
        enrolled = await self._calls.run(self._enrolment.admit, name, now=self._clock.wall())
        await self.refresh()
        return enrolled
