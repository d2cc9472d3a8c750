"""Bookings while the database is away, frozen or locked: a clear answer in time, and the hub heals by itself."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpuherd.api.open_records import OpenRecords, open_hub_records
from gpuherd.client import HubClient
from gpuherd.client.line import HubLine, HubUrl
from gpuherd.history.settings import HistorySettings
from gpuherd.records.database import records_file
from support.booking_hub import Booker, booking_hub
from support.crowd import Crowd, Losses
from support.hub import eventually, impatient
from support.hub_process import HubProcess
from support.lossy_proxy import LossyProxy, lossy_proxy
from support.people import until_known
from support.postgresql import Postgresql
from support.records import postgresql
from support.running import PATIENCE_SECONDS
from support.soak import SOAK
from support.tally import Tally

__all__ = ["postgresql"]

G0, G1 = ("n1", "GPU-0"), ("n1", "GPU-1")


@pytest.fixture
def database(postgresql: Postgresql) -> Iterator[str]:
    with postgresql.database(migrated=True) as url:
        yield url


async def refused(who: Booker) -> None:
    """Try everything that needs the records: 503 each, although the records stay away."""
    for method, path, body in (
        ("POST", "bookings", who.wish(G1)),
        ("GET", "bookings", None),
        ("GET", "bookings/1", None),
        ("POST", "bookings/1/release", None),
        ("GET", "booking-policy", None),
    ):
        status, answer = await who.ask(method, path, body)
        code, message = answer["error"]["code"], answer["error"]["message"]
        assert status == 503, answer
        # Of a change that took too long nobody knows whether it is made; of anything else it is known.
        assert code in (("unavailable",) if method == "GET" else ("unavailable", "outcome_unknown")), answer
        assert ("check before you try again" in message) == (code == "outcome_unknown")
        assert "database" in message
        assert "gpuherd@" not in answer["error"]["message"]


async def shows_what_was_known(who: Booker, booking: dict[str, Any]) -> None:
    """The timeline, free slots and the live state go on from memory."""
    timeline = await who.get("timeline")
    assert [bar["id"] for bar in timeline["bookings"]] == [booking["id"]]
    assert len((await who.get("slots", count=6, hours=1))[0]["devices"]) == 6
    assert (await who.get("gpus", node="n1"))[0]["bookings"][0]["id"] == booking["id"]


async def books_again(who: Booker) -> None:
    """Book as soon as it works. A verb that nobody waited for may have taken effect: never twice, never half of it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (status := (await who.ask("POST", "bookings", who.wish(G1)))[0]) == 503:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert status in (201, 409)
    assert len(await who.get("bookings")) == 2
    await eventually(lambda: len(who.hub.bookings.memory.window) == 2)
    await eventually(lambda: who.hub.bookings.memory.is_current)
    assert len((await who.get("timeline"))["bookings"]) == 2


def test_a_database_that_crashes_is_missed_and_found_again(
    tmp_path: Path, postgresql: Postgresql, database: str
) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path, records_url=database) as lab:
            ada = await lab.person("ada")
            [made] = await ada.book(G0, end="4h")
            await eventually(lab.hub.fleet.booking_uses)
            await until_known(lab.hub, lab.session, ada.headers, str(ada.token))
            await asyncio.to_thread(postgresql.stop)
            try:
                with impatient(lab.hub):
                    await refused(ada)
                    await shows_what_was_known(ada, made)
                    await eventually(lambda: any("bookings" in told for told in lab.hub.health().reasons))
            finally:
                await asyncio.to_thread(postgresql.start)
            await books_again(ada)

    asyncio.run(story())


KILLS = 2 if SOAK == 1 else 25
HOUR = 3600.0


