"""Someone at a shell who picks, waits for and runs on GPUs of a real hub, each command a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from gpuherd.client import Login, LoginFile
from gpuherd.model.reports import Report
from support.booking_hub import Booker, BookingHub, booking_hub, report_of
from support.herd import gpu
from support.hub import eventually
from support.running import PATIENCE_SECONDS

__all__ = ["Chooser", "Command", "LossyWay", "Terminal", "living_hub", "lossy_way"]

REPOSITORY = Path(__file__).parents[2]
_PR_SET_PDEATHSIG = 1
_LEAD = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def _die_with_the_test() -> None:
    """A test that fails, or is killed, leaves no command behind that waits for ever."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Command:
    """A command that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""
        self.told = ""
        assert process.stdout is not None
        assert process.stderr is not None
        self._reading = [
            asyncio.create_task(self._read(process.stdout, "said")),
            asyncio.create_task(self._read(process.stderr, "told")),
        ]

    async def _read(self, stream: asyncio.StreamReader, name: str) -> None:
        while chunk := await stream.read(4096):
            setattr(self, name, getattr(self, name) + chunk.decode())

    async def until_said(self, text: str) -> None:
        """Wait for something on stdout."""
        await eventually(lambda: text in self.said or self.process.returncode is not None)
        assert text in self.said, (self.said, self.told)

    async def until_told(self, text: str) -> None:
        """Wait for something on stderr."""
        await eventually(lambda: text in self.told or self.process.returncode is not None)
        assert text in self.told, (self.said, self.told)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def end(self) -> int:
        """Wait for its end and give its exit code, as the system tells it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await self.process.wait()
            await asyncio.gather(*self._reading)
        assert "Traceback" not in self.told, self.told
        return code


class Terminal:
    """A command that leads a terminal of its own."""

    def __init__(self, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LEAD, sys.executable, "-m", "gpuherd", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, **environment, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""
        self._reading = asyncio.create_task(asyncio.to_thread(self._read))

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other side is gone
            while chunk := os.read(self._ours, 4096):
                self.shown += chunk.decode()

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    async def until_shown(self, text: str) -> None:
        await eventually(lambda: text in self.shown or self._reading.done())
        assert text in self.shown, self.shown

    async def end(self) -> int:
        """Wait for its end and give its exit code."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await asyncio.to_thread(self._process.wait)
            await self._reading
        os.close(self._ours)
        return code


def _cards(folder: Path, uuids: tuple[str, ...]) -> dict[str, str]:
    """The environment of a machine with these GPUs, simulated."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    scenario = json.loads((SCENARIOS / "healthy.json").read_text())
    scenario["gpus"] = [{**plan, "uuid": uuid} for plan, uuid in zip(scenario["gpus"], uuids, strict=False)]
    file = folder / "cards.json"
    file.write_text(json.dumps(scenario))
    return simulator_environment(build_library(REPOSITORY / "build/sim"), file, {})


class Chooser:
    """Someone's home on some machine, which may have (simulated) GPUs."""

    def __init__(
        self, lab: BookingHub, folder: Path, person: Booker | None = None, *, cards: tuple[str, ...] = ()
    ) -> None:
        self.home = folder / "home"
        self.locks = folder / "locks"
        self.home.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "HOME": str(self.home),
            "TZ": "Europe/Paris",
            "GPUHERD_HUB": lab.hub.url,
            "GPUHERD_LOCK_DIR": str(self.locks),
            **(_cards(folder, cards) if cards else {}),
        }
        if person is not None and person.token is not None:
            login = Login(hub=lab.hub.url, token=person.token)
            LoginFile(self.home / ".config/gpuherd/token").save(login)

    def by_way(self, way: LossyWay, person: Booker) -> dict[str, str]:
        """Go another way to the hub, as the same person."""
        assert person.token is not None
        LoginFile(self.home / ".config/gpuherd/token").save(Login(hub=way.url, token=person.token))
        return {"GPUHERD_HUB": way.url}

    async def start(self, *arguments: str, **environment: str) -> Command:
        kept = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV") if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gpuherd",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**kept, **self.environment, **environment},
            preexec_fn=_die_with_the_test,
        )
        return Command(process)

    def at_a_terminal(self, *arguments: str, **environment: str) -> Terminal:
        return Terminal(arguments, {**self.environment, **environment})

    async def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Give exit code, stdout and stderr."""
        command = await self.start(*arguments, **environment)
        code = await command.end()
        return code, command.said, command.told


@contextlib.asynccontextmanager
async def living_hub(state_dir: Path, **options: Any) -> AsyncIterator[BookingHub]:
    """A ``booking_hub`` whose nodes go on to report what they reported last, however long a busy machine takes."""
    async with booking_hub(state_dir, **options) as lab:
        reports = {"n1": report_of(*(gpu(index) for index in range(4))), "n2": report_of(gpu(0), gpu(1))}
        report_once = lab.report

        async def report_and_go_on(name: str, told: Report) -> None:
            reports[name] = told
            await report_once(name, told)

        async def go_on() -> None:
            while True:
                await asyncio.sleep(2.0)
                for name, told in reports.items():
                    if lab.hub.fleet.has_node(name):
                        sample = structs.replace(told.sample, time=time.time())
                        lab.hub.fleet.accept_report(name, structs.replace(told, sample=sample))

        lab.report = report_and_go_on  # type: ignore[method-assign, assignment]
        going_on = asyncio.create_task(go_on())
        try:
            yield lab
        finally:
            going_on.cancel()


class LossyWay:
    """A way to the hub on which answers to bookings may get lost."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("http://").rstrip("/").partition(":")
        self._target = (host, int(port))
        self.is_losing = False
        self.lost = 0
        self.is_holding = False
        self.held = 0
        self._way_is_clear = asyncio.Event()
        self.url = ""

    def let_go(self) -> None:
        """Let answers that are held go on."""
        self._way_is_clear.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one exchange."""
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line for line in head.lower().splitlines() if line.startswith(b"content-length")]
                length = int(lengths[0].partition(b":")[2]) if lengths else 0
                body = await reader.readexactly(length)
                up_reader, up_writer = await asyncio.open_connection(*self._target)
                up_writer.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body)
                answer = await up_reader.read()
                up_writer.close()
                is_booking = head.startswith(b"POST /api/v1/bookings HTTP") and b"dry_run" not in body
                if is_booking and self.is_losing:
                    self.lost += 1
                    self.is_losing = False
                    return
                if is_booking and self.is_holding:
                    self.held += 1
                    await self._way_is_clear.wait()
                writer.write(answer)
                await writer.drain()
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def lossy_way(target: str) -> AsyncIterator[LossyWay]:
    way = LossyWay(target)
    server = await asyncio.start_server(way.carry, "127.0.0.1", 0)
    way.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server:
        yield way
