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
from support.hub import running_hub
from support.people import PASSWORD, QUICK, add_account, refresh
from support.running import PATIENCE_SECONDS

CROWDED = (
    "gpuherd: too many logins at once; try again in a moment\n"
    "  retrying for up to 60 s; press Ctrl-C to stop\n"
)


@contextlib.asynccontextmanager
async def crowded_hub(folder: Path) -> AsyncIterator[Hub]:
    """Run a hub that knows ann and checks no password until its crowd goes.

    Its passwords cost next to nothing: on a busy machine it would give up on others, and call that a crowd, too.
    """
    async with running_hub(folder) as hub:
        hub.reception._passwords = QUICK
        add_account(hub, "ann", password=PASSWORD)
        await refresh(hub)
        crowd(hub, most=0)
        yield hub


def crowd(hub: Hub, *, most: int) -> None:
    hub.reception._hashing._max_waiting = most


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
    async with asyncio.timeout(PATIENCE_SECONDS):
        return "".join([(await process.stderr.readline()).decode() for _ in range(2)])


@pytest.mark.parametrize(
    ("password", "code", "told"),
    [(PASSWORD, 0, ""), ("not it", 4, "gpuherd: wrong name or password\n")],
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
            out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
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
            out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
            assert (process.returncode, out, err) == (130, b"", b"")

    asyncio.run(story())
