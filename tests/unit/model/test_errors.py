"""What the system says of a connection that fails is passed on, not how a library puts it."""

from __future__ import annotations

import asyncio
import errno
import ssl

import aiohttp
import pytest

from gpuherd.model.errors import system_reason
from support.running import free_port


async def _open(port: int) -> None:
    await asyncio.open_connection("127.0.0.1", port)


async def _get(port: int) -> None:
    async with aiohttp.ClientSession() as session:
        await session.get(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("connect", [_open, _get])
def test_nobody_listens(connect: object) -> None:
    assert callable(connect)
    with pytest.raises(OSError, match="Connect call failed") as failed:
        asyncio.run(connect(free_port()))
    assert system_reason(failed.value) == "Connection refused"


def test_other_words_stay() -> None:
    assert system_reason(OSError(errno.EHOSTUNREACH, "No route to host")) == "No route to host"
    assert system_reason(OSError("own words")) == "own words"
    assert system_reason(ssl.SSLError(1, "not of the system")) == "not of the system"
    assert system_reason(TimeoutError()) == "TimeoutError"
