"""gpuherd login, book, bookings and release, as processes of their own, against a real hub."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpuherd.auth.passwords import Passwords
from gpuherd.model.people import Actor
from support.booking_hub import BookingHub, booking_hub, report_of
from support.chooser import living_hub
from support.herd import gpu
from support.running import PATIENCE_SECONDS

BY = Actor(account_id=None, label="test")
PASSWORD = "correct horse battery"
_SILENT = re.compile(r"gpuherd: n\d/\d is (?:stale|offline): .*")


class Shell:
    """Someone's home on some machine."""

    def __init__(self, lab: BookingHub, home: Path) -> None:
        self.hub_url = lab.hub.url
        self.home = home
        home.mkdir(exist_ok=True)

    async def run(
        self, *arguments: str, given: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV") if name in os.environ}
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "gpuherd", *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
            env={**kept, "HOME": str(self.home), "TZ": "Europe/Paris", **environment},
        )

    async def good(self, *arguments: str, given: str = "") -> str:
        done = await self.run(*arguments, given=given)
        # Its nodes have reported once; a machine that is busy for long makes them silent, which whoever books is told.
        told = [line for line in done.stderr.splitlines() if not _SILENT.fullmatch(line)]
        assert (done.returncode, told) == (0, []), done
        return done.stdout

    async def bad(self, code: int, *arguments: str) -> str:
        done = await self.run(*arguments)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert "Traceback" not in done.stderr
        return done.stderr

    async def log_in(self, name: str) -> str:
        return await self.good(
            "login", "--hub", self.hub_url, "--name", name, "--password-file", "-", given=PASSWORD
        )


async def add_person(lab: BookingHub, name: str, role: Any = "member") -> None:
    await asyncio.to_thread(
        lab.hub.records.people.create_account,
        name=name,
        display_name=name.title(),
        role=role,
        password_hash=Passwords(rounds=1, memory_kib=8192).hash(PASSWORD),
        now=lab.hub.clock.wall(),
        by=BY,
    )
    await lab.hub._entered.identity.refresh()


