"""Bookings in any order, by a writer that is killed between and during its work: none is lost, double or torn.

What the writer acknowledged must be there; what it was doing when it died is there whole or not at all. The truth is a
simple one kept in memory.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec import structs
from sqlalchemy import Engine, text

from gpuherd.model.bookings import Booking, BookingState, DeviceRef
from gpuherd.records.bookings import BookingDraft, BookingRecords
from gpuherd.records.database import open_records
from support.booking_drafts import BY, HOUR, NOW, START, draft
from support.booking_writer import BookingWriter, Outcome
from support.postgresql import Postgresql
from support.soak import SOAK

HOLDING = ("active", "pending")
DEVICES = [DeviceRef(f"n{number // 2}", f"GPU-{number}") for number in range(4)]

devices = st.lists(st.sampled_from(DEVICES), min_size=1, max_size=3, unique=True).map(tuple)
slots = st.integers(0, 11)
lengths = st.integers(1, 4)
states = st.sampled_from(["active", "pending", "cancelled", "refused"])
choices = st.integers(0, 99)
moments = st.floats(0, 1.3)
"""When a verb is interrupted, in the time that the one before it took: from its beginning until after its end."""


def content(booking: Booking) -> Booking:
    """Give what a booking says, without what the database gives it."""
    return structs.replace(booking, id=0, revision=0, series_id=None)


def clash(one: Booking, other: Booking) -> bool:
    return bool(
        one.state in HOLDING
        and other.state in HOLDING
        and set(one.devices) & set(other.devices)
        and one.starts_at < other.ends_at
        and other.starts_at < one.ends_at
    )


class Truth:
    """Bookings as they should be: lists and comparisons, nothing clever."""

    def __init__(self) -> None:
        self.bookings: dict[int, Booking] = {}

    def clashes(self, wanted: Booking, but: int = 0) -> bool:
        return any(clash(wanted, other) for other in self.bookings.values() if other.id != but)

    def after_create(self, drafts: list[BookingDraft]) -> list[Booking] | None:
        """Give the bookings that these would become, or none if they are refused."""
        made = [
            Booking(
                id=0,
                series_id=None,
                revision=0,
                created_at=NOW,
                changed_at=NOW,
                **{**structs.asdict(wanted), "devices": tuple(sorted(wanted.devices))},
            )
            for wanted in drafts
        ]
        if any(self.clashes(one) for one in made):
            return None
        if any(clash(one, other) for one in made for other in made if one is not other):
            return None
        return made

    def after_change(self, number: int, **changes: Any) -> Booking | None:
        changed = structs.replace(self.bookings[number], **changes)
        if changed.ends_at <= changed.starts_at or self.clashes(changed, but=number):
            return None
        return changed


class BookingMachine(RuleBasedStateMachine):
    """Verbs on the real thing and on the truth."""

    place: Callable[[], Any]
    """Gives a context manager with an empty database."""
    interrupt: Callable[[BookingWriter, int], None]
    """Kills the writer, or what it needs."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.location: Path | str = self.stack.enter_context(type(self).place())
        self.engine: Engine = open_records(self.location)
        self.stack.callback(self.engine.dispose)
        self.records = BookingRecords(self.engine)
        self.writer: BookingWriter | None = None
        self.truth = Truth()
        self.verbs = 0
        self.verb_seconds = 0.01

    def teardown(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.stack.close()

    def tell(self, verb: str, *arguments: Any, **named: Any) -> None:
        if self.writer is None:
            self.writer = BookingWriter(self.location)
        self.writer.tell(verb, *arguments, **named)

    def do(self, verb: str, *arguments: Any, **named: Any) -> Outcome:
        self.tell(verb, *arguments, **named)
        assert self.writer is not None
        began = time.monotonic()
        outcome: Outcome = self.writer.answer()
        if verb != "revision" and outcome.kind == "done":
            self.verb_seconds = time.monotonic() - began
        return outcome

    def chosen(self, choice: int) -> Booking | None:
        known = sorted(self.truth.bookings)
        return self.truth.bookings[known[choice % len(known)]] if known else None

    def adopt(self, *made: Booking) -> None:
        self.truth.bookings.update({one.id: one for one in made})
        self.verbs += len(made)

    @rule(wanted=st.lists(st.tuples(devices, slots, lengths, states), min_size=1, max_size=2))
    def create(self, wanted: list[tuple[tuple[DeviceRef, ...], int, int, BookingState]]) -> None:
        drafts = self.drafts(wanted)
        expected = self.truth.after_create(drafts)
        outcome = self.do("create", drafts, now=NOW, by=BY)
        if expected is None:
            assert outcome == Outcome("refused", "conflict")
            return
        assert outcome.kind == "done", outcome
        assert [content(one) for one in outcome.value] == expected
        self.adopt(*outcome.value)

    def drafts(
        self, wanted: list[tuple[tuple[DeviceRef, ...], int, int, BookingState]]
    ) -> list[BookingDraft]:
        return [
            draft(*some, at=START + slot * HOUR, hours=length, state=state, title=f"{slot}")
            for some, slot, length, state in wanted
        ]

    @rule(choice=choices, some=devices, slot=slots, length=lengths, state=states)
    def change(
        self, choice: int, some: tuple[DeviceRef, ...], slot: int, length: int, state: BookingState
    ) -> None:
        if (before := self.chosen(choice)) is None:
            return
        changes = self.changes(choice, some, slot, length, state)
        expected = self.truth.after_change(before.id, **changes)
        outcome = self.do("change", before.id, revision=before.revision, now=NOW, by=BY, **changes)
        if expected is None:
            assert outcome.kind == "refused", outcome
            assert outcome.value in {"conflict", "reversed"}
            return
        assert outcome.kind == "done", outcome
        assert content(outcome.value) == content(expected)
        if expected != before:
            assert outcome.value.revision > before.revision
            self.adopt(outcome.value)

    def changes(
        self, choice: int, some: tuple[DeviceRef, ...], slot: int, length: int, state: BookingState
    ) -> dict[str, Any]:
        every: dict[str, Any] = {
            "devices": tuple(sorted(some)),
            "starts_at": START + slot * HOUR,
            "ends_at": START + (slot + length) * HOUR,
            "state": state,
            "title": f"{slot} {length}",
        }
        # Any part of them, told by the bits of the choice.
        return {name: value for bit, (name, value) in enumerate(every.items()) if choice >> bit & 1}

    @rule(choice=choices)
    def change_what_was_changed_meanwhile(self, choice: int) -> None:
        if (before := self.chosen(choice)) is not None:
            outcome = self.do("change", before.id, revision=before.revision - 1, now=NOW, by=BY, title="x")
            assert outcome == Outcome("refused", "changed_meanwhile")

    @rule(choice=choices)
    def kill_between_verbs(self, choice: int) -> None:
        if self.writer is not None:
            type(self).interrupt(self.writer, choice)
            self.after_the_kill()

    @rule(
        wanted=st.lists(st.tuples(devices, slots, lengths, states), min_size=1, max_size=2),
        moment=moments,
        choice=choices,
    )
    def kill_during_create(
        self,
        wanted: list[tuple[tuple[DeviceRef, ...], int, int, BookingState]],
        moment: float,
        choice: int,
    ) -> None:
        drafts = self.drafts(wanted)
        expected = self.truth.after_create(drafts)
        outcome = self.interrupted(moment, choice, "create", drafts, now=NOW, by=BY)
        come = [one for one in self.records.changed_after(0) if one.id not in self.truth.bookings]
        if come or outcome.kind == "done":
            assert expected is not None
            assert [content(one) for one in come] == expected, "torn or double"
            self.adopt(*come)

    @rule(choice=choices, some=devices, slot=slots, length=lengths, state=states, moment=moments, how=choices)
    def kill_during_change(
        self,
        choice: int,
        some: tuple[DeviceRef, ...],
        slot: int,
        length: int,
        state: BookingState,
        moment: float,
        how: int,
    ) -> None:
        if (before := self.chosen(choice)) is None:
            return
        changes = self.changes(choice, some, slot, length, state)
        expected = self.truth.after_change(before.id, **changes)
        outcome = self.interrupted(moment, how, "change", before.id, revision=None, now=NOW, by=BY, **changes)
        after = self.records.get(before.id)
        assert after is not None
        if after != before or (outcome.kind == "done" and expected != before):
            assert expected is not None
            assert content(after) == content(expected), "torn"
            self.adopt(after)

    def interrupted(self, moment: float, how: int, verb: str, *arguments: Any, **named: Any) -> Outcome:
        """Let the writer begin, and kill it after a moment. Gives what it acknowledged."""
        assert self.do("revision").kind == "done"  # awake, so that the moment is one of the verb's own
        assert self.writer is not None
        self.writer.tell(verb, *arguments, **named)
        time.sleep(moment * self.verb_seconds)
        type(self).interrupt(self.writer, how)
        outcome: Outcome = self.writer.answer()
        self.after_the_kill()
        return outcome

    def after_the_kill(self) -> None:
        assert self.writer is not None
        self.writer.kill()
        self.writer.close()
        self.writer = None

    @invariant()
    def everything_is_as_it_should_be(self) -> None:
        found = self.records.changed_after(0)
        assert found == tuple(self.truth.bookings[number] for number in sorted(self.truth.bookings))
        assert not [
            (one, other) for one in found for other in found if one.id < other.id and clash(one, other)
        ]
        assert all(one.devices for one in found)
        with self.engine.connect() as connection:
            torn = connection.execute(
                text(
                    "SELECT count(*) FROM booking_devices d LEFT JOIN bookings b ON b.id = d.booking_id "
                    "AND b.starts_at = d.starts_at AND b.ends_at = d.ends_at AND b.holds = d.holds "
                    "WHERE b.id IS NULL"
                )
            ).scalar_one()
            logged = connection.execute(text("SELECT count(*) FROM audit")).scalar_one()
        assert (torn, logged) == (0, self.verbs)


def run(place: Callable[[], Any], interrupt: Callable[[BookingWriter, int], None], examples: int) -> None:
    class Machine(BookingMachine):
        pass

    Machine.place = staticmethod(place)
    Machine.interrupt = staticmethod(interrupt)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples * SOAK,
            stateful_step_count=15,
            deadline=None,
            phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


@pytest.mark.soak
def test_on_sqlite(migrated_sqlite: Path) -> None:
    @contextmanager
    def place() -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(shutil.copy(migrated_sqlite, Path(folder) / "records.sqlite"))

    def interrupt(writer: BookingWriter, choice: int) -> None:
        writer.kill()

    run(place, interrupt, examples=12)


@pytest.mark.soak
def test_on_postgresql(postgresql: Postgresql) -> None:
    def interrupt(writer: BookingWriter, choice: int) -> None:
        if choice % 3 == 0:
            writer.kill()
        elif choice % 3 == 1 or choice > 20:
            # The server's side of the connection dies, not the writer; waited for, so that it does not die later.
            postgresql.execute(
                "SELECT pg_terminate_backend(pid, 120000) FROM pg_stat_activity "
                "WHERE application_name = 'gpuherd' AND datname LIKE 'records%'"
            )
        else:
            postgresql.kill()
            postgresql.start()

    run(lambda: postgresql.database(migrated=True), interrupt, examples=8)
