"""A comments.json in a running hub: watched, or read once, and kept up to date for those who still read one."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct

from gpuherd.api.record_calls import RecordCalls
from gpuherd.bookings.comments_export import comment_entries, page_names
from gpuherd.bookings.comments_json import (
    MAX_FILE_BYTES,
    CommentEntry,
    Comments,
    Complaint,
    is_own_form,
    read_comments,
    write_comments,
)
from gpuherd.bookings.comments_sync import (
    CommentsSync,
    Owner,
    Placed,
    SyncOutcome,
    Taken,
    missing_from,
    place_entries,
    plain_host,
)
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.whole_files import keep_copy, replace_file
from gpuherd.discovery.files import Reading, Stamp, stamp
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.views import FleetNotice
from gpuherd.model.bookings import PAST_SHOWN_SECONDS, Booking
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.people import Account, person_key

__all__ = [
    "STATE_NAME",
    "CommentsExport",
    "CommentsWatch",
    "KnownBookings",
    "earlier_file",
    "find_owner",
    "read_comments_file",
]

log = logging.getLogger(__name__)

STATE_NAME = "comments-taken.json"
LOOK_SECONDS = 2.0
AGAIN_SECONDS = 60.0
"""How soon entries are looked at again: someone may be gone by then, or a person have got an account."""
FIRST_NODE_SECONDS = 60.0
"""How long after its start a hub that knows of no device yet leaves the file that it writes as it is."""
COMPLAINTS_LOGGED = 50
ENTRIES_AT_ONCE = 50


class KnownBookings(Protocol):
    """Bookings and devices as the hub knows them in memory; called on the event loop."""

    def bookings(self) -> Iterable[Booking]:
        """Give every booking that holds its devices now or later, or did until a few days ago."""

    def herd(self) -> Herd:
        """Give the devices as they are now."""


def find_owner(name: str, accounts: Iterable[Account], user_of: Callable[[str], str]) -> Owner:
    """Find the person whom a name in the file means: an account by its name, its user on the nodes, or its shown name.

    The shown name is what an exported file has; it counts only if a single account goes by it.
    """
    user = user_of(name)
    wanted, shown = person_key(user), person_key(name)
    meant: list[Account] = []
    called: list[Account] = []
    for account in accounts:
        names = account.name, *account.linux_names
        if user in names:
            return Owner(account.id, account.display_name or account.name)
        if wanted in map(person_key, names):
            meant.append(account)
        elif account.display_name and person_key(account.display_name) == shown:
            called.append(account)
    if meant:
        return Owner(meant[0].id, meant[0].display_name or meant[0].name)
    if len(called) == 1:
        return Owner(called[0].id, called[0].display_name)
    return Owner(None, user)


def read_comments_file(file: Path, zone: ZoneInfo) -> Comments:
    """Read a file of others, whatever it is; ``Failed`` says why it cannot be used. Blocking."""
    try:
        descriptor = os.open(
            file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        )  # a named pipe would block for ever
        with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Failed(f"{file}: is not a file; give the path of the file")
            content = opened.read(MAX_FILE_BYTES + 1)
        return read_comments(content, zone)
    except FileNotFoundError:
        raise Failed(f"{file}: no such file; bookings are unchanged") from None
    except OSError as error:
        raise Failed(f"{file}: cannot be read ({error.strerror}); let the hub's user read it") from error
    except Refused as error:
        raise Failed(f"{file}: {error}") from error


class _State(Struct):
    file: str
    taken: dict[str, Taken]


class CommentsWatch:
    """Takes over what a comments.json says, again whenever it has changed and has come to rest."""

    def __init__(
        self,
        file: Path,
        *,
        follows: bool,
        zone: ZoneInfo,
        state_dir: Path,
        known: KnownBookings,
        sync: CommentsSync,
        calls: RecordCalls,
        clock: Clock,
    ) -> None:
        """``follows``: look at the file again and again, and end what is gone from it; otherwise it is read once."""
        self.name = f"take over {file.name}"
        self.look_every_seconds = LOOK_SECONDS
        self._file = file
        self._follows = follows
        self._zone = zone
        self._known = known
        self._sync = sync
        self._calls = calls
        self._clock = clock
        self._reading = Reading(str(file))
        self._state_file = state_dir / STATE_NAME
        self._taken: dict[str, Taken] | None = None
        self._seen: Stamp | None = None
        self._done: Stamp | None = None
        self._comments: Comments | None = None
        self._again_at = 0.0
        self._complaints: tuple[Complaint, ...] = ()
        self._unplaced: tuple[Complaint, ...] = ()

    async def look(self) -> None:
        """Look once; ``Failed`` if the file or the records cannot be used now. Bookings then stay as they are."""
        now = await self._reading.do(lambda: stamp(self._file))
        before, self._seen = self._seen, now
        if self._comments is None or (self._follows and now != self._done):
            if now is None and self._comments is not None:
                raise Failed(f"{self._file}: no longer exists; its bookings are unchanged")
            if now is not None and now != before:
                return  # it may be half written: let it come to rest
            self._comments = await self._read()
            self._done = now
            self._again_at = 0.0
        if self._clock.monotonic() >= self._again_at or self._someone_has_come(self._comments):
            await self._take(self._comments)

    def _someone_has_come(self, comments: Comments) -> bool:
        """Whether entries that no device was known for mean one now: after a start nodes report one after the other."""
        return (
            bool(self._unplaced) and place_entries(comments.entries, self._known.herd())[1] != self._unplaced
        )

    async def _read(self) -> Comments:
        comments = await self._reading.do(lambda: read_comments_file(self._file, self._zone))
        if self._seen is not None and self._seen[3] == 0 and self._state():
            # Someone who writes it anew begins by emptying it; nobody means by this that all bookings shall end.
            raise Failed(
                f"{self._file}: is empty; bookings are unchanged. If there are no bookings, write {{}}"
            )
        return comments

    async def _take(self, comments: Comments) -> None:
        self._again_at = self._clock.monotonic() + AGAIN_SECONDS
        placed, self._unplaced = place_entries(comments.entries, self._known.herd())
        is_missing = missing_from(comments) if self._follows else lambda _: False
        refused: list[Complaint] = []
        # In parts, each within a verb's deadline; the first one also ends what is gone.
        for first in range(0, max(len(placed), 1), ENTRIES_AT_ONCE):
            outcome = await self._calls.run(
                self._apply, placed[first : first + ENTRIES_AT_ONCE], self._state(), is_missing
            )
            self._taken = outcome.taken
            refused += outcome.complaints
            if outcome.made or outcome.changed or outcome.ended:
                counts = len(outcome.made), len(outcome.changed), len(outcome.ended)
                log.info("%s: created %d bookings, changed %d, ended %d", self._file, *counts)
        self._tell((*comments.complaints, *self._unplaced, *refused))

    def _apply(
        self, placed: Sequence[Placed], before: dict[str, Taken], is_missing: Callable[[str], bool]
    ) -> SyncOutcome:
        outcome = self._sync.apply(placed, before, is_missing=is_missing, now=self._clock.wall())
        if outcome.taken != before:
            try:
                replace_file(self._state_file, msgspec.json.encode(_State(str(self._file), outcome.taken)))
            except OSError as error:
                raise Failed(
                    f"{self._state_file}: cannot be written ({error.strerror}); free some space"
                ) from error
        return outcome

    def _tell(self, complaints: tuple[Complaint, ...]) -> None:
        known = {one.sentence for one in self._complaints}
        for complaint in [one for one in complaints if one.sentence not in known][:COMPLAINTS_LOGGED]:
            log.warning("%s: %s", self._file, complaint)
        self._complaints = complaints

    def notices(self) -> list[FleetNotice]:
        """Tell how many entries are not taken; whose they are is in the log, not for everyone."""
        count = len(self._complaints)
        if not count:
            return []
        entries = "an entry is" if count == 1 else f"{count} entries are"
        message = f"{self._file.name}: {entries} not imported; the hub's log says which and why"
        return [FleetNotice(code="comments_not_taken", message=message)]

    def _state(self) -> dict[str, Taken]:
        if self._taken is None:
            self._taken = _read_state(self._state_file, self._file)
        return self._taken


class CommentsExport:
    """Keeps a comments.json up to date with all bookings.

    Someone may follow that file and end what is gone from it. So what an earlier file says of hosts that have not been
    seen since the start stays in it, for as long as such an entry is told at all.
    """

    def __init__(self, file: Path, *, zone: ZoneInfo, known: KnownBookings, clock: Clock) -> None:
        self.name = f"keep {file.name} up to date"
        self.look_every_seconds = LOOK_SECONDS
        self._file = file
        self._zone = zone
        self._known = known
        self._clock = clock
        self._writing = Reading(str(file))
        self._written: bytes | None = None
        self._earlier: tuple[CommentEntry, ...] | None = None
        self._hosts: tuple[str, ...] = ()
        self._seen_hosts: set[str] = set()
        self._empty_until = clock.monotonic() + FIRST_NODE_SECONDS

    async def look(self) -> None:
        """Write the file if something is different; ``Failed`` if that is not possible now."""
        herd, bookings, now = self._known.herd(), list(self._known.bookings()), self._clock.wall()
        if not herd.devices and self._written is None and self._clock.monotonic() < self._empty_until:
            return  # nobody has reported yet
        await self._writing.do(lambda: self._write(herd, bookings, now))

    def _write(self, herd: Herd, bookings: list[Booking], now: float) -> None:
        """In a thread: with thousands of devices this takes a while."""
        if self._earlier is None:
            self._earlier, self._hosts = earlier_file(self._file, self._zone)
        names = page_names(herd, self._hosts)
        hosts = comment_entries(herd, bookings, now, names)
        self._seen_hosts.update(map(plain_host, (*names, *names.values())))
        for entry in self._unseen(now):
            hosts.setdefault(entry.host, []).append(entry)
        content = write_comments(hosts, self._zone)
        if content == self._written:
            return
        try:
            replace_file(self._file, content, mode=0o644)
        except OSError as error:
            raise Failed(
                f"{self._file}: cannot be written ({error.strerror}); let the hub's user write there"
            ) from error
        self._written = content

    def _unseen(self, now: float) -> list[CommentEntry]:
        """Give what stays of the file as it was at the start."""
        self._earlier = tuple(
            entry
            for entry in self._earlier or ()
            if plain_host(entry.host) not in self._seen_hosts and entry.until + PAST_SHOWN_SECONDS > now
        )
        return list(self._earlier)


def earlier_file(file: Path, zone: ZoneInfo) -> tuple[tuple[CommentEntry, ...], tuple[str, ...]]:
    """Give entries and hosts of a file that is about to be replaced; ``Failed`` if it cannot be read now. Blocking.

    What others have written there, such as the older page or a person, is kept as a copy.
    """
    if not os.path.lexists(file):
        return (), ()
    comments = Comments(entries=(), complaints=())
    try:
        comments = read_comments_file(file, zone)
    except Failed as error:
        if isinstance(error.__cause__, OSError):
            raise
        log.warning("%s; writing it again", error)
    try:
        if file.stat().st_size and not is_own_form(file.read_bytes()):
            log.warning(
                "%s was changed by another program and is replaced; copied to %s", file, keep_copy(file)
            )
    except OSError as error:
        raise Failed(
            f"{file}: cannot be copied before it is replaced ({error.strerror}); let the hub's user write there"
        ) from error
    return comments.entries, comments.hosts


def _read_state(file: Path, comments_file: Path) -> dict[str, Taken]:
    """Read what was taken before; without it, what is in the records is recognised all the same."""
    try:
        state = msgspec.json.decode(file.read_bytes(), type=_State)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("cannot read %s (%s); starting with an empty list", file, error)
        return {}
    return state.taken if state.file == str(comments_file) else {}
