"""Looking up names of nodes while the name server hangs."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

from gpuherd.sources import resolving
from gpuherd.sources.resolving import NodeResolver
from support.running import PATIENCE_SECONDS, until

ANSWER = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80))]


def test_a_name_is_looked_up() -> None:
    found = asyncio.run(NodeResolver().resolve("localhost", 80, socket.AF_INET))
    assert [(one["host"], one["port"]) for one in found] == [("127.0.0.1", 80)]
    with pytest.raises(socket.gaierror):
        asyncio.run(NodeResolver().resolve("nobody.invalid"))


def test_lookups_that_hang_are_given_up_and_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, begun = threading.Event(), []

    def hang(host: str, *_: Any, **__: Any) -> list[Any]:
        begun.append(host)
        answered.wait(PATIENCE_SECONDS)
        return ANSWER

    async def story() -> None:
        resolver = NodeResolver()
        for _ in range(3):
            with pytest.raises(OSError, match="does not respond"):
                await resolver.resolve("gpu1")
        assert len(begun) == 2, "no third thread before one of the two is back"
        answered.set()
        monkeypatch.setattr(resolving, "LOOKUP_SECONDS", 30.0)
        assert (await resolver.resolve("gpu1"))[0]["host"] == "192.0.2.1"

    monkeypatch.setattr(resolving, "LOOKUPS_AT_ONCE", 2)
    monkeypatch.setattr(resolving, "LOOKUP_SECONDS", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    asyncio.run(story())


def test_an_error_that_comes_too_late_bothers_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    complaints: list[Any] = []

    def fail(*_: Any, **__: Any) -> list[Any]:
        answered.wait(PATIENCE_SECONDS)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        resolver = NodeResolver()
        with pytest.raises(OSError, match="does not respond"):
            await resolver.resolve("gpu1")
        answered.set()
        await until(
            lambda: not any(thread.name == "look up node" for thread in threading.enumerate()), "it ends"
        )
        await asyncio.sleep(0)

    monkeypatch.setattr(resolving, "LOOKUP_SECONDS", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    asyncio.run(story())
    assert complaints == []


def test_a_lookup_that_hangs_does_not_hold_up_the_end_of_the_program() -> None:
    code = """
import asyncio, socket, time
socket.getaddrinfo = lambda *_, **__: time.sleep(60)
from gpuherd.sources import resolving
resolving.LOOKUP_SECONDS = 0.1
try:
    asyncio.run(resolving.NodeResolver().resolve("gpu1"))
except OSError as error:
    print(error)
"""
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert "does not respond" in told.stdout
