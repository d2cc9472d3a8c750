"""Bookings' records: what making one costs with a hundred thousand in place, and reading a month of a large herd.

Both databases take turns, also with an empty place, so that the machine's mood falls on all of them alike.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Table, insert, text

from bench.measure import Figure, median
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.people import Actor
from gpuherd.records.bookings import BookingDraft, BookingRecords, Conflict, Limits
from gpuherd.records.database import open_records, opened_records
from gpuherd.records.people import PeopleRecords
from gpuherd.records.tables import booking_devices, booking_revision, bookings

__all__ = ["measure_booking_records"]

BOOKINGS = 100_000
HERD = [DeviceRef(f"node{number // 8:04}", f"GPU-{number:08}") for number in range(1000)]
HOUR = 3600
DAY = 24 * HOUR
NOW = 1_800_000_000
BY = Actor(account_id=None, label="bench")
LIMITS = Limits(max_devices_at_once=64, gpu_seconds_ahead=100_000 * HOUR)
MS = 1000.0


def _fill(location: Path | str, owner_id: str) -> None:
    """Book node after node and day after day: most of it past, a month of it ahead, half the herd at any time."""
    kept: list[dict[str, object]] = []
    devices: list[dict[str, object]] = []
    for number in range(BOOKINGS):
        turn, node = divmod(number, 125)
        starts_at = NOW + (turn - BOOKINGS // 125 + 30) * DAY + (node % 12) * HOUR
        # A whole node now and then, most often one or two of its devices.
        count = 8 if number % 10 == 0 else 1 + number % 2
        holds = number % 20 != 7
        row = {"starts_at": starts_at, "ends_at": starts_at + 12 * HOUR, "holds": holds}
        kept.append(
            {
                "id": number + 1,
                "title": f"run {number}",
                "comment": "",
                "owner_id": owner_id if number % 50 == 0 else None,
                "owner_name": "Ada",
                "zone": "UTC",
                "state": "active" if holds else "cancelled",
                "origin": "person",
                "created_at": float(starts_at),
                "changed_at": float(starts_at),
                "revision": number + 1,
                **row,
            }
        )
        devices += [
            {"booking_id": number + 1, "node_id": one.node_id, "uuid": one.uuid, **row}
            for one in HERD[node * 8 : node * 8 + count]
        ]
    with opened_records(location) as connection:  # which may take its time
        for into, rows in ((bookings, kept), (booking_devices, devices)):
            _load(connection, into, rows)
        connection.execute(booking_revision.update().values(number=BOOKINGS))
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT setval(pg_get_serial_sequence('bookings', 'id'), 100000)"))
        connection.execute(text("ANALYZE"))


def _load(connection: Connection, into: Table, rows: list[dict[str, object]]) -> None:
    if connection.dialect.name != "postgresql":
        connection.execute(insert(into), rows)
        return
    cursor = connection.connection.cursor()
    with cursor.copy(f"COPY {into.name} ({', '.join(rows[0])}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(list(row.values()))


class _Taken(NamedTuple):
    """What something took, in milliseconds: by the clock, and of this process's CPU time."""

    wall: float
    cpu: float


def _milliseconds(work: Callable[[], object]) -> _Taken:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return _Taken((time.perf_counter() - began) * MS, (time.process_time() - cpu) * MS)


def _note(taken: list[_Taken]) -> str:
    walls = [one.wall for one in taken]
    return (
        f"{min(walls):.1f} to {max(walls):.1f} ms; "
        f"of it {median([one.cpu for one in taken]):.1f} ms CPU of the hub's side"
    )


