"""A database that stands still: those who are in stay in, others get a clear answer, and it heals by itself."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import aiohttp

from gpuherd.auth.secrets import SESSION_PREFIX, new_secret
from support.hub import eventually, impatient, running_hub
from support.people import PASSWORD, add_account, add_session, cookie, error_code, refresh, until_known
from support.postgresql import Postgresql
from support.running import PATIENCE_SECONDS

CROWD = 300


def test_a_frozen_database_is_no_matter_for_those_who_look(tmp_path: Path, postgresql: Postgresql) -> None:
    async def story(records_url: str) -> None:
        others = set(threading.enumerate())  # of hubs that ended before; some may still wait
        async with (
            running_hub(tmp_path, records_url=records_url) as hub,
            aiohttp.ClientSession(hub.url) as http,
        ):
            account = add_account(hub, "ada", password=PASSWORD)
            await refresh(hub)
            session = add_session(hub, account)
            own = cookie(session.secret)
            async with http.get("api/v1/stream", headers=own) as stream:
                await stream.content.readuntil(b"\n\n")
                await until_known(hub, http, own, session.secret)
                with postgresql.frozen(), impatient(hub):
                    await _while_frozen(http, own, stream, others)
                assert await stream.content.readuntil(b"\n\n")
            body = {"name": "ada", "password": PASSWORD}

            async def logs_in() -> bool:
                async with http.post("api/v1/session", json=body) as response:
                    return response.status == 201

            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await logs_in():  # noqa: ASYNC110 - the answer has no event
                    await asyncio.sleep(0.2)
            assert await eventually(lambda: hub.health().status == "ok")

    with postgresql.database(migrated=True) as url:
        asyncio.run(story(url))


async def _while_frozen(
    http: aiohttp.ClientSession,
    own: dict[str, str],
    stream: aiohttp.ClientResponse,
    others: set[threading.Thread],
) -> None:
    async def ask(headers: dict[str, str]) -> int:
        async with http.get("api/v1/fleet", headers=headers) as response:
            return response.status

    async with http.post("api/v1/session", json={"name": "ada", "password": PASSWORD}) as response:
        assert (response.status, await error_code(response)) == (503, "unavailable")
    # More strangers with keys that would have to be looked up than may wait, all at a time.
    async with asyncio.timeout(PATIENCE_SECONDS):
        statuses = await asyncio.gather(*(ask(cookie(new_secret(SESSION_PREFIX))) for _ in range(CROWD)))
    assert set(statuses) == {503}
    names = [thread.name for thread in threading.enumerate() if thread not in others]
    assert sum(name.startswith("records ") for name in names) <= 4
    assert await ask(own) == 200
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(3):
            assert await stream.content.readuntil(b"\n\n")
