"""Calendars over HTTP: whoever has the address reads it, nobody else, and no longer than its owner wants."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from icalendar import Calendar

from gpuherd.model.people import Actor
from support.booking_hub import Booker, BookingHub, booking_hub

BY = Actor(account_id=None, label="test")


async def session_of(lab: BookingHub, booker: Booker) -> Booker:
    """Give the same person with a login instead of a token."""
    from gpuherd.auth.secrets import SESSION_PREFIX, digest, new_id, new_secret

    secret, now = new_secret(SESSION_PREFIX), lab.hub.clock.wall()
    await asyncio.to_thread(
        lab.hub.records.people.add_session,
        id=new_id(),
        digest=digest(secret),
        account_id=str(booker.account_id),
        created_at=now,
        expires_at=now + 3600,
        peer="127.0.0.1",
        agent="test",
    )
    logged_in = Booker(lab.hub, lab.session, None, booker.account_id)
    logged_in.headers = {"Cookie": f"gpuherd={secret}"}
    return logged_in


async def read(lab: BookingHub, path: str, **headers: str) -> tuple[int, bytes, Any]:
    async with lab.session.get(path, headers=headers) as response:
        return response.status, await response.read(), response.headers


def summaries(content: bytes) -> list[str]:
    return sorted(str(event["summary"]) for event in Calendar.from_ical(content).walk("VEVENT"))


async def make(who: Booker, body: dict[str, Any]) -> dict[str, Any]:
    status, made = await who.ask("POST", "account/feeds", body)
    assert status == 201, made
    return dict(made)


def test_calendars_of_people_and_devices(tmp_path: Path) -> None:
    async def go() -> None:
        async with booking_hub(tmp_path) as lab:
            ann, bob = (
                await lab.person("ann", "member", "vision"),
                await lab.person("bob", "member", "vision"),
            )
            browser = await session_of(lab, ann)
            await ann.book(("n1", "GPU-0"), title="mine, \r\nBEGIN:VEVENT")
            await bob.book(("n1", "GPU-1"), title="of the group", group="vision")
            await bob.book(("n1", "GPU-2"), title="not hers")
            own = await make(browser, {"kind": "account"})
            device = await make(browser, {"kind": "device", "device": {"node_id": "n1", "uuid": "GPU-2"}})

            status, content, headers = await read(lab, own["path"])
            assert (status, headers["Content-Type"]) == (200, "text/calendar; charset=utf-8")
            assert summaries(content) == ["mine, BEGIN:VEVENT", "vision: of the group"]
            assert summaries((await read(lab, device["path"]))[1]) == ["Bob: not hers"]
            assert (await read(lab, own["path"], **{"If-None-Match": headers["ETag"]}))[:2] == (304, b"")

            listed = await browser.get("account/feeds")
            assert [feed["kind"] for feed in listed] == ["device", "account"]
            assert own["path"].rpartition("/")[2] not in str(listed)

            status, _ = await ann.ask("GET", "account/feeds")
            assert status == 403  # a token must not buy more keys
            other = await session_of(lab, bob)
            status, _ = await other.ask("DELETE", f"account/feeds/{own['id']}")
            assert status == 404
            async with lab.session.delete(
                f"api/v1/account/feeds/{own['id']}", headers=browser.headers
            ) as ended:
                assert ended.status == 204
            assert (await read(lab, own["path"]))[0] == 404

            people = lab.hub.records.people
            await asyncio.to_thread(
                people.change_account, str(ann.account_id), is_disabled=True, now=lab.hub.clock.wall(), by=BY
            )
            assert (await read(lab, device["path"]))[0] == 404

    asyncio.run(go())


def test_addresses_that_nobody_has(tmp_path: Path) -> None:
    async def go() -> None:
        async with booking_hub(tmp_path) as lab:
            guess = "ghf_" + "A" * 43
            for name in (
                guess + ".ics",
                guess,
                "x.ics",
                ".ics",
                "ghf_.ics",
                "%00.ics",
                "ghf_" + "A" * 4000 + ".ics",
            ):
                status, content, _ = await read(lab, f"api/v1/calendar/{name}")
                assert (status, b"VCALENDAR" in content) == (404, False)

    asyncio.run(go())


def test_wishes_that_cannot_be_had(tmp_path: Path) -> None:
    async def go() -> None:
        async with booking_hub(tmp_path) as lab:
            browser = await session_of(lab, await lab.person("ann", "viewer"))
            gone = {"node_id": "n1", "uuid": "GPU-9"}
            for body, code in (
                ({"kind": "device"}, "device_needed"),
                ({"kind": "account", "device": gone}, "device_needed"),
                ({"kind": "device", "device": gone}, "unknown_device"),
            ):
                await browser.refused("POST", "account/feeds", body, status=422, code=code, at="device")
            for _ in range(50):
                await make(browser, {})
            await browser.refused("POST", "account/feeds", {}, status=409, code="too_many_feeds")

    asyncio.run(go())