class _Place:
    """Records of one kind, empty or full, and what is asked of them."""

    def __init__(self, location: Path | str, *, full: bool) -> None:
        self.engine = open_records(location)
        self.records = BookingRecords(self.engine)
        people = PeopleRecords(self.engine)
        self.owner_id = people.create_account(
            name="ada", display_name="Ada", role="member", now=float(NOW), by=BY
        ).id
        self._chance = random.Random(7)  # noqa: S311 - repeatable on purpose
        self._turn = 0
        if full:
            _fill(location, self.owner_id)

    def _draft(self, starts_at: int) -> BookingDraft:
        node = self._chance.randrange(125)
        devices = tuple(HERD[node * 8 : node * 8 + 4])
        return BookingDraft(
            owner_id=self.owner_id,
            owner_name="Ada",
            devices=devices,
            starts_at=starts_at,
            ends_at=starts_at + HOUR,
        )

    def create(self) -> _Taken:
        """Book four devices for an hour beyond all that is booked, within limits."""
        self._turn += 1
        wanted = self._draft(NOW + 60 * DAY + self._turn * HOUR)
        return _milliseconds(lambda: self.records.create([wanted], now=float(NOW), by=BY, limits=LIMITS))

    def collide(self) -> _Taken:
        """Want what is taken, and be told by whom."""
        node = self._chance.randrange(0, 120, 10)  # one of those whose whole node is booked
        starts_at = NOW + 20 * DAY + (node % 12) * HOUR

        def attempt() -> None:
            wanted = BookingDraft(
                owner_id=self.owner_id,
                owner_name="Ada",
                devices=tuple(HERD[node * 8 : node * 8 + 4]),
                starts_at=starts_at,
                ends_at=starts_at + HOUR,
            )
            try:
                self.records.create([wanted], now=float(NOW), by=BY)
            except Conflict:
                return
            raise SystemExit("the device was free")

        return _milliseconds(attempt)

    def month(self) -> _Taken:
        """Read thirty days of a thousand devices."""
        return _milliseconds(
            lambda: self.records.overlapping(devices=HERD, starts_at=NOW, ends_at=NOW + 30 * DAY)
        )

    def month_of_all(self) -> _Taken:
        """Read thirty days of whatever is there."""
        return _milliseconds(lambda: self.records.overlapping(starts_at=NOW, ends_at=NOW + 30 * DAY))


@contextmanager
def _places() -> Iterator[dict[str, tuple[_Place, _Place]]]:
    """Give a full and an empty place of each kind; without PostgreSQL only of SQLite."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.postgresql import running_postgresql, why_no_postgresql

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        places = {
            "SQLite": (_Place(folder / "full.sqlite", full=True), _Place(folder / "empty.sqlite", full=False))
        }
        if why_no_postgresql() is None:
            server = stack.enter_context(running_postgresql(durable=True))
            full, empty = (stack.enter_context(server.database()) for _ in range(2))
            places["PostgreSQL"] = (_Place(full, full=True), _Place(empty, full=False))
        for pair in places.values():
            for place in pair:
                stack.callback(place.engine.dispose)
        yield places


def measure_booking_records(rounds: int = 60) -> list[Figure]:
    """Measure all in turn."""
    figures = []
    with _places() as places:
        asked: dict[tuple[str, str], Callable[[], _Taken]] = {}
        for kind, (full, empty) in places.items():
            asked |= {
                (kind, "create"): full.create,
                (kind, "create in an empty place"): empty.create,
                (kind, "conflict"): full.collide,
                (kind, "month"): full.month,
                (kind, "month of all"): full.month_of_all,
            }
        taken: dict[tuple[str, str], list[_Taken]] = {what: [] for what in asked}
        for turn in range(rounds):
            for what, ask in asked.items():
                if not what[1].startswith("month") or turn % 4 == 0:
                    taken[what].append(ask())
        middle = {what: median([one.wall for one in times]) for what, times in taken.items()}
        for kind, (full, _) in places.items():
            count = len(full.records.overlapping(starts_at=NOW, ends_at=NOW + 30 * DAY))
            create, alone = middle[kind, "create"], middle[kind, "create in an empty place"]
            conflict, month, all_month = (
                middle[kind, what] for what in ("conflict", "month", "month of all")
            )
            figures += [
                Figure(
                    id="bookings",
                    what=f"{kind}: check limits and conflicts and book 4 devices, {BOOKINGS:,} bookings in place",
                    value=round(create, 2),
                    unit="ms",
                    against="none in place",
                    baseline=round(alone, 2),
                    ratio=round(create / alone, 2),
                    goal="≤ 10 ms median",
                    met=create <= 10,
                    note=_note(taken[kind, "create"]),
                ),
                Figure(
                    id="bookings",
                    what=f"{kind}: be told who has the devices",
                    value=round(conflict, 2),
                    unit="ms",
                    goal="≤ 10 ms median",
                    met=conflict <= 10,
                    note=_note(taken[kind, "conflict"]),
                ),
                Figure(
                    id="bookings",
                    what=f"{kind}: read 30 days of {len(HERD):,} devices, {count:,} bookings",
                    value=round(month, 1),
                    unit="ms",
                    against="without naming the devices",
                    baseline=round(all_month, 1),
                    ratio=round(month / all_month, 2),
                    goal="≤ 100 ms median",
                    met=month <= 100,
                    note=_note(taken[kind, "month"]),
                ),
            ]
    return figures
