"""A process of its own that writes bookings when told to, so that it can be killed while it does.

Forked from a server that has loaded everything already: a fresh one is there within milliseconds.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier
from typing import Any, Literal, NamedTuple

from gpuherd.model.errors import Failed, Refused
from gpuherd.model.people import Actor
from gpuherd.records.bookings import BookingDraft, BookingRecords, Limits
from gpuherd.records.database import open_records
from support.running import PATIENCE_SECONDS

__all__ = ["BookingWriter", "Outcome"]

# What is found without the tests' own path, which the server does not know; pytest, since every process loads the
# program that the tests were started with.
_LOADED = [
    "pytest",
    "gpuherd.records.bookings",
    "gpuherd.records.database",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "psycopg",
]


class Outcome(NamedTuple):
    """What became of a verb: its value, the code of its refusal, or the words of its failure."""

    kind: Literal["done", "refused", "failed", "unknown"]
    value: Any = None


def outcome_of(records: BookingRecords, verb: str, *arguments: Any, **named: Any) -> Outcome:
    """Do something and tell how it went."""
    try:
        return Outcome("done", getattr(records, verb)(*arguments, **named))
    except Refused as error:
        return Outcome("refused", error.code)
    except Failed as error:
        return Outcome("failed", str(error))


def race(
    records: BookingRecords,
    drafts: list[BookingDraft],
    *,
    now: float,
    by: Actor,
    limits: Limits | None = None,
) -> list[Outcome]:
    """Let each draft be booked by a thread of its own, all at the same time."""
    start = Barrier(len(drafts))

    def book(draft: BookingDraft) -> Outcome:
        start.wait()
        return outcome_of(records, "create", [draft], now=now, by=by, limits=limits)

    with ThreadPoolExecutor(len(drafts)) as pool:
        return list(pool.map(book, drafts))


def _serve(location: Path | str, line: Connection) -> None:
    engine = open_records(location)
    records = BookingRecords(engine)
    try:
        while True:
            verb, arguments, named = line.recv()
            if verb == "race":
                line.send(race(records, *arguments, **named))
            else:
                line.send(outcome_of(records, verb, *arguments, **named))
    except EOFError:
        engine.dispose()


class BookingWriter:
    """The process, seen from the test."""

    def __init__(self, location: Path | str) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_LOADED)
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(location, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, verb: str, *arguments: Any, **named: Any) -> None:
        """Say what to do, without waiting for it."""
        self._line.send((verb, arguments, named))

    def answer(self) -> Any:
        """Wait for the answer; an ``Outcome`` ``unknown`` if the process died first."""
        try:
            if not self._line.poll(PATIENCE_SECONDS):
                raise TimeoutError("the writer does not answer")
            return self._line.recv()
        except (EOFError, ConnectionResetError):
            return Outcome("unknown")

    def do(self, verb: str, *arguments: Any, **named: Any) -> Any:
        """Say what to do and wait for the answer."""
        self.tell(verb, *arguments, **named)
        return self.answer()

    def kill(self) -> None:
        """Kill it; what it answered before can still be read."""
        self._process.kill()
        self._process.join(PATIENCE_SECONDS)

    def close(self) -> None:
        """Let it go."""
        self._line.close()
        self._process.join(PATIENCE_SECONDS)
        self._process.close()
