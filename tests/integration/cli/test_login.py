"""gpuherd login as a process of its own, at a real hub where too many log in at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpuherd.api.hub import Hub
from gpuherd.auth.passwords import Passwords
from gpuherd.model.people import Actor
from support.hub import running_hub

PASSWORD = "correct horse battery"
CROWDED = (
    "gpuherd: too many logins at a time; try again in a moment\n"
    "  trying again by itself for up to 60 s; Ctrl-C ends it\n"
)


@contextlib.asynccontextmanager
async def crowded_hub(folder: Path) -> AsyncIterator[Hub]:
    """Run a hub that knows ann and checks no password until its crowd goes."""
    async with running_hub(folder) as hub:
        await asyncio.to_thread(
            hub.records.people.create_account,
            name="ann",
            display_name="Ann",
            role="member",
            password_hash=Passwords(rounds=1, memory_kib=8192).hash(PASSWORD),
            now=hub.clock.wall(),
            by=Actor(account_id=None, label="test"),
        )
        await hub._entered.identity.refresh()
        crowd(hub, most=0)
        yield hub


def crowd(hub: Hub, *, most: int) -> None:
    hub._entered.reception._hashing._max_waiting = most


async def login(hub: Hub, home: Path, password: str) -> Process:
    kept = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV") if name in os.environ}
    arguments = ("login", "--hub", hub.url, "--name", "ann", "--password-file", "-")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gpuherd", *arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**kept, "HOME": str(home)},
    )
    assert process.stdin is not None
    process.stdin.write(password.encode())
    process.stdin.close()
    return process


async def said(process: Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(30):
        return "".join([(await process.stderr.readline()).decode() for _ in range(2)])


@pytest.mark.parametrize(
    ("password", "code", "told"),
    [(PASSWORD, 0, ""), ("not it", 4, "gpuherd: the name or the password is wrong\n")],
)
def test_a_crowd_is_waited_for_and_a_wrong_password_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, code: int, told: str
) -> None:
    monkeypatch.setattr("gpuherd.api.reception.CROWDED_SECONDS", 1)

    async def story() -> None:
        async with crowded_hub(tmp_path / "hub") as hub:
            process = await login(hub, tmp_path, password)
            assert await said(process) == CROWDED
            crowd(hub, most=32)
            out, err = await asyncio.wait_for(process.communicate(), 30)
            assert process.returncode == code, err
            assert err.decode().startswith(told)
            assert (b"logged in to" in out) is (code == 0)
            assert len(hub.records.audit.search(action="login.failed")) == bool(code)

    asyncio.run(story())


def test_an_interrupt_ends_the_waiting(tmp_path: Path) -> None:
    async def story() -> None:
        async with crowded_hub(tmp_path / "hub") as hub:
            process = await login(hub, tmp_path, PASSWORD)
            assert await said(process) == CROWDED
            process.send_signal(signal.SIGINT)
            out, err = await asyncio.wait_for(process.communicate(), 10)
            assert (process.returncode, out, err) == (130, b"", b"")

    asyncio.run(story())
