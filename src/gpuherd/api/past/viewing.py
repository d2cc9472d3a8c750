"""Who asks about the past, and what they see of people and things."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpuherd.api.booking_memory import People
from gpuherd.api.past.faces import Groups, PastFace, groups_by_user
from gpuherd.bookings.herd import Herd
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.names import Names
from gpuherd.fleet.privacy import Face
from gpuherd.model.people import PrivacyClass, Viewer

__all__ = ["Faces", "LiveNames"]


class LiveNames(Protocol):
    """The fleet as far as it knows what everyone is called."""

    clock: Clock
    names: Names

    @property
    def shows_command_lines(self) -> bool:
        """Whether everyone who sees names sees command lines."""

    def face(self, privacy: PrivacyClass) -> Face:
        """Give what a privacy class is shown."""


class Faces:
    """Makes a viewer's face of the past. Used on the event loop."""

    def __init__(self, live: LiveNames, people: People, herd: Callable[[], Herd]) -> None:
        self._live = live
        self._people = people
        self._herd = herd
        self._groups: Groups = {}
        self._generation = -1

    @property
    def generation(self) -> int:
        """Another number whenever something about people has changed."""
        return self._people.generation

    def of(self, viewer: Viewer) -> PastFace:
        """Make it; ``HttpError`` 403 for someone who sees totals alone."""
        if self._generation != self._people.generation:
            self._groups = groups_by_user(self._people.accounts())
            self._generation = self._people.generation
        public = self._live.face("public")
        return PastFace(
            viewer,
            self._herd(),
            alias=self._live.names.user,
            pseudonym=lambda name: public.user(name) or name,
            groups=self._groups,
            shows_command_lines=self._live.shows_command_lines,
        )
