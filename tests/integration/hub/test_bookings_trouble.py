"""Bookings while the database is away, frozen or locked: a clear answer in time, and the hub heals by itself."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuherd.records.database import records_file
from support.booking_hub import Booker, BookingHub, booking_hub
from support.hub import eventually
from support.postgresql import Postgresql
from support.records import postgresql

__all__ = ["postgresql"]

G0, G1 = ("n1", "GPU-0"), ("n1", "GPU-1")
PATIENCE_SECONDS = 1.0
"""How long the hub waits for the records here; usually ten seconds."""


@pytest.fixture
def database(postgresql: Postgresql) -> Iterator[str]:
    with postgresql.database(migrated=True) as url:
        yield url


def be_impatient(lab: BookingHub) -> None:
    lab.hub.record_calls._threads._deadline_seconds = PATIENCE_SECONDS


async def refused_in_time(who: Booker) -> None:
    """Try everything that needs the records: 503 each, within the hub's patience."""
    for method, path, body in (
        ("POST", "bookings", who.wish(G1)),
        ("GET", "bookings", None),
        ("GET", "bookings/1", None),
        ("POST", "bookings/1/release", None),
        ("GET", "booking-policy", None),
    ):
        began = time.monotonic()
        status, answer = await who.ask(method, path, body)
        assert (status, answer["error"]["code"]) == (503, "unavailable"), answer
        assert "records" in answer["error"]["message"]
        assert "gpuherd@" not in answer["error"]["message"]
        assert time.monotonic() - began < PATIENCE_SECONDS + 2


async def shows_what_was_known(who: Booker, booking: dict[str, Any]) -> None:
    """The timeline, free slots and the live state go on from memory."""
    timeline = await who.get("timeline")
    assert [bar["id"] for bar in timeline["bookings"]] == [booking["id"]]
    assert len((await who.get("slots", count=6, hours=1))[0]["devices"]) == 6
    assert (await who.get("gpus", node="n1"))[0]["bookings"][0]["id"] == booking["id"]


async def books_again(who: Booker) -> None:
    """Book as soon as it works. A verb that nobody waited for may have taken effect: never twice, never half of it."""
    async with asyncio.timeout(30):
        while (status := (await who.ask("POST", "bookings", who.wish(G1)))[0]) == 503:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert status in (201, 409)
    assert len(await who.get("bookings")) == 2
    await eventually(lambda: len(who.hub.bookings.memory.window) == 2, within=30)
    await eventually(lambda: who.hub.bookings.memory.is_current, within=30)
    assert len((await who.get("timeline"))["bookings"]) == 2


def test_a_database_that_crashes_is_missed_and_found_again(
    tmp_path: Path, postgresql: Postgresql, database: str
) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path, records_url=database) as lab:
            be_impatient(lab)
            ada = await lab.person("ada")
            [made] = await ada.book(G0, end="4h")
            await eventually(lab.hub.fleet.booking_uses)
            await asyncio.to_thread(postgresql.stop)
            try:
                await refused_in_time(ada)
                await shows_what_was_known(ada, made)
                await eventually(lambda: any("bookings" in told for told in lab.hub.health().reasons))
            finally:
                await asyncio.to_thread(postgresql.start)
            await books_again(ada)

    asyncio.run(story())


def test_a_database_that_is_frozen_holds_nobody_up(
    tmp_path: Path, postgresql: Postgresql, database: str
) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path, records_url=database) as lab:
            be_impatient(lab)
            ada = await lab.person("ada")
            [made] = await ada.book(G0, end="4h")
            await eventually(lab.hub.fleet.booking_uses)
            with postgresql.frozen():
                await refused_in_time(ada)
                began = time.monotonic()
                await shows_what_was_known(ada, made)
                assert time.monotonic() - began < 2.0
            await books_again(ada)

    asyncio.run(story())


def test_records_that_another_program_locks(tmp_path: Path) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path) as lab:
            be_impatient(lab)
            ada = await lab.person("ada")
            [made] = await ada.book(G0, end="4h")
            await eventually(lab.hub.fleet.booking_uses)
            other = sqlite3.connect(records_file(tmp_path), isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            status, answer = await ada.ask("POST", "bookings", ada.wish(G1))
            assert (status, answer["error"]["code"]) == (503, "unavailable")
            await shows_what_was_known(ada, made)
            assert len(await ada.get("bookings")) == 1  # readers wait for nobody
            other.execute("ROLLBACK")
            other.close()
            await books_again(ada)

    asyncio.run(story())


def test_another_hub_on_the_same_database_is_followed(tmp_path: Path, database: str) -> None:
    async def story() -> None:
        async with (
            booking_hub(tmp_path / "one", records_url=database) as one,
            booking_hub(tmp_path / "two", records_url=database) as two,
        ):
            ada = await one.person("ada")
            here = Booker(two.hub, two.session, ada.token, ada.account_id)
            await two.hub._entered.identity.refresh()
            [made] = await ada.book(G0, end="4h", title="from one")
            await eventually(lambda: two.hub.bookings.memory.window.get(made["id"]))
            assert (await here.get("timeline"))["bookings"][0]["title"] == "from one"
            await here.refused("POST", "bookings", here.wish(G0), status=409, code="conflict", at="devices")
            assert (await here.ask("PATCH", f"bookings/{made['id']}", {"title": "by two"}))[0] == 200
            await eventually(lambda: one.hub.bookings.memory.window.get(made["id"]).title == "by two")  # type: ignore[union-attr]
            wish = ada.wish(G1, end="1h")
            answers = await asyncio.gather(
                *(who.ask("POST", "bookings", wish) for who in (ada, here) for _ in range(10))
            )
            assert sorted(status for status, _ in answers) == [201] + [409] * 19

    asyncio.run(story())
