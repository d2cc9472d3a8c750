"""Bookings over HTTP on a real hub: every verb, every refusal, and who sees what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gpuherd.bookings.settings import BookingSettings
from support.booking_hub import Booker, BookingHub, booking_hub, report_of
from support.herd import gpu
from support.hub import eventually
from support.running import PATIENCE_SECONDS

Story = Callable[[BookingHub], Awaitable[None]]
G0, G1, G2, G3 = (("n1", f"GPU-{index}") for index in range(4))
OTHER = ("n2", "GPU-0")


def play(state_dir: Path, story: Story, bookings: BookingSettings | None = None, **options: Any) -> None:
    async def run() -> None:
        async with booking_hub(state_dir, hub_options={"bookings": bookings}, **options) as lab:
            await story(lab)

    asyncio.run(run())


def devices_of(booking: dict[str, Any]) -> list[tuple[str, str]]:
    return [(device["node_id"], device["uuid"]) for device in booking["devices"]]


def test_the_life_of_a_booking(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada, bob, root = await lab.person("ada"), await lab.person("bob"), await lab.person("root", "admin")
        [made] = await ada.book(G0, OTHER, end="4h", title="run", comment="a\nb", zone="Europe/Berlin")
        assert (made["holder"], made["phase"], made["is_own"], made["may_edit"]) == (
            "Ada",
            "current",
            True,
            True,
        )
        path = f"bookings/{made['id']}"
        told = await bob.refused(
            "POST", "bookings", bob.wish(G1, G0), status=409, code="conflict", at="devices"
        )
        assert told["next_free"] == made["ends_at"]
        [conflict] = told["conflicts"]
        assert (conflict["holder"], conflict["device"]["index"], conflict["booking_id"]) == (
            "Ada",
            0,
            made["id"],
        )

        for device in ("GPU-0", "n1/0", "N1/0"):
            assert [one["id"] for one in await bob.get(f"bookings?device={device}")] == [made["id"]]
        assert await bob.get("bookings?device=n1/1") == []
        seen = await bob.get(path)
        assert (seen["title"], seen["is_own"], seen["may_edit"]) == ("run", False, False)
        assert (await root.get(path))["may_edit"]
        for verb, body in (("release", None), ("cancel", {}), ("extend", {"end": "1h"})):
            await bob.refused("POST", f"{path}/{verb}", body, status=403, code="not_yours")
        await bob.refused("PATCH", path, {"title": "mine"}, status=403, code="not_yours")

        status, changed = await ada.ask("PATCH", path, {"revision": made["revision"], "title": "longer"})
        assert (status, changed["title"]) == (200, "longer")
        await ada.refused(
            "PATCH", path, {"revision": made["revision"], "title": "x"}, status=409, code="changed_meanwhile"
        )
        status, changed = await ada.ask("POST", f"{path}/extend", {"end": "1h"})
        assert (status, changed["ends_at"]) == (200, made["ends_at"] + 3600)
        await ada.refused("POST", f"{path}/cancel", {}, status=409, code="begun")
        status, copied = await bob.ask("POST", f"{path}/copy", {"start": changed["ends_at"]})
        assert (status, copied["holder"], devices_of(copied)) == (201, "Bob", [G0, OTHER])

        status, released = await ada.ask("POST", f"{path}/release")
        assert (status, released["phase"], released["released_from"]) == (200, "past", changed["ends_at"])
        assert not released["may_edit"]
        await ada.refused("POST", f"{path}/release", status=409, code="past")
        await root.refused("PATCH", path, {"title": "x"}, status=409, code="past")
        assert (await bob.book(G0, end="1h"))[0]["holder"] == "Bob"
        status, [gone] = await bob.ask("POST", f"bookings/{copied['id']}/cancel", {})
        assert (status, gone["state"]) == (200, "cancelled")

        assert [one["id"] for one in await ada.get("bookings", mine="true")] == [made["id"]]
        assert {one["holder"] for one in await ada.get("bookings", node="n1")} == {"Ada", "Bob"}
        assert await ada.get("bookings", state="cancelled") == [await ada.get(f"bookings/{copied['id']}")]

    play(tmp_path, story)


def test_the_live_state_knows_bookings_and_forgets_them(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada = await lab.person("ada")
        [made] = await ada.book(G0, end="4h", title="run")

        async def shown() -> tuple[str, list[Any]]:
            device = next(one for one in await ada.get("gpus", node="n1") if one["facts"]["uuid"] == "GPU-0")
            return device["availability"]["state"], [
                (one["id"], one["phase"], one["use"]) for one in device["bookings"]
            ]

        async def until(expected: tuple[str, list[Any]]) -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await shown() != expected:  # noqa: ASYNC110 - it is asked over HTTP
                    await asyncio.sleep(0.05)

        await until(("booked", [(made["id"], "current", "unused")]))
        await lab.report("n1", report_of(*(gpu(n) for n in range(4)), users={0: "ada"}))
        await until(("busy", [(made["id"], "current", "holder")]))
        await lab.report("n1", report_of(*(gpu(n) for n in range(4)), users={0: "eve"}))
        await until(("busy", [(made["id"], "current", "others")]))
        await lab.report("n1", report_of(*(gpu(n) for n in range(4))))
        await ada.ask("POST", f"bookings/{made['id']}/release")
        await until(("free", [(made["id"], "past", None)]))

    play(tmp_path, story)


def test_what_can_be_asked_for(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada = await lab.person("ada", "member", "vision")
        await lab.report("n1", report_of(*(gpu(n) for n in range(4)), users={2: "ada", 3: "eve"}))
        assert devices_of((await ada.book(running=True, end="1h"))[0]) == [G2]
        assert devices_of((await ada.book(nodes=["n2"], end="1h"))[0]) == [("n2", "GPU-0"), ("n2", "GPU-1")]
        assert devices_of((await ada.book(any={"count": 2, "same_node": True}, end="1h"))[0]) == [G0, G1]
        would = await ada.book(any="2 x A100 80GB", start="1h", end="1h", dry_run=True, group="vision")
        assert (would[0]["id"], would[0]["holder"]) == (0, "vision")
        weekly = await ada.book(
            G0, start="tomorrow 9:00", end="8h", weekly={"times": 3}, zone="Asia/Kathmandu"
        )
        assert len({one["series_id"] for one in weekly}) == 1
        assert [one["id"] for one in await ada.get("bookings", series=weekly[0]["series_id"])][::-1] == [
            one["id"] for one in weekly
        ]
        status, cancelled = await ada.ask("POST", f"bookings/{weekly[1]['id']}/cancel", {"series": True})
        assert (status, [one["id"] for one in cancelled]) == (200, [one["id"] for one in weekly[1:]])

    play(tmp_path, story)


def test_the_public_sees_pseudonyms_and_nothing_that_was_written(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada = await lab.person("ada", "member", "opticians")
        await lab.report("n1", report_of(*(gpu(n) for n in range(4)), users={0: "ada"}))
        [made] = await ada.book(
            G0, end="4h", title="secret title", comment="secret words", zone="Europe/Berlin"
        )
        [for_group] = await ada.book(G1, end="4h", group="opticians")
        for path in (f"bookings/{made['id']}", "bookings", "timeline", f"bookings/{for_group['id']}"):
            body = str(await lab.nobody.get(path))
            for word in ("secret", "Ada", "ada", "opticians", "Berlin", ada.account_id or ""):
                assert word not in body, (path, word)
        seen = await lab.nobody.get(f"bookings/{made['id']}")
        assert seen["holder"].startswith("~")
        assert (seen["is_own"], seen["may_edit"], seen["starts_at"]) == (False, False, made["starts_at"])
        [bar, _] = (await lab.nobody.get("timeline"))["bookings"]
        assert bar["holder"] == seen["holder"]
        process = (await lab.nobody.get("gpus", node="n1"))[0]["processes"][0]
        assert process["user"] == seen["holder"]  # the same person, under the same pseudonym
        assert await lab.nobody.get("bookings", mine="true") == []
        assert (await lab.nobody.get("slots", count="2"))[0]["devices"]
        await lab.nobody.refused("POST", "bookings", lab.nobody.wish(G2), status=401, code="login_needed")

    play(tmp_path, story, public="read")


def test_who_may_do_what(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada, root = await lab.person("ada"), await lab.person("root", "admin")
        looker = await lab.person("looker", "viewer")
        reader = await lab.person("reader", "member", scopes=("read",))
        booker = await lab.person("booker", "admin", scopes=("read", "book"))
        [made] = await ada.book(G0, start="1h", end="1h")
        path = f"bookings/{made['id']}"
        verbs: list[tuple[str, str, Any]] = [
            ("POST", "bookings", Booker.wish(G1)),
            ("PATCH", path, {"title": "x"}),
            ("POST", f"{path}/extend", {"end": "1h"}),
            ("POST", f"{path}/copy", {"start": "9h"}),
            ("POST", f"{path}/release", None),
            ("POST", f"{path}/cancel", {}),
            ("POST", f"{path}/approve", {"revision": made["revision"]}),
            ("POST", f"{path}/refuse", {"revision": made["revision"]}),
        ]
        for method, address, body in verbs:
            assert (await lab.nobody.ask(method, address, body))[0] == 401
            for who in (looker, reader):
                assert (await who.ask(method, address, body))[0] == 403
        for who in (ada, booker):
            assert (await who.ask("POST", f"{path}/approve", {"revision": made["revision"]}))[0] == 403
        body = {"revision": made["revision"]}
        await root.refused("POST", f"{path}/approve", body, status=409, code="not_pending")
        assert (await looker.get("booking-policy"))["may_book"] is False
        assert (await reader.get("booking-policy"))["may_book"] is False
        assert (await root.get("booking-policy"))["is_exempt"] is True
        assert (await lab.nobody.ask("GET", "booking-policy"))[0] == 401
        for path in ("bookings", "timeline", "slots"):
            assert (await lab.nobody.ask("GET", path))[0] == 401
        assert (await booker.ask("PATCH", f"bookings/{made['id']}", {"title": "by an admin"}))[0] == 200

    play(tmp_path, story)


def test_limits_and_approval(tmp_path: Path) -> None:
    settings = BookingSettings(
        max_devices=2, gpu_hours_ahead=10, approval=True, quiet=("n2",), zone="Europe/Berlin"
    )

    async def story(lab: BookingHub) -> None:
        ada, root = await lab.person("ada", "member", "vision"), await lab.person("root", "admin")
        policy = await ada.get("booking-policy")
        assert (policy["max_devices"], policy["gpu_hours_ahead"], policy["needs_approval"]) == (2, 10, True)
        assert (policy["zone"], policy["groups"]) == ("Europe/Berlin", ["vision"])
        [made] = await ada.book(G0, G1, start="1h", end="2h")
        assert (made["state"], made["zone"]) == ("pending", "Europe/Berlin")
        wish = ada.wish(G2, start="2h")
        await ada.refused("POST", "bookings", wish, status=422, code="too_many_devices", at="devices")
        wish = ada.wish(G2, start="5h", end="8h")
        await ada.refused("POST", "bookings", wish, status=422, code="too_many_gpu_hours", at="end")
        await ada.refused(
            "POST", "bookings", ada.wish(OTHER), status=422, code="quiet_device", at="devices[0]"
        )
        timeline = await ada.get("timeline")
        assert [line["is_quiet"] for line in timeline["devices"]] == [False] * 4 + [True] * 2
        assert timeline["bookings"][0]["state"] == "pending"
        used = await ada.get("booking-policy")
        assert (used["devices_booked"], used["gpu_hours_booked"]) == (2, 4.0)
        assert [one["id"] for one in await root.get("bookings", state="pending")] == [made["id"]]
        _, changed = await ada.ask("PATCH", f"bookings/{made['id']}", {"end": "3h"})
        for verb in ("approve", "refuse"):
            path = f"bookings/{made['id']}/{verb}"
            assert (await root.ask("POST", path))[0] == 400
            assert (await root.ask("POST", path, {}))[0] == 400
            body = {"revision": made["revision"]}
            await root.refused("POST", path, body, status=409, code="changed_meanwhile")
        body = {"revision": changed["revision"]}
        status, approved = await root.ask("POST", f"bookings/{made['id']}/approve", body)
        assert (status, approved["state"]) == (200, "active")
        other = (await ada.book(G2, start="5h", end="1h"))[0]
        body = {"revision": other["revision"]}
        status, refused = await root.ask("POST", f"bookings/{other['id']}/refuse", body)
        assert (status, refused["state"]) == (200, "refused")
        await ada.refused("POST", f"bookings/{other['id']}/release", status=409, code="refused")

    play(tmp_path, story, settings)


def test_requests_that_nobody_answered_in_time_are_closed(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada = await lab.person("ada")
        [made] = await ada.book(G0, end="1h")
        assert made["state"] == "pending"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await ada.get(f"bookings/{made['id']}"))["state"] != "refused":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (await ada.get("timeline"))["bookings"] == []

    play(tmp_path, story, BookingSettings(approval=True))


def test_fifty_rivals_and_one_winner(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        people = [await lab.person(f"p{number}") for number in range(5)]
        wish = Booker.wish(G0, G1, start="2h", end="1h")
        answers = await asyncio.gather(*(people[n % 5].ask("POST", "bookings", wish) for n in range(50)))
        assert sorted(status for status, _ in answers) == [201] + [409] * 49
        every = await asyncio.gather(
            *(people[n % 5].ask("POST", "bookings", Booker.wish(any="1", start="5h")) for n in range(12))
        )
        assert sorted(status for status, _ in every) == [201] * 6 + [409] * 6  # six devices, each once
        taken = [devices_of(body[0])[0] for status, body in every if status == 201]
        assert len(set(taken)) == 6

    play(tmp_path, story)


@pytest.mark.parametrize("is_known", [True, False], ids=["node-left", "node-gone"])
def test_a_device_that_vanished_stays_booked_and_is_shown_as_gone(tmp_path: Path, is_known: bool) -> None:
    async def story(lab: BookingHub) -> None:
        ada = await lab.person("ada")
        [made] = await ada.book(G1, OTHER, start="1h", end="1h")
        if is_known:
            await lab.report("n2", report_of(gpu(1)))
        else:
            await asyncio.to_thread(lab.hub.records.nodes.remove, "n2", now=lab.hub.clock.wall())
            await eventually(lambda: not lab.hub.fleet.has_node("n2"))
            tick = lab.hub.fleet.tick_number
            await eventually(lambda: lab.hub.fleet.tick_number > tick + 1)
        seen = (await ada.get(f"bookings/{made['id']}"))["devices"]
        assert [device["is_gone"] for device in seen] == [False, True]
        assert (seen[1]["node_name"], seen[1]["index"], seen[1]["short_name"]) == ("n2", None, None)
        timeline = await ada.get("timeline")
        gone = timeline["devices"][-1]
        assert (gone["uuid"], gone["is_gone"]) == ("GPU-0", True)
        assert timeline["bookings"][0]["devices"] == [1, len(timeline["devices"]) - 1]
        await ada.refused(
            "POST", "bookings", ada.wish(G0, OTHER), status=422, code="unknown_device", at="devices[1]"
        )
        status, _ = await ada.ask("POST", f"bookings/{made['id']}/release")
        assert status == 200

    play(tmp_path, story)


def test_the_timeline_and_slots(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada = await lab.person("ada")
        now = int(lab.hub.clock.wall())
        [one] = await ada.book(G0, OTHER, end="2h")
        [two] = await ada.book(G0, start="3h", end="2h")
        timeline = await ada.get("timeline", since=now - 60, until=now + 86_400)
        assert timeline["is_current"] is True
        assert [line["node_id"] for line in timeline["devices"]] == ["n1"] * 4 + ["n2"] * 2
        assert [(bar["id"], bar["devices"]) for bar in timeline["bookings"]] == [
            (one["id"], [0, 4]),
            (two["id"], [0]),
        ]
        narrow = await ada.get("timeline", since=now + 9000, until=now + 20_000, node="n1")
        assert [(bar["id"], bar["devices"]) for bar in narrow["bookings"]] == [(two["id"], [0])]
        assert len(narrow["devices"]) == 4
        old = await ada.get("timeline", since=now - 40 * 86_400, until=now - 30 * 86_400)
        assert old["bookings"] == []
        slots = await ada.get("slots", count=6, hours=2)
        assert slots[0]["starts_at"] - now >= 5 * 3600 - 5
        assert (await ada.get("slots", count=4, hours=1, same_node="true"))[0]["starts_at"] - one[
            "ends_at"
        ] == 0
        free = (await ada.get("slots", count=1, model="A100 80GB"))[0]
        assert (free["starts_at"] - now < 10, free["free_until"]) == (True, None)
        day = 86_400  # a booking must begin within 60 days
        assert len(await ada.get("slots", since=now + 59 * day)) == 1
        assert await ada.get("slots", since=now + 61 * day) == []

    play(tmp_path, story)


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"end": "soon"}, 422, "end"),
    ({"end": "2h", "start": "2026-10-25 02:30", "zone": "Europe/Berlin"}, 422, "start"),
    ({"zone": "Mars/Base"}, 422, "zone"),
    ({"end": 10**18}, 422, "end"),
    ({"end": "9999-12-31 23:59"}, 422, "end"),
    ({"end": -1}, 422, "end"),
    ({"start": "4h", "end": 5}, 422, "end"),
    ({"devices": []}, 422, "devices"),
    ({"devices": [{"node_id": "n1", "uuid": "x\x00y"}]}, 422, "devices[0]"),
    ({"devices": [{"node_id": "n1", "uuid": f"GPU-{n}"} for n in range(1001)]}, 400, "devices"),
    ({"devices": [{"node_id": "n1"}]}, 400, "devices"),
    ({"devices": "all"}, 400, "devices"),
    ({"any": {"count": 0}}, 400, "any"),
    ({"any": 5}, 400, "any"),
    ({"any": {"count": 1, "model": "H100"}, "devices": []}, 422, "any.model"),
    ({"title": "x" * 121}, 400, "title"),
    ({"comment": "x" * 2001}, 400, "comment"),
    ({"title": None}, 400, "title"),
    ({"end": 1.5}, 400, "end"),
    ({"end": True}, 400, "end"),
    ({"end": ["2h"]}, 400, "end"),
    ({"weekly": {"times": 1}}, 400, "weekly"),
    ({"weekly": {"times": 53}}, 400, "weekly"),
    ({"group": "nobody's"}, 422, "group"),
    ({"ends": "2h"}, 400, "ends"),
    ({"dry_run": "yes"}, 400, "dry_run"),
]


def test_bad_input_is_refused_and_names_the_field(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        ada = await lab.person("ada")
        for fields, status, field in BAD:
            body = {**ada.wish(G0), **fields}
            if "any" in fields:
                body.pop("devices", None)
            answered, answer = await ada.ask("POST", "bookings", body)
            assert answered == status, (fields, answer)
            path = answer["error"].get("path") or ""
            assert field in path or field in answer["error"]["message"], (fields, answer)
        for raw in (b"", b"[]", b"null", b"{", b'{"end":' + b"[" * 50_000, b"\xff", b'{"end":"\\ud800"}'):
            async with lab.session.post(
                "api/v1/bookings", data=raw, headers={**ada.headers, "Content-Type": "application/json"}
            ) as response:
                assert response.status == 400, await response.text()
        for query in (
            "bookings?limit=0",
            "bookings?limit=1001",
            "bookings?state=gone",
            "bookings?since=x",
            "bookings?before=-1",
            f"bookings?series={2**70}",
            f"timeline?since={2**63}",
            "timeline?since=-5",
            "timeline?since=5&until=5",
            "timeline?since=0&until=99999999",
            "slots?count=0",
            "slots?count=1001",
            "slots?hours=0",
            "slots?hours=nan",
            "slots?hours=1e9",
            "slots?count=500",
        ):
            status, answer = await ada.ask("GET", query)
            assert status in (400, 422), (query, answer)
            assert answer["error"].get("path"), (query, answer)
        for number in ("0", "-1", "999", str(2**31), str(2**63), str(2**200), "x"):
            for method, path in (("GET", ""), ("POST", "/release"), ("POST", "/cancel")):
                empty: dict[str, Any] | None = {} if path == "/cancel" else None
                status, answer = await ada.ask(method, f"bookings/{number}{path}", empty)
                assert status == 404, (number, answer)
        assert await ada.get("bookings") == []

    play(tmp_path, story)


def test_a_time_that_comes_twice_can_be_made_clear(tmp_path: Path) -> None:
    async def story(lab: BookingHub) -> None:
        root = await lab.person("root", "admin")
        wish = root.wish(G0, start="2027-10-31 02:30", end="1h", zone="Europe/Berlin")
        told = await root.refused("POST", "bookings", wish, status=422, code="ambiguous_time", at="start")
        first, second = told["choices"]
        assert second["at"] - first["at"] == 3600
        [made] = await root.book(G0, start=second["text"], end="1h", zone="Europe/Berlin")
        assert made["starts_at"] == second["at"]

    play(tmp_path, story)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = []

    async def before(lab: BookingHub) -> None:
        made.extend(await (await lab.person("ada")).book(G0, end="3h", title="stays"))

    async def after(lab: BookingHub) -> None:
        bob = await lab.person("bob")
        [bar] = (await bob.get("timeline"))["bookings"]
        assert (bar["id"], bar["title"], bar["holder"]) == (made[0]["id"], "stays", "Ada")
        await bob.refused("POST", "bookings", bob.wish(G0), status=409, code="conflict", at="devices")

    play(tmp_path, before)
    play(tmp_path, after)
