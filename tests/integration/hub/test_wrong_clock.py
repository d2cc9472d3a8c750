"""A hub that is started with a wrong clock deletes nothing that it would keep by the right one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from gpuherd.api.hub import Hub
from gpuherd.fleet.clock import SystemClock
from gpuherd.model.people import Actor
from gpuherd.records.audit import Deed
from support.hub import eventually, running_hub
from support.tally import Tally

DAY = 86_400.0
BY = Actor(account_id=None, label="test")
AHEAD_DAYS = 1100
AUDIT_DAYS = 1200
"""Kept so long, an entry of 150 days ago is old for a clock that is ahead, and young for the right one."""


class SetClock(SystemClock):
    """The machine's clocks, with another wall clock, and moved on by hand."""

    def __init__(self, ahead_seconds: float) -> None:
        self.ahead_seconds = ahead_seconds
        self.passed_seconds = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead_seconds + self.passed_seconds

    def monotonic(self) -> float:
        return super().monotonic() + self.passed_seconds


def there(hub: Hub, account_id: str) -> tuple[int, int, int, int]:
    """Count old audit entries, sessions, API tokens and join tokens."""
    records, then = hub.records, 0.0
    return (
        len(records.audit.search(action="old")),
        len(records.people.sessions(account_id, then)),
        len(records.people.tokens(account_id, then)),
        len(records.nodes.tokens(now=then)),
    )


def fill(hub: Hub) -> str:
    """Make what a clock that is ahead would delete: an old entry, a session and tokens that end in a month."""
    now, records = time.time(), hub.records
    records.audit.append([Deed("old", "", "", BY, now - 150 * DAY)])
    account = records.people.create_account(name="ada", display_name="", role="admin", now=now, by=BY)
    keys = {"account_id": account.id, "created_at": now, "expires_at": now + 30 * DAY}
    records.people.add_session(id="s", digest="s", peer="", agent="", **keys)  # type: ignore[arg-type]
    records.people.add_token(id="t", digest="t", title="", scopes=["read"], by=BY, **keys)  # type: ignore[arg-type]
    records.nodes.add_token(digest="j", now=now, expires_at=now + 30 * DAY, uses=5)
    return account.id


@pytest.mark.chaos
@pytest.mark.promise("wrong-clock-deletes-nothing")
def test_a_start_with_a_clock_that_is_years_ahead_deletes_nothing(tmp_path: Path, tally: Tally) -> None:
    async def start(clock: SetClock, account_id: str | None) -> tuple[str, tuple[int, int, int, int]]:
        async with running_hub(tmp_path, hub_options={"clock": clock}, audit_days=AUDIT_DAYS) as hub:
            account_id = account_id or fill(hub)
            await eventually(lambda: _rounds(hub) >= 1)
            # Someone logs in and makes a token meanwhile: no reason to delete those of others.
            now = clock.wall()
            keys = {"account_id": account_id, "created_at": now, "expires_at": now + 60}
            name = f"at {clock.ahead_seconds:.0f}"
            hub.records.people.add_token(id=name, digest=name, title="", scopes=["read"], by=BY, **keys)  # type: ignore[arg-type]
            hub.records.people.end_token(name, account_id=account_id, now=now, by=BY)
            return account_id, there(hub, account_id)

    async def story() -> None:
        account_id, before = await start(SetClock(0.0), None)
        _, ahead = await start(SetClock(AHEAD_DAYS * DAY), account_id)
        _, after = await start(SetClock(0.0), account_id)
        lost = sum(before) - sum(after)
        tally.add("start with a clock 1,100 days ahead", tries=sum(before), held=sum(after), lost=lost)
        assert before == ahead == after == (1, 1, 1, 1)

    asyncio.run(story())


@pytest.mark.promise("wrong-clock-deletes-nothing")
def test_what_is_old_goes_once_the_clock_has_run_evenly(tmp_path: Path) -> None:
    async def story() -> None:
        clock = SetClock(0.0)
        async with running_hub(tmp_path, hub_options={"clock": clock}, audit_days=100) as hub:
            account_id = fill(hub)
            await eventually(lambda: _rounds(hub) >= 1)
            assert there(hub, account_id) == (1, 1, 1, 1)
            clock.passed_seconds += 3601
            await hub.forget_old()
            assert there(hub, account_id) == (0, 1, 1, 1)
            clock.ahead_seconds += 31 * DAY  # a step: an hour of patience once more
            await hub.forget_old()
            assert there(hub, account_id) == (0, 1, 1, 1)
            clock.passed_seconds += 3601
            await hub.forget_old()
            assert there(hub, account_id) == (0, 0, 0, 0)

    asyncio.run(story())


def _rounds(hub: Hub) -> int:
    (loop,) = [loop for loop in hub.health().loops if loop.name == "delete old data"]
    assert loop.errors == 0, loop.last_error
    return loop.rounds
