"""The contact to one listed node: followed for ever, and whatever keeps us from it is shown with its since-time."""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import Protocol

from gpuherd.agent.backoff import Backoff
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Refused
from gpuherd.model.reports import Problem, Report
from gpuherd.model.targets import Target
from gpuherd.model.text import SENTENCE_LENGTH, clean
from gpuherd.sources.following import ContactFailed, Way

__all__ = ["Contact", "ContactFleet", "contact_problem"]

log = logging.getLogger(__name__)

LONGEST_START_SECONDS = 5.0
"""First contacts are spread over this time, so that a thousand nodes are not dialled at once."""


class ContactFleet(Protocol):
    """What a contact needs of the fleet."""

    def accept_report(self, node_id: str, report: Report, interval_seconds: float | None = None) -> None:
        """Take a whole report."""

    def note(self, node_id: str, subject: str, problem: Problem | None) -> None:
        """Say what the hub knows of a node."""

    def refuse(self, node_id: str, error: Refused) -> None:
        """Count against a node what could not be taken."""

    def received_at(self, node_id: str) -> float | None:
        """Tell when something live of a node came last."""


def contact_problem(failure: ContactFailed, since: float) -> Problem:
    """Make of a failure what is shown of the node."""
    return Problem(code=failure.code, message=clean(str(failure), SENTENCE_LENGTH), since=since)


class Contact:
    """Follows one node, and is where its reports go."""

    def __init__(
        self, node_id: str, target: Target, way: Way, *, fleet: ContactFleet, clock: Clock, random: Random
    ) -> None:
        self._node_id = node_id
        self.target = target
        self._way = way
        self._fleet = fleet
        self._clock = clock
        self._random = random
        self._backoff = Backoff(uniform=random.uniform)
        self._failing_since: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._failed_at: float | None = None

    @property
    def node_id(self) -> str:
        """The id that the configuration gives the node, whatever it says of itself."""
        return self._node_id

    def take(self, report: Report) -> None:
        """Take a report of right now; ``Refused`` if its parts do not line up."""
        self._fleet.accept_report(self._node_id, report, self._way.interval_seconds)

    @property
    def is_failing(self) -> bool:
        """Whether nothing has come since contact was lost or could not be made."""
        if self._failed_at is None:
            return False
        received = self._fleet.received_at(self._node_id)
        return received is None or received < self._failed_at

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.get_running_loop().create_task(self._follow(), name=f"contact {self._node_id}")

    def end(self) -> None:
        """Take nothing more from now on; ``stop`` waits until all is let go of."""
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    async def stop(self) -> None:
        """End, whatever is under way."""
        if self._task is not None:
            self.end()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _follow(self) -> None:
        spread = min(self._way.interval_seconds, LONGEST_START_SECONDS)
        await asyncio.sleep(self._random.uniform(0.0, spread))
        while True:
            started = self._clock.monotonic()
            failure = await self._follow_once()
            await asyncio.sleep(self._failed(failure, started))

    async def _follow_once(self) -> ContactFailed:
        try:
            await self._way.follow(self.target, self)
        except ContactFailed as failure:
            return failure
        except Refused as refusal:
            return ContactFailed("garbled", f"{self.target.name}: {refusal}")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody has ended us: something that this way shares was given up under it.
            log.warning("the connection to node %s was cancelled inside the hub; reconnecting", self._node_id)
            return ContactFailed("link_lost", f"{self.target.name}: the hub cancelled the connection")
        except Exception as error:  # whatever it is, it must not end the contact, nor harm another node's
            log.exception("unexpected error in the connection to node %s; reconnecting", self._node_id)
            return ContactFailed(
                "hub_error", f"{self.target.name}: {type(error).__name__} in the hub, see its log"
            )
        return ContactFailed("link_lost", f"{self.target.name}: the connection has ended")

    def _failed(self, failure: ContactFailed, started: float) -> float:
        """Show a failure and say how long to wait. ``started``: when the attempt began that has failed."""
        received = self._fleet.received_at(self._node_id)
        if self._failing_since is None or (received is not None and received >= started):
            self._failing_since = self._clock.wall()
            self._backoff.reset()
        self._failed_at = self._clock.monotonic()
        self._fleet.note(self._node_id, "contact", contact_problem(failure, self._failing_since))
        return self._backoff.slow_seconds() if failure.needs_person else self._backoff.next_seconds()