@pytest.mark.chaos
@pytest.mark.promise("killed-database-loses-nothing")
def test_a_database_killed_again_and_again_loses_and_doubles_no_booking(
    tmp_path: Path, postgresql: Postgresql, database: str, tally: Tally
) -> None:
    # By the hub's clock an hour has just begun: the journal is whole until the end of the test.
    shift_seconds = -(time.time() % HOUR)
    history = HistorySettings(min_free_bytes=0)
    hub = HubProcess(tmp_path, history=history, shift_seconds=shift_seconds, records_url=database)
    crowd = Crowd(hub.url, hub.settings, now=time.time() + shift_seconds, shift_seconds=shift_seconds)
    losses = Losses()

    def count(records: OpenRecords) -> None:
        acked, wished = crowd.acked(), crowd.wished()
        crowd.count_samples(tmp_path, acked, losses)
        crowd.count_bookings(records.bookings.changed_after(0), wished, losses)

    async def story(records: OpenRecords) -> None:
        await hub.start()
        await crowd.start()
        for kill in range(KILLS):
            with losses.a_try():
                await crowd.progress(5)
                await asyncio.to_thread(postgresql.kill)
                # Bookers are refused and go on asking; nodes do not notice.
                refused = {booker: booker.unanswered for booker in crowd.bookers}
                await eventually(lambda: all(who.unanswered > 2 + then for who, then in refused.items()))  # noqa: B023
                await crowd.progress_of_nodes(5)
                await asyncio.to_thread(postgresql.start)
                await crowd.progress(5)
                if kill == KILLS - 1:
                    await crowd.finish()
                await asyncio.to_thread(count, records)
        assert await hub.stop() == 0
        losses.add_to(tally, "PostgreSQL killed -9", crowd.figure)
        assert losses.all == (set(), set(), set())
        assert losses.held == losses.tries == KILLS

    with closing(hub), closing(open_hub_records(hub.settings)) as records:
        asyncio.run(story(records))


def test_a_database_that_is_frozen_holds_nobody_up(
    tmp_path: Path, postgresql: Postgresql, database: str
) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path, records_url=database) as lab:
            ada = await lab.person("ada")
            [made] = await ada.book(G0, end="4h")
            await eventually(lab.hub.fleet.booking_uses)
            await until_known(lab.hub, lab.session, ada.headers, str(ada.token))
            with postgresql.frozen(), impatient(lab.hub):
                await refused(ada)
                await shows_what_was_known(ada, made)
            await books_again(ada)

    asyncio.run(story())


