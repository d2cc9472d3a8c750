"""A small herd with a past in real files, and the desks that tell of it to people of every kind."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import Engine

from gpuherd.api.booking_memory import BookingMemory
from gpuherd.api.command_reads import CommandReads
from gpuherd.api.history_service import Answer
from gpuherd.api.past.history_desk import HistoryDesk
from gpuherd.api.past.past_bookings import PastBookings
from gpuherd.api.past.questions import Questions
from gpuherd.api.past.sources import Memory
from gpuherd.api.past.trends import LiveFree
from gpuherd.api.past.usage_desk import UsageDesk
from gpuherd.api.past.viewing import Faces
from gpuherd.api.record_calls import RecordCalls
from gpuherd.bookings.herd import Herd
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.names import Names
from gpuherd.fleet.pseudonyms import Pseudonyms
from gpuherd.fleet.settings import DisplaySettings
from gpuherd.history.batch import USE_MEASURES, Batch, SessionKey, Uses
from gpuherd.history.embedded.kinds import SHAPES as SAMPLE_SHAPES
from gpuherd.history.embedded.store import EmbeddedStore
from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.herd.shapes import HERD_SHAPES
from gpuherd.history.herd.sink import HerdSink
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.history.tables.tables import Tables
from gpuherd.history.usage.asking import UsageReader
from gpuherd.history.usage.book import UsageBook
from gpuherd.history.usage.rows import SHAPES as USAGE_SHAPES
from gpuherd.model.people import Account, Viewer
from gpuherd.records.bookings import BookingRecords
from support.booking_desk import a100, person
from support.herd import ManualClock
from support.past import Row
from support.past import batch_of as samples_batch
from support.running import PATIENCE_SECONDS

__all__ = [
    "ADA",
    "BOB",
    "NOW",
    "VIEWERS",
    "ReportedPast",
    "Slot",
    "random_slots",
    "read",
    "reported_past",
    "uses_of",
]

NOW = 1_790_001_000.0
"""2026-09-21 14:30 UTC, a Monday; a full quarter of an hour."""
SLOT = 900
HOUR = 3600.0


class Slot(NamedTuple):
    """One stay within one quarter of an hour, as it is kept."""

    key: SessionKey
    slot: int
    measures: tuple[float, ...]
    command: str | None = None

    def of(self, name: str) -> float:
        return self.measures[USE_MEASURES.index(name)]


class People:
    """Accounts that a test can change."""

    def __init__(self, *accounts: Account) -> None:
        self.generation = 0
        self._accounts = accounts

    def set(self, *accounts: Account) -> None:
        self._accounts = accounts
        self.generation += 1

    def account(self, account_id: str) -> Account | None:
        return next((one for one in self._accounts if one.id == account_id), None)

    def accounts(self) -> tuple[Account, ...]:
        return self._accounts


ADA = person("ada", "member", "vision")
BOB = person("bob", "member", "vision", "speech")
ROOT = person("root", "admin")
VIEWERS = {
    "counts": Viewer(privacy="counts"),
    "public": Viewer(privacy="public"),
    "names": Viewer(privacy="names"),
    "ada": Viewer(privacy="member", account=ADA, scopes=frozenset({"read"}), via="session"),
    "bob": Viewer(privacy="member", account=BOB, scopes=frozenset({"read"}), via="session"),
    "admin": Viewer(privacy="admin", account=ROOT, scopes=frozenset({"read", "admin"}), via="session"),
}


def random_slots(seed: int, *, days: float = 3.0) -> list[Slot]:
    """Make up stays of several users on four GPUs of two types, in every state of knowledge."""
    chance = random.Random(seed)  # noqa: S311 - the same every time
    slots: list[Slot] = []
    users = [
        "ada",
        "ada-laptop",
        "bob",
        "mallory",
        None,
        "=cmd|' /C calc'!A0",
        "<script>alert(1)</script>",
        "~gone-for-good",
    ]
    for number in range(30):
        node, index = chance.choice([("n1", 0), ("n1", 1), ("n2", 0), ("gone", 0)])
        user = users[number % len(users)]
        opened_at = NOW - chance.uniform(0.2, days) * 86_400
        key = SessionKey(
            node,
            f"GPU-{node}-{index}",
            "H100" if node == "n2" else "A100 80GB",
            user,
            chance.choice([None, "box"]),
            chance.choice([None, "nightly", "=job"]),
            opened_at,
        )
        first = int(opened_at // SLOT * SLOT)
        for slot in range(first, min(first + SLOT * chance.randrange(1, 20), int(NOW) - SLOT), SLOT):
            held = chance.uniform(1, SLOT)
            gpu = held * chance.choice([1.0, 0.5, 0.25])
            unknown = gpu * chance.choice([0.0, 0.0, 0.1])
            busy = (gpu - unknown) * chance.random()
            work = (gpu - unknown) * chance.random()
            joules = chance.choice([float("nan"), gpu * 300.0])
            measures = (held, gpu, busy, unknown, work, gpu * 2**30 * chance.random() * 40, joules)
            slots.append(Slot(key, slot, measures, f"python train.py --secret-of {user} {number}"))
    return slots


def uses_of(slots: Sequence[Slot]) -> Uses:
    keys = tuple(dict.fromkeys(slot.key for slot in slots))
    commands = {slot.key: slot.command for slot in slots}
    return Uses(
        keys=keys,
        commands=tuple(commands[key] for key in keys),
        session=np.array([keys.index(slot.key) for slot in slots], np.int32),
        slot=np.array([slot.slot for slot in slots], np.int64),
        first=np.array([max(slot.slot, slot.key.opened_at) for slot in slots], np.float64),
        last=np.array([slot.slot + SLOT for slot in slots], np.float64),
        measures=np.array([slot.measures for slot in slots], np.float64).reshape(-1, len(USE_MEASURES)),
    )


class ReportedPast:
    """What is remembered, and the desks."""

    def __init__(
        self, folder: Path, engine: Engine, *, usage: UsageSettings | None = None, **display: Any
    ) -> None:
        self.clock = ManualClock()
        assert self.clock.wall() == NOW
        settings = HistorySettings(min_free_bytes=0)
        self.tables = Tables(
            folder, [*SAMPLE_SHAPES, *HERD_SHAPES, *USAGE_SHAPES], threads=1, clock=self.clock.wall
        )
        self.samples = EmbeddedStore(self.tables, settings, clock=self.clock.wall)
        self.herd_sink = HerdSink(self.tables, settings)
        self.book = UsageBook(self.tables, settings, pseudonym=lambda user: f"~{user}")
        herd = HerdReader(self.tables, self.herd_sink, clock=self.clock.wall)
        self.memory = Memory(
            samples=self.samples,
            herd=herd,
            usage=UsageReader(self.book, herd=herd, clock=self.clock.wall),
        )
        names = Names(DisplaySettings(users={"ada-laptop": "ada"}, **display))
        self.fleet = Fleet(clock=self.clock, names=names, pseudonyms=Pseudonyms(b"a secret of 16 bytes"))
        self.people = People(ADA, BOB, ROOT)
        self.bookings = BookingRecords(engine)
        self.calls = RecordCalls()
        self.booking_memory = BookingMemory(
            records=self.bookings, calls=self.calls, herd=self.fleet, people=self.people, clock=self.clock
        )
        self.live_herd = Herd([a100("n1", 0), a100("n1", 1), a100("n2", 0, short_name="H100")])
        self.reads = CommandReads(self.clock, is_public=False)
        self.questions = Questions(self.clock, deadline_seconds=PATIENCE_SECONDS)
        faces = Faces(self.fleet, self.people, lambda: self.live_herd)
        self.history = HistoryDesk(
            self.memory, questions=self.questions, faces=faces, clock=self.clock, zone="Europe/Berlin"
        )
        self.usage = UsageDesk(
            self.memory,
            settings=usage or UsageSettings(),
            questions=self.questions,
            faces=faces,
            bookings=PastBookings(
                self.booking_memory,
                records=self.bookings,
                calls=self.calls,
                people=self.people,
                live=self.fleet,
            ),
            reads=self.reads,
            live_free=lambda: LiveFree(free=2.0, all=5.0),
            clock=self.clock,
            zone="Europe/Berlin",
        )

    def keep(self, slots: Sequence[Slot] = (), rows: Sequence[Row] = ()) -> None:
        """Remember use and samples."""
        batch = samples_batch(rows, written_at=NOW)
        batch = Batch(
            written_at=NOW,
            devices=batch.devices,
            hosts=batch.hosts,
            uses=uses_of(slots),
            seen=tuple((node, NOW) for node in ("n1", "n2", "gone")),
        )
        for sink in (self.samples, self.herd_sink, self.book):
            sink.take(batch, 1)

    def close(self) -> None:
        self.questions.close()
        self.calls.close()
        self.tables.close()


@contextmanager
def reported_past(folder: Path, engine: Engine, **options: Any) -> Iterator[ReportedPast]:
    """Give an empty past."""
    past = ReportedPast(folder, engine, **options)
    try:
        yield past
    finally:
        past.close()


def read(answer: Answer, kind: type[Any]) -> Any:
    """Read a JSON answer."""
    return msgspec.json.decode(answer.body, type=kind, strict=False)
