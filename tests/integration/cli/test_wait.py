"""gpuherd wait against a real hub: until something is free, through its absence, and never leaving a booking behind."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from support.booking_hub import Booker, report_of
from support.chooser import Chooser, living_hub, lossy_way
from support.herd import gpu
from support.hub import eventually
from support.running import free_port

BUSY = report_of(gpu(0, uuid="GPU-one"), users={0: "cleo"})
FREE = report_of(gpu(0, uuid="GPU-one"))


async def own_bookings(person: Booker) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await person.get("bookings", mine="true")
    return [one for one in found if one["phase"] != "past"]


def test_until_it_can_be_had_and_booked_at_once(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann = await lab.person("ann")
            shell = Chooser(lab, tmp_path / "ann", ann)
            await lab.report("n3", BUSY)
            command = await shell.start(
                "wait", "--node", "n3", "--then-book", "3h", "--title", "at last", "--json"
            )
            await command.until_told("\n")
            how = "gpuherd: waiting for 1 GPU on n3: 0 of 1 available · n3/0 cleo, busy for "
            assert command.told.startswith(how)
            assert command.told.endswith(" s · no end time known\n")
            assert await own_bookings(ann) == []
            await lab.report("n3", FREE)
            assert await command.end() == 0
            (booking,) = await own_bookings(ann)
            found = json.loads(command.said)
            assert found["booking"] == {"id": booking["id"], "ends_at": booking["ends_at"]}
            assert found["nodes"][0]["devices"][0]["uuid"] == "GPU-one"
            assert booking["title"] == "at last"
            assert f"booking {booking['id']}; end it early with" in command.told

            # By now it is one's own, which others have to wait for, and they are told until when.
            bob = Chooser(lab, tmp_path / "bob", await lab.person("bob"))
            await eventually(lambda: lab.hub.fleet.view().nodes[2].devices[0].availability.state == "booked")
            other = await bob.start("wait", "--node", "n3")
            await other.until_told("n3/0 Ann, booked · bookings end ")
            assert " CET\n" in other.told
            other.signal(signal.SIGTERM)
            assert await other.end() == 128 + signal.SIGTERM
            assert await shell.run("wait", "--node", "n3") == (0, "n3 CUDA_VISIBLE_DEVICES=GPU-one\n", "")

    asyncio.run(day())


def test_what_cannot_be_is_told_before_anyone_waits(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            viewer = Chooser(lab, tmp_path / "vic", await lab.person("vic", "viewer"))
            await lab.report("n3", BUSY)
            code, _, told = await viewer.run("wait", "--node", "n3", "--then-book", "3h")
            assert (code, "role member" in told) == (4, True)
            member = Chooser(lab, tmp_path / "ann", await lab.person("ann"))
            code, _, told = await member.run("wait", "--node", "n3", "--then-book", "whenever")
            assert (code, "whenever" in told) == (3, True)
            code, _, told = await member.run("wait", "-n", "2", "--node", "n3")
            assert (code, "there is only 1 such, so waiting is pointless" in told) == (3, True)
            together = await member.run("wait", "-n", "5", "--same-node", "--anywhere")
            assert (together[0], "only 4 such together, so waiting is pointless" in together[2]) == (3, True)
            code, said, told = await member.run("wait", "--node", "n3", "--timeout", "1s")
            assert (code, said) == (5, "")
            assert told.endswith("gpuherd: timeout: not enough GPUs became free\n")

    asyncio.run(day())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_gives_up_leaves_nothing_booked(tmp_path: Path, number: signal.Signals) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann = await lab.person("ann")
            shell = Chooser(lab, tmp_path / "ann", ann)
            await lab.report("n3", BUSY)
            command = await shell.start("wait", "--node", "n3", "--then-book", "3h")
            await command.until_told("waiting for")
            command.signal(number)
            assert (await command.end(), command.said) == (128 + number, "")
            assert await own_bookings(ann) == []

    asyncio.run(day())


def test_ctrl_c_at_a_terminal_takes_the_line_away(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann = await lab.person("ann")
            shell = Chooser(lab, tmp_path / "ann", ann)
            await lab.report("n3", BUSY)
            terminal = shell.at_a_terminal("wait", "--node", "n3", "--then-book", "3h", COLUMNS="60")
            await terminal.until_shown("waiting for 1 GPU on n3: 0 of 1 available")
            terminal.type("\x03")
            assert await terminal.end() == 130
            line, rest = terminal.shown.removeprefix("\r\x1b[K").split("\r\x1b[K")
            assert len(line.removesuffix("^C")) == 59
            assert "\n" not in line + rest
            assert await own_bookings(ann) == []

    asyncio.run(day())


def test_ctrl_c_while_the_answer_to_a_booking_is_on_its_way(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab, lossy_way(lab.hub.url) as way:
            ann = await lab.person("ann")
            shell = Chooser(lab, tmp_path / "ann", ann)
            way.is_holding = True
            command = await shell.start("wait", "--node", "n2", "--then-book", "3h", **shell.by_way(way, ann))
            await eventually(lambda: way.held)
            assert len(await own_bookings(ann)) == 1
            command.signal(signal.SIGINT)
            way.let_go()
            assert (await command.end(), command.said) == (130, "")
            assert await own_bookings(ann) == []

    asyncio.run(day())


def test_an_answer_that_got_lost_is_found_again(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab, lossy_way(lab.hub.url) as way:
            ann = await lab.person("ann")
            shell = Chooser(lab, tmp_path / "ann", ann)
            way.is_losing = True
            command = await shell.start("wait", "--node", "n2", "--then-book", "3h", **shell.by_way(way, ann))
            assert await command.end() == 0
            assert way.lost == 1
            (booking,) = await own_bookings(ann)
            assert command.said == f"n2 CUDA_VISIBLE_DEVICES={booking['devices'][0]['uuid']}\n"
            assert "still waiting" in command.told

    asyncio.run(day())


def test_a_hub_that_goes_and_comes_back(tmp_path: Path) -> None:
    async def day() -> None:
        listen = f"127.0.0.1:{free_port()}"
        async with living_hub(tmp_path / "hub", listen=listen) as lab:
            ann = await lab.person("ann")
            shell = Chooser(lab, tmp_path / "ann", ann)
            await lab.report("n3", BUSY)
            command = await shell.start("wait", "--node", "n3")
            await command.until_told("0 of 1 available")
        await command.until_told("cannot be reached: nothing listens there; still waiting\n")
        async with living_hub(tmp_path / "hub", listen=listen) as lab:
            await lab.report("n3", FREE)
            assert (await command.end(), command.said) == (0, "n3 CUDA_VISIBLE_DEVICES=GPU-one\n")
            assert "waiting for 1 GPU on n3: the hub is back\n" in command.told

    asyncio.run(day())