def test_a_day_at_the_command_line(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            await add_person(lab, "ann")
            await add_person(lab, "bob")
            ann, bob = Shell(lab, tmp_path / "ann"), Shell(lab, tmp_path / "bob")
            assert "log in with: gpuherd login" in await ann.bad(
                4, "book", "2", "--for", "4h", "--hub", ann.hub_url
            )

            said = await ann.log_in("ann")
            token = ann.home / ".config/gpuherd/token"
            assert said == f"logged in to {ann.hub_url.rstrip('/')} as ann; the token is in {token}\n"
            assert stat.S_IMODE(token.stat().st_mode) == 0o600
            assert PASSWORD not in token.read_text()
            await bob.log_in("bob")

            said = await ann.good("book", "n1:0,1", "--for", "3d 4h", "--title", "a \u202e\x1b[31mtitle")
            number = said.split("booking ")[1].split()[0]
            assert said.startswith("booked 2 GPUs ")
            assert "\nCUDA_VISIBLE_DEVICES=GPU-0,GPU-1\n" in said
            listed = await bob.good("bookings", "--all")
            assert listed.splitlines()[0].split() == ["id", "state", "when", "who", "what", "title"]
            assert "n1/0,1" in listed
            assert "\x1b" not in listed
            assert "\u202e" not in listed
            assert (await bob.good("bookings")) == "no bookings\n"
            assert "Ann" in await bob.good("bookings", "--node", "n1")

            said = await bob.bad(3, "book", "n1", "--for", "1h")
            assert "n1/0 is Ann's " in said
            assert f"(booking {number})" in said
            assert "all of them are free for that long from " in said
            assert "this booking belongs to Ann" in await bob.bad(4, "release", number)

            preview = json.loads(await bob.good("book", "2x", "--for", "1h", "--dry-run", "--json"))
            assert [device["uuid"] for device in preview[0]["devices"]] == ["GPU-2", "GPU-3"]
            assert "would book 2 GPUs" in await bob.good(
                "book", "2 x", "--until", "23:59", "--start", "now", "--dry-run"
            )

            assert 'there is no node "n9"' in await ann.bad(3, "book", "n9:0", "--for", "1h")
            assert f"booking {number} now ends " in await ann.good("bookings", "extend", number, "2h")
            assert f"booking {number} has ended; it would have ended " in await ann.good("release", number)
            await bob.good("book", "n1", "--for", "1h")
            series = await ann.good(
                "book", "n2:0", "--start", "tomorrow 9:00", "--for", "2h", "--weekly", "3"
            )
            assert series.count("booked 1 GPU ") == 3
            first = series.split("booking ")[1].split()[0]
            assert (await ann.good("bookings", "cancel", first, "--series")).count("cancelled booking") == 3
            assert "there is no booking with this number" in await ann.bad(3, "release", "99999")

            await ann.good("book", "2", "--same-node", "--start", "2h", "--for", "1h")
            strange = await ann.run("book", "n2:0", "--start", "4h", "--for", "1h", TZ="XYZ-1XYZT")
            assert (strange.returncode, "times are in UTC+" in strange.stderr) == (0, True), strange
            last = strange.stdout.rsplit(maxsplit=1)[-1]
            cut = await ann.run("bookings", "--limit", "1")
            assert cut.stdout.splitlines()[1].split()[0] == last
            assert cut.stderr == "gpuherd: showing the 1 newest bookings; for more, use a larger --limit\n"
            done = await ann.run("release", "99999", number, last)
            assert (done.returncode, done.stdout) == (3, f"booking {last} is cancelled\n")
            assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [
                "booking 99999",
                f"booking {number}",
            ]

    asyncio.run(day())


def test_what_one_is_running_is_booked(tmp_path: Path) -> None:
    async def day() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await add_person(lab, "ann")
            await lab.report("n1", report_of(gpu(0), gpu(1), users={1: "ann"}))
            ann = Shell(lab, tmp_path / "ann")
            await ann.log_in("ann")
            assert "CUDA_VISIBLE_DEVICES=GPU-1\n" in await ann.good("book", "--running", "--for", "1h")

    asyncio.run(day())


def test_who_books_what_is_in_use_or_broken_is_told(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            await add_person(lab, "ann")
            ann = Shell(lab, tmp_path / "ann")
            await ann.log_in("ann")
            lost = gpu(1, uuid="gpu-1-without-uuid")
            await lab.report("n1", report_of(gpu(0), lost, gpu(2), users={0: "bob"}))
            done = await ann.run("book", "n1:0,1", "--for", "1h")
            assert (done.returncode, "\nCUDA_VISIBLE_DEVICES=GPU-0\n" in done.stdout) == (0, True), done
            first, second = done.stderr.splitlines()
            assert first.startswith("gpuherd: n1/0 is ")
            assert second.startswith("gpuherd: n1/1 ")
            later = await ann.run("book", "n1:0", "--start", "3h", "--for", "1h")
            assert (later.returncode, later.stderr) == (0, ""), "how it is now says nothing of then"

    asyncio.run(day())


def test_logging_in_goes_wrong(tmp_path: Path) -> None:
    async def day() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await add_person(lab, "vic", "viewer")
            vic = Shell(lab, tmp_path / "vic")
            wrong = await vic.run(
                "login", "--hub", vic.hub_url, "--name", "vic", "--password-file", "-", given="no"
            )
            assert wrong.returncode == 4
            assert not (vic.home / ".config").exists()
            assert "your role is viewer" in await vic.log_in("vic")
            assert "role member" in await vic.bad(4, "book", "2", "--for", "1h")

            (tmp_path / "token").write_text("ghu_" + "x" * 43)
            assert "other users can read it" in await vic.bad(
                1, "login", "--hub", vic.hub_url, "--token-file", f"{tmp_path}/token"
            )
            (tmp_path / "token").chmod(0o600)
            assert "does not accept this token" in await vic.bad(
                4, "login", "--hub", vic.hub_url, "--token-file", f"{tmp_path}/token"
            )
            assert "not encrypted" in await vic.bad(1, "login", "--hub", "http://192.0.2.7", "--name", "vic")
            # The token of one hub is never shown to another.
            elsewhere = await vic.run("bookings", "--mine", GPUHERD_HUB="http://127.0.0.1:9")
            assert (
                elsewhere.stderr == "gpuherd: http://127.0.0.1:9 cannot be reached: nothing listens there\n"
            )
            assert "removed" in await vic.good("login", "--forget")
            assert "you are not logged in on this machine" in await vic.good("login", "--forget")

    asyncio.run(day())