def test_records_that_another_program_locks(tmp_path: Path) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path) as lab:
            ada = await lab.person("ada")
            [made] = await ada.book(G0, end="4h")
            await eventually(lab.hub.fleet.booking_uses)
            await until_known(lab.hub, lab.session, ada.headers, str(ada.token))
            other = sqlite3.connect(records_file(tmp_path), isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            with impatient(lab.hub):
                status, answer = await ada.ask("POST", "bookings", ada.wish(G1))
            assert (status, answer["error"]["code"]) == (503, "outcome_unknown")
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


ANY = {"any": {"count": 1}, "end": "2h"}


async def with_key(who: Booker, key: str, body: dict[str, Any]) -> tuple[int, Any]:
    who.headers["Idempotency-Key"] = key
    try:
        return await who.ask("POST", "bookings", body)
    finally:
        del who.headers["Idempotency-Key"]


@pytest.mark.chaos
@pytest.mark.promise("repeated-booking-books-once")
def test_a_booking_whose_commit_was_not_answered_is_made_once_if_it_is_repeated(
    tmp_path: Path, postgresql: Postgresql, database: str, tally: Tally
) -> None:
    rounds = 3 if SOAK == 1 else 25

    async def story(proxy: LossyProxy, url: str) -> None:
        async with booking_hub(tmp_path, records_url=url) as lab:
            ada = await lab.person("ada", "admin")
            once = lost = doubled = 0
            for number in range(rounds):
                key, body = f"key-{number}", {**ANY, "title": str(number)}
                proxy.lose_answer(b"COMMIT", after=b"INSERT INTO bookings")
                status, answer = await with_key(ada, key, body)
                assert proxy.lost == number + 1, answer
                assert (status, answer["error"]["code"]) == (503, "outcome_unknown")
                assert "check before you try again" in answer["error"]["message"]
                status, again = await with_key(ada, key, body)
                there = [one for one in await ada.get("bookings") if one["title"] == str(number)]
                once += (status, [one["id"] for one in again]) == (201, [one["id"] for one in there])
                lost, doubled = lost + (not there), doubled + (len(there) > 1)
                assert (await ada.ask("POST", f"bookings/{there[0]['id']}/release"))[0] == 200
            tally.add(
                "PostgreSQL: answer to COMMIT lost, booking repeated",
                tries=rounds,
                held=once,
                lost=lost,
                doubled=doubled,
            )
            assert once == rounds

    with tempfile.TemporaryDirectory() as folder:
        place = ".s.PGSQL.5432"
        behind = parse_qs(urlsplit(database).query)["host"][0]
        with lossy_proxy(f"{behind}/{place}", f"{folder}/{place}") as proxy:
            asyncio.run(story(proxy, database.replace(behind, folder)))


@pytest.mark.chaos
@pytest.mark.promise("repeated-booking-books-once")
def test_a_booking_whose_answer_was_lost_on_the_way_is_repeated_by_the_client_and_made_once(
    tmp_path: Path, tally: Tally
) -> None:
    rounds = 3 if SOAK == 1 else 25

    async def story() -> None:
        async with booking_hub(tmp_path) as lab:
            ada = await lab.person("ada", "admin")
            server = urlsplit(lab.hub.url)
            with lossy_proxy((str(server.hostname), int(server.port or 0))) as proxy:
                line = HubLine(HubUrl.parse("http://{}:{}/".format(*proxy.address)), token=ada.token)
                client = HubClient(line, sleep=lambda _: None)
                once = lost = doubled = 0
                for number in range(rounds):
                    proxy.lose_answer(b"POST /api/v1/bookings ")
                    made = await asyncio.to_thread(client.book, {**ANY, "title": str(number)})
                    assert proxy.lost == number + 1
                    there = [one for one in await ada.get("bookings") if one["title"] == str(number)]
                    once += [one["id"] for one in there] == [made[0].id]
                    lost, doubled = lost + (not there), doubled + (len(there) > 1)
                    assert (await ada.ask("POST", f"bookings/{made[0].id}/release"))[0] == 200
            tally.add(
                "SQLite: HTTP answer lost, booking repeated",
                tries=rounds,
                held=once,
                lost=lost,
                doubled=doubled,
            )
            assert once == rounds

    asyncio.run(story())


def test_a_key_books_once_and_only_what_it_came_with(tmp_path: Path) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path) as lab:
            ada, bob = await lab.person("ada"), await lab.person("bob")
            answers = await asyncio.gather(*(with_key_of(ada, "one", ANY) for _ in range(6)))
            assert {status for status, _ in answers} == {201}
            assert len({answer[0]["id"] for _, answer in answers}) == 1
            status, answer = await with_key(ada, "one", {**ANY, "end": "3h"})
            assert (status, answer["error"]["code"]) == (422, "idempotency_key_reused")
            assert (await with_key(bob, "one", ANY))[0] == 201
            assert (await with_key(ada, "one", {**ANY, "dry_run": True}))[0] == 200
            assert len(await ada.get("bookings")) == 2
            for wrong in ("", "x" * 129, "a b"):
                status, answer = await with_key(ada, wrong, ANY)
                assert (status, answer["error"]["code"]) == (400, "invalid_request"), wrong
                assert answer["error"]["path"] == "idempotency_key"

    async def with_key_of(who: Booker, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        return await with_key(Booker(who.hub, who._session, who.token, who.account_id), key, body)

    asyncio.run(story())


def test_copies_take_keys_too(tmp_path: Path) -> None:
    async def story() -> None:
        async with booking_hub(tmp_path) as lab:
            ada = await lab.person("ada")
            [made] = await ada.book(G0)
            ada.headers["Idempotency-Key"] = "copy"
            path, body = f"bookings/{made['id']}/copy", {"start": "tomorrow 9:00"}
            first, second = await ada.ask("POST", path, body), await ada.ask("POST", path, body)
            assert first[0] == second[0] == 201
            assert first[1]["id"] == second[1]["id"] != made["id"]

    asyncio.run(story())
