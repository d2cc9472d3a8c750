"""The hub's memory: what is opened, fed, tended, asked and closed of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from gpuherd.api.booking_desk import BookingDesk
from gpuherd.api.command_reads import CommandReads
from gpuherd.api.front import Front
from gpuherd.api.history_keeping import HistoryKeeping
from gpuherd.api.past.figures import Prices
from gpuherd.api.past.history_desk import HistoryDesk
from gpuherd.api.past.past_bookings import PastBookings
from gpuherd.api.past.personal import PersonalPast
from gpuherd.api.past.questions import Questions
from gpuherd.api.past.sources import Memory
from gpuherd.api.past.trends import LiveFree
from gpuherd.api.past.usage_desk import UsageDesk
from gpuherd.api.past.viewing import Faces
from gpuherd.api.supervision import Supervisor
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.intake import Intake, waiting_bound
from gpuherd.fleet.pseudonyms import LastingPseudonyms
from gpuherd.history.historian import HistoryHealth, is_remote
from gpuherd.history.library import Library, OpenSamples
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.history.usage.asking import Stay, UsageReader
from gpuherd.records.last_reports import LastReport
from gpuherd.sources.push import NodeLinks

__all__ = ["PastOutfit", "Remembering"]

TEND_SECONDS = 2.0
DAY_SECONDS = 86_400.0


class PastOutfit(NamedTuple):
    """What a hub remembers with."""

    history: HistorySettings
    usage: UsageSettings
    open_samples: OpenSamples


class _Use:
    """Use by people, of whom some may be told and some forgotten."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def export(self, users: Collection[str], *, deadline: float) -> tuple[Stay, ...]:
        """Give all stays of these users."""
        return UsageReader(self._library.book).export(users, deadline=deadline)

    def erase(self, users: Collection[str]) -> None:
        """Forget whose they were."""
        self._library.book.erase(users)


class Remembering:
    """A hub's memory, from its start to its end. Everything but ``open`` and ``close`` is for the event loop."""

    def __init__(
        self, outfit: PastOutfit, *, state_dir: Path, fleet: Fleet, links: NodeLinks, clock: Clock
    ) -> None:
        self._outfit = outfit
        self._folder = outfit.history.folder or state_dir / "history"
        self._fleet = fleet
        self._links = links
        self._clock = clock
        self._questions = Questions(clock)
        self._personal: PersonalPast | None = None
        self._library: Library | None = None
        self._keeping: HistoryKeeping | None = None

    async def open(self, pseudonyms: LastingPseudonyms) -> HistoryKeeping:
        """Read what is not in its place yet, and gather what comes from now on; ``Misconfigured`` if it cannot."""
        library = await asyncio.to_thread(self._make, pseudonyms)
        self._library = library
        accountant = await asyncio.to_thread(library.open)
        intake = self._fleet.intake = Intake(
            clock=self._clock,
            names=self._fleet.names,
            accountant=accountant,
            oldest_seconds=library.latest_seconds,
            bound_bytes=lambda: waiting_bound(self._fleet.node_count),
        )
        self._keeping = HistoryKeeping(
            intake,
            library.historian,
            take_again=self._fleet.take_again,
            send_again=self._links.send_again,
            note_lost=self._fleet.note_lost,
        )
        return self._keeping

    def _make(self, pseudonyms: LastingPseudonyms) -> Library:
        settings = self._fleet.settings
        return Library(
            self._folder,
            self._outfit.history,
            self._outfit.usage,
            open_samples=self._outfit.open_samples,
            pseudonym=pseudonyms.of,
            stay_id=pseudonyms.stay_id,
            wall=self._clock.wall,
            busy_utilization=settings.busy_utilization,
            busy_memory=settings.busy_memory,
        )

    @property
    def library(self) -> Library:
        """What remembers."""
        if self._library is None:
            raise RuntimeError("the history is not open")
        return self._library

    def node_ids(self) -> set[str]:
        """Return the nodes that have frames in the journal."""
        return set(self.library.historian.marks.node_ids)

    def know(self, kept: Iterable[LastReport], *, forgets: bool = True) -> None:
        """Count the frames in the journal as taken: the hub may have died before it acknowledged them.

        ``forgets``: drop the marks of nodes that no longer exist.
        """
        historian = self.library.historian
        for report in kept:
            historian.marks.know(report.node_id, report.runs)
        for node_id in list(historian.marks.node_ids):
            if self._fleet.has_node(node_id):
                runs = historian.marks.runs(node_id)
                self._fleet.raise_runs(node_id, runs)
                self._links.note_saved([(node_id, runs)])
            elif forgets:
                historian.forget(node_id)

    def desks(
        self, front: Front, bookings: BookingDesk, reads: CommandReads, zone: str
    ) -> tuple[HistoryDesk, UsageDesk]:
        """Make those who answer questions, also of people about themselves."""
        library, clock = self.library, self._clock
        self._personal = front.people.past = PersonalPast(
            _Use(library), self._fleet.names, Prices(self._outfit.usage)
        )
        memory = Memory(
            samples=library.samples.reader,
            herd=library.herd,
            usage=UsageReader(library.book, herd=library.herd, clock=clock.wall),
            is_outside=is_remote(library.samples.sink),
        )
        faces = Faces(self._fleet, front.authority, bookings.herd)
        history = HistoryDesk(memory, questions=self._questions, faces=faces, clock=clock, zone=zone)
        usage = UsageDesk(
            memory,
            settings=self._outfit.usage,
            questions=self._questions,
            faces=faces,
            bookings=PastBookings(
                bookings.memory,
                records=front.records.bookings,
                calls=front.calls,
                people=front.authority,
                live=self._fleet,
                named_seconds=self._outfit.history.pseudonymise_after_days * DAY_SECONDS,
            ),
            reads=reads,
            live_free=self._live_free,
            clock=clock,
            zone=zone,
        )
        return history, usage

    def _live_free(self) -> LiveFree:
        totals = self._fleet.totals()
        return LiveFree(free=totals.devices.get("free", 0), all=sum(totals.devices.values()))

    def start(self, supervisor: Supervisor) -> None:
        """Tend it in the background; a store elsewhere apart, lest the files here wait for it."""
        historian = self.library.historian
        supervisor.add(
            "tend history",
            lambda: asyncio.to_thread(historian.tend_own),
            every_seconds=TEND_SECONDS,
            deadline_seconds=None,
        )
        if is_remote(self.library.samples.sink):
            supervisor.add(
                "send history",
                lambda: asyncio.to_thread(historian.tend_remote),
                every_seconds=TEND_SECONDS,
                deadline_seconds=None,
            )

    def lag_seconds(self) -> float:
        """Return how long the oldest unwritten sample has waited; 0 while the disk refuses writes.

        That is not overload; the history's health says why it refuses.
        """
        if self._keeping is None or self._keeping.is_failing:
            return 0.0
        return self._keeping.lag_seconds(self._clock.monotonic())

    def health(self) -> HistoryHealth | None:
        """Tell how remembering is doing."""
        return None if self._keeping is None else self._keeping.health()

    def close(self) -> None:
        """Close, after the last flush; blocking."""
        self._questions.close()
        if self._personal is not None:
            self._personal.close()
        if self._library is not None:
            self._library.close()
