"""Hooks of a running hub: told once of start, end and violation, also over restarts; a broken one harms nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.booking_hooks import LEDGER_NAME
from gpuherd.bookings.hook_settings import HookSettings
from gpuherd.bookings.settings import BookingSettings
from gpuherd.fleet.clock import SystemClock
from gpuherd.model.errors import Misconfigured
from support.booking_hub import BY, booking_hub, report_of
from support.herd import gpu
from support.hub import eventually, running_hub
from support.running import PATIENCE_SECONDS


def teller(folder: Path) -> HookSettings:
    """A hook that writes each event on a line of its own."""
    program = folder / "teller"
    program.write_text(f"#!/bin/sh\ncat >> {folder}/told\n")
    program.chmod(0o755)
    return HookSettings(
        on=("start", "end", "violation"), command=(str(program),), violation_after_seconds=0.2
    )


def told(folder: Path) -> list[dict[str, Any]]:
    file = folder / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def events(folder: Path) -> Callable[[], list[str]]:
    return lambda: [event["event"] for event in told(folder)]


def is_crossed_out(state: Path) -> bool:
    """Whether the hub knows that it has told everything: one that ends before would tell it again."""
    pages = json.loads((state / LEDGER_NAME).read_bytes())["hooks"].values()
    return all(not page["waiting"] and page["done"] for page in pages)


def options(*hooks: HookSettings) -> dict[str, Any]:
    return {"hub_options": {"bookings": BookingSettings(hooks=hooks)}}


def test_a_booking_from_start_to_end(tmp_path: Path) -> None:
    async def go() -> None:
        state, hook = tmp_path / "hub", teller(tmp_path)
        async with booking_hub(state, **options(hook)) as lab:
            ann = await lab.person("ann")
            (booking,) = await ann.book(("n1", "GPU-0"), ("n1", "GPU-1"), title="x")
            await eventually(lambda: events(tmp_path)() == ["start"])
            async with asyncio.timeout(PATIENCE_SECONDS):
                while events(tmp_path)() != ["start", "violation"]:  # a node that falls silent does no wrong
                    await lab.report("n1", report_of(gpu(0), gpu(1), users={1: "eve"}))
            await eventually(lambda: is_crossed_out(state))
        (start, violation) = told(tmp_path)
        assert (start["id"], start["booking"]["holder"]) == (f"booking-{booking['id']}-start", "Ann")
        assert [device["node_name"] for device in start["booking"]["devices"]] == ["n1", "n1"]
        assert violation["violation"]["users"] == ["eve"]
        assert [device["uuid"] for device in violation["violation"]["devices"]] == ["GPU-1"]

        async with booking_hub(state, **options(hook)) as lab:  # told before, not told again
            ann = await lab.person("ann2", "admin")
            status, _ = await ann.ask("POST", f"bookings/{booking['id']}/release")
            assert status == 200
            await eventually(lambda: events(tmp_path)() == ["start", "violation", "end"])
            health = {loop.name: loop.state for loop in lab.hub.health().loops}
            assert health["hook 0: run teller"] == "ok"
        assert told(tmp_path)[-1]["booking"]["released_from"] is not None

    asyncio.run(go())


class SecondHand(SystemClock):
    """The machine's clock, set so that a second begins when the test says."""

    shift_seconds = 0.0

    def wall(self) -> float:
        return super().wall() + self.shift_seconds

    def begin_second(self) -> None:
        self.shift_seconds -= self.wall() % 1


def test_a_booking_given_back_at_once_is_told_to_its_end(tmp_path: Path) -> None:
    async def go() -> None:
        clock = SecondHand()
        hub_options = {**options(teller(tmp_path))["hub_options"], "clock": clock}
        async with booking_hub(tmp_path / "hub", hub_options=hub_options) as lab:
            ann, bob = await lab.person("ann"), await lab.person("bob")
            clock.begin_second()
            (booking,) = await ann.book(("n1", "GPU-0"))
            status, released = await ann.ask("POST", f"bookings/{booking['id']}/release")
            assert (status, released["state"], released["released_from"]) == (
                200,
                "active",
                booking["ends_at"],
            )
            await bob.book(("n1", "GPU-0"))  # free for others as soon as the answer is there
            await eventually(lambda: events(tmp_path)() == ["start", "end", "start"])

    asyncio.run(go())


def test_a_broken_hook_is_seen_and_harms_no_other(tmp_path: Path) -> None:
    async def go() -> None:
        good = teller(tmp_path)
        hangs = HookSettings(on=("start",), command=("/bin/sleep", "600"), deadline_seconds=0.5)
        private = HookSettings(on=("start",), url="http://127.0.0.1:9/hidden-key")
        async with booking_hub(tmp_path / "hub", **options(hangs, private, good)) as lab:
            ann = await lab.person("ann")
            await ann.book(("n1", "GPU-0"))
            await eventually(lambda: events(tmp_path)() == ["start"])

            def failing() -> dict[str, str]:
                return {
                    loop.name: loop.last_error or ""
                    for loop in lab.hub.health().loops
                    if loop.name.startswith("hook ") and loop.state == "failing"
                }

            await eventually(lambda: len(failing()) == 2)
            assert "did not finish within 0.5 s" in failing()["hook 0: run sleep"]
            assert "127.0.0.1 is not a public address" in failing()["hook 1: POST to 127.0.0.1"]
            assert "hidden-key" not in str(lab.hub.health())
            await ann.book(("n1", "GPU-1"))

    asyncio.run(go())


def test_what_happens_while_the_hub_is_away_is_told_late(tmp_path: Path) -> None:
    async def go() -> None:
        state, hook = tmp_path / "hub", teller(tmp_path)
        async with booking_hub(state, **options(hook)) as lab:
            ann = await lab.person("ann")
            await ann.book(("n1", "GPU-0"))
            await eventually(lambda: events(tmp_path)() == ["start"])
            await eventually(lambda: is_crossed_out(state))
            now = int(lab.hub.clock.wall())
        async with booking_hub(state) as lab:  # without hooks, as if it were away
            await asyncio.to_thread(
                lab.hub.records.bookings.change, 1, revision=None, now=now, by=BY, ends_at=now + 1
            )
            await eventually(lambda: lab.hub.clock.wall() > now + 1)
        async with running_hub(state, **options(hook)):
            await eventually(lambda: events(tmp_path)() == ["start", "end"])

    asyncio.run(go())


def test_a_hook_that_cannot_be_had_stops_the_start(tmp_path: Path) -> None:
    async def go() -> None:
        missing = HookSettings(on=("start",), command=(str(tmp_path / "missing"),))
        with pytest.raises(Misconfigured, match="is not a program"):
            async with running_hub(tmp_path / "hub", **options(missing)):
                pass

    asyncio.run(go())
