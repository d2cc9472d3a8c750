"""gpuherd run against a real hub, with real children and real signals."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from support.booking_hub import Booker, BookingHub, report_of
from support.chooser import Chooser, living_hub, lossy_way
from support.herd import gpu
from support.hub import eventually

SAY = "import os; print(*(f'{k}={os.environ.get(k)}' for k in ('CUDA_VISIBLE_DEVICES', 'CUDA_DEVICE_ORDER', "
SAY += "'GPUHERD_DEVICES', 'GPUHERD_BOOKING')))"
# Prints each signal that it gets; ends by itself only after the whole test has failed. A handler that interrupts
# print() cannot print itself, so it writes.
LISTEN = """
import os, signal, sys, time
def on(number, frame):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
    if number != signal.SIGUSR1: sys.exit(40 + number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1): signal.signal(number, on)
print("ready", flush=True)
time.sleep(60)
"""
CARDS = ("GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-one")
"""Of the machine on which the commands are given; the nodes n1, n2 and n3 say that these are theirs."""


async def own_bookings(person: Booker) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await person.get("bookings", mine="true", state=["active", "pending"])
    return [one for one in found if one["phase"] != "past"]


async def at_work(lab: BookingHub, folder: Path) -> tuple[Booker, Chooser]:
    ann = await lab.person("ann")
    return ann, Chooser(lab, folder / "ann", ann, cards=CARDS)


def test_the_environment_and_the_end_of_a_command(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann, shell = await at_work(lab, tmp_path)
            show = ("--", sys.executable, "-c", SAY)
            code, said, told = await shell.run("run", "--node", "n2", "-n", "2", *show, GPUHERD_BOOKING="7")
            assert (code, told) == (0, "")
            assert said == (
                "CUDA_VISIBLE_DEVICES=GPU-0,GPU-1 CUDA_DEVICE_ORDER=PCI_BUS_ID GPUHERD_DEVICES=n2/0,n2/1 "
                "GPUHERD_BOOKING=None\n"
            )
            ending = ("--", sys.executable, "-c", SAY + "; raise SystemExit(7)")
            code, said, told = await shell.run("run", "--node", "n2", "--book", "2h", *ending)
            (booking,) = await ann.get("bookings", mine="true", state=["active", "cancelled"])
            assert (code, f"GPUHERD_BOOKING={booking['id']}\n" in said) == (7, True)
            assert f", booking {booking['id']}; end it early with: gpuherd release" in told
            assert booking["title"] == Path(sys.executable).name
            assert await own_bookings(ann) == []

            # A log on a full disk ends nothing, and takes no exit code away.
            muted = '"$0" -m gpuherd run --node n2 --book 2h --wait -- sh -c "exit 7" 2>/dev/full'
            outer = ("run", "--node", "n2", "--", "sh", "-c", muted, sys.executable)
            assert await shell.run(*outer) == (7, "", "")
            assert await own_bookings(ann) == []

            assert (await shell.run("run", "--node", "n2", "--", "/no/such/program"))[0] == 127
            (tmp_path / "plain").write_text("no program")
            code, _, told = await shell.run(
                "run", "--node", "n2", "--book", "1h", "--", str(tmp_path / "plain")
            )
            assert (
                code,
                told.endswith(f"gpuherd: {tmp_path}/plain cannot be run (Permission denied)\n"),
            ) == (126, True)
            assert (await shell.run("run", "--node", "n2", "--", "sh", "-c", "kill -KILL $$"))[0] == 137
            assert (await shell.run("run", "--node", "n2", "-n", "3", "--", "true"))[0] == 125
            assert (await shell.run("run", "--node", "n9", "--", "true"))[0] == 125
            assert (await shell.run("run", "--node", "n2", "--book", "99y", "--", "true"))[0] == 125
            assert (await shell.run("run", "--node", "n2", "--wait", "-n", "3", "--", "true"))[0] == 125
            assert (await shell.run("run", "--", "true", GPUHERD_HUB="http://127.0.0.1:9"))[0] == 125
            assert (await shell.run("run", "--node", "n2"))[0] == 2
            assert await own_bookings(ann) == []

    asyncio.run(day())


def test_the_gpus_of_another_machine_are_refused(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann = await lab.person("ann")
            await lab.report("far", report_of(gpu(0, uuid="GPU-far"), gpu(1, uuid="GPU-one")))
            mark = tmp_path / "has run"
            here = f"this one ({socket.gethostname()}) has "
            for shell, node, why in (
                (Chooser(lab, tmp_path / "login", ann), "n2", "no readable GPU"),
                (Chooser(lab, tmp_path / "other", ann, cards=("GPU-else",)), "n2", "none of the GPUs of n2"),
            ):
                for further in ((), ("--wait",), ("--book", "1h")):
                    code, _, told = await shell.run("run", "--node", node, *further, "--", "touch", str(mark))
                    assert (code, f"{here}{why}. Log in to n2" in told) == (125, True), told
                assert (await shell.run("pick", "--node", node))[:2] == (0, "n2 CUDA_VISIBLE_DEVICES=GPU-0\n")
            assert not mark.exists()
            assert await own_bookings(ann) == []

            # Of a node of which this machine (a container, say) has only some GPUs, only these are taken.
            some = Chooser(lab, tmp_path / "some", ann, cards=("GPU-one",))
            code, said, _ = await some.run("run", "--node", "far", "--", sys.executable, "-c", SAY)
            assert (code, said.split()[0]) == (0, "CUDA_VISIBLE_DEVICES=GPU-one")
            assert (await some.run("run", "--node", "far", "-n", "2", "--", "true"))[0] == 125

    asyncio.run(day())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_go_to_the_command_and_nothing_stays_booked(tmp_path: Path, number: signal.Signals) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann, shell = await at_work(lab, tmp_path)
            command = await shell.start(
                "run", "--node", "n2", "--book", "2h", "--", sys.executable, "-c", LISTEN
            )
            await command.until_said("ready")
            assert len(await own_bookings(ann)) == 1
            command.signal(signal.SIGUSR1)
            await command.until_said("SIGUSR1")
            command.signal(number)
            assert await command.end() == 40 + number
            assert command.said.count(number.name) == 1
            assert await own_bookings(ann) == []

            command = await shell.start("run", "--node", "n2", "--book", "2h", "--", "sleep", "60")
            await command.until_told("gpuherd: booked")
            await eventually(lambda: _has_child(command.process.pid))
            command.signal(number)
            assert await command.end() == 128 + number
            assert await own_bookings(ann) == []

    asyncio.run(day())


def _has_child(pid: int) -> bool:
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_ctrl_c_at_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann, shell = await at_work(lab, tmp_path)
            terminal = shell.at_a_terminal(
                "run", "--node", "n2", "--book", "2h", "--", sys.executable, "-c", LISTEN
            )
            await terminal.until_shown("ready")
            terminal.type("\x03")
            code = await terminal.end()
            assert code == 40 + signal.SIGINT, terminal.shown
            assert terminal.shown.count("SIGINT") == 1
            assert await own_bookings(ann) == []

    asyncio.run(day())


def test_commands_at_once_take_different_gpus_also_without_bookings(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            _, shell = await at_work(lab, tmp_path)
            start = ("run", "--node", "n1", "--", sys.executable, "-c")
            hold = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(60)"
            commands = await asyncio.gather(*(shell.start(*start, hold) for _ in range(4)))
            for command in commands:
                await command.until_said("GPU-")
            assert sorted(command.said.strip() for command in commands) == [
                f"GPU-{index}" for index in range(4)
            ]
            # The hub still believes that all of them are free. This machine knows better, by whatever name.
            await lab.report(socket.gethostname(), report_of(*(gpu(index) for index in range(4))))
            code, said, told = await shell.run("pick")
            assert (code, said, "none available; 4 just taken by someone here" in told) == (3, "", True)
            code, said, told = await shell.run("pick", "--node", "n1")
            assert (code, said, "4 just taken by someone here" in told) == (3, "", True)
            code, _, told = await shell.run("run", "--node", "n1", "--", "true")
            assert (code, "none available; 4 just taken by someone here" in told) == (125, True)
            for command in commands:
                command.signal(signal.SIGTERM)
            assert {await command.end() for command in commands} == {128 + signal.SIGTERM}
            assert (await shell.run("run", "--node", "n1", "-n", "4", "--", "true"))[0] == 0

    asyncio.run(day())


def test_two_people_on_machines_without_common_locks_never_get_the_same_if_they_book(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            await lab.report("n3", report_of(gpu(0, uuid="GPU-one")))
            people = [await lab.person(name) for name in ("ann", "bob")]
            shells = [
                Chooser(lab, tmp_path / str(number), person, cards=CARDS)
                for number, person in enumerate(people)
            ]
            start = ("run", "--node", "n3", "--book", "2h", "--", sys.executable, "-c", LISTEN)
            commands = await asyncio.gather(*(shell.start(*start) for shell in shells))
            await eventually(lambda: any(command.process.returncode is not None for command in commands))
            (loser,) = (command for command in commands if command.process.returncode is not None)
            (winner,) = (command for command in commands if command is not loser)
            assert (await loser.end(), loser.said) == (125, "")
            assert "1 GPU requested on n3, none available; 1 " in loser.told
            await winner.until_said("ready")
            winner.signal(signal.SIGTERM)
            await winner.end()
            assert [await own_bookings(person) for person in people] == [[], []]

    asyncio.run(day())


def test_an_answer_that_got_lost_leaves_nothing_booked(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab, lossy_way(lab.hub.url) as way:
            ann, shell = await at_work(lab, tmp_path)
            way.is_losing = True
            code, _, told = await shell.run(
                "run", "--node", "n2", "--book", "2h", "--", "true", **shell.by_way(way, ann)
            )
            assert (code, way.lost) == (125, 1)
            assert "it closed the connection" in told
            assert len(await ann.get("bookings", mine="true", state=["active", "cancelled"])) == 1
            assert await own_bookings(ann) == []

    asyncio.run(day())


def test_a_hub_that_is_gone_at_the_end_is_told_of(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            _, shell = await at_work(lab, tmp_path)
            command = await shell.start(
                "run", "--node", "n2", "--book", "2h", "--", sys.executable, "-c", LISTEN
            )
            await command.until_said("ready")
        command.signal(signal.SIGTERM)
        await command.until_told("booking 1 cannot be released yet")
        command.signal(signal.SIGINT)
        assert await command.end() == 40 + signal.SIGTERM
        assert "could not be released; it ends" in command.told
        assert "gpuherd release 1" in command.told

    asyncio.run(day())


def test_what_was_taken_while_the_lock_was_had_is_not_taken_again(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            _, shell = await at_work(lab, tmp_path)
            await lab.report("n3", report_of(gpu(0, uuid="GPU-one")))
            first = await shell.start("run", "--node", "n3", "--", sys.executable, "-c", LISTEN)
            await first.until_said("ready")
            second = await shell.start("run", "--wait", "--node", "n3", "--", "echo", "mine")
            await second.until_told("waiting for 1 GPU on n3: 0 of 1 available")
            await lab.report("n3", report_of(gpu(0, uuid="GPU-one"), users={0: "cleo"}))
            first.signal(signal.SIGTERM)
            await first.end()
            assert second.said == ""
            await lab.report("n3", report_of(gpu(0, uuid="GPU-one")))
            assert (await second.end(), second.said) == (0, "mine\n")

    asyncio.run(day())
