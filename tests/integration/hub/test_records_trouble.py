"""Records that cannot be used: who runs the hub reads why, who knocks at it does not."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from gpuherd.api import errors
from gpuherd.api.errors import RECORDS_FAILED
from gpuherd.api.sparing_log import SparingLog
from gpuherd.auth.secrets import SESSION_PREFIX, new_secret
from gpuherd.records.database import records_file
from support.hub import eventually, running_hub
from support.people import PASSWORD, add_account, add_session, cookie, refresh


def take_away(state_dir: Path, *tables: str) -> None:
    with closing(sqlite3.connect(records_file(state_dir))) as records:
        for table in tables:
            records.execute(f"ALTER TABLE {table} RENAME TO lost_{table}")
        records.commit()


def test_only_the_log_and_admins_read_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "_sparing", SparingLog(errors.log))

    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            own = cookie(add_session(hub, add_account(hub, "root-of-all", "admin")).secret)
            await refresh(hub)
            async with http.get("api/v1/health", headers=own) as response:
                assert response.status == 200
            take_away(tmp_path, "login_sessions", "accounts", "people_revision")
            stranger = cookie(new_secret(SESSION_PREFIX))
            login = {"name": "ada", "password": PASSWORD}
            for request in (
                http.get("api/v1/fleet", headers=stranger),
                http.get("api/v1/stream", headers=stranger),
                http.post("api/v1/session", json=login),
            ):
                async with request as response:
                    assert response.status == 503
                    assert (await response.json())["error"] == {
                        "code": "unavailable",
                        "message": RECORDS_FAILED,
                    }
            await eventually(lambda: hub.health().status == "degraded")
            async with http.get("api/v1/health", headers=own) as response:
                assert "no such table" in str((await response.json())["reasons"])

    asyncio.run(story())
    told = [record.getMessage() for record in caplog.records if record.name == "gpuherd.api.errors"]
    assert len(told) == 1
    assert "no such table" in told[0]
