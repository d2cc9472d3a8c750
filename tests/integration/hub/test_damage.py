"""Damage of every file in the state folder: a hub starts, or says in one sentence what to do; and damage is said."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.hub import Hub
from gpuherd.api.records_care import RecordsCare, _counts
from gpuherd.fleet.clock import SystemClock
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.errors import Failed, GpuherdError, Misconfigured
from gpuherd.model.people import Viewer
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import open_records
from gpuherd.wiring.past import past_outfit
from support.booking_drafts import BY, NOW, START, A, draft
from support.doctor import doctors_words
from support.hub import NodeClient, eventually, get_json, node_client, running_hub
from support.soak import SOAK
from support.tally import Tally

SECTOR = 512
HEADER_BYTES = 100
"""Of an SQLite database."""
SAMPLED = 12
"""Cases of a usual run; the long form takes them all."""


class SetClock(SystemClock):
    """The machine's clocks, moved on by hand."""

    def __init__(self, passed_seconds: float) -> None:
        self.passed_seconds = passed_seconds

    def wall(self) -> float:
        return super().wall() + self.passed_seconds

    def monotonic(self) -> float:
        return super().monotonic() + self.passed_seconds


def past(folder: Path) -> dict[str, Any]:
    return {"past": past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), folder)}


def _flip(content: bytes, at: int) -> bytes:
    at = min(at, len(content) - 1)
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


def _sector(content: bytes, new: bytes) -> bytes:
    at = len(content) // 2 // SECTOR * SECTOR
    return content[:at] + new[: len(content) - at] + content[at + SECTOR :]


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "a byte early": lambda content: _flip(content, min(100, len(content) // 10)),
    "a byte in the middle": lambda content: _flip(content, len(content) // 2),
    "a byte late": lambda content: _flip(content, len(content) * 9 // 10),
    "a sector of zeros": lambda content: _sector(content, bytes(SECTOR)),
    "a sector of noise": lambda content: _sector(content, random.Random(1).randbytes(SECTOR)),  # noqa: S311
    "cut in half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "deleted": lambda content: None,
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a hub with a node, an account, a token, a booking and a past, as kill -9 would leave it."""
    base = tmp_path_factory.mktemp("damage")
    folder, killed = base / "live", base / "killed"

    async def live() -> None:
        clock = SetClock(-7200.0)
        async with running_hub(folder, hub_options={**past(folder), "clock": clock}) as hub:
            now, records = time.time(), hub.records
            account = records.people.create_account(name="ada", display_name="", role="admin", now=now, by=BY)
            records.people.add_token(
                id="t",
                digest="t",
                account_id=account.id,
                title="",
                scopes=["read"],
                created_at=now,
                expires_at=now + 1e6,
                by=BY,
            )
            records.nodes.add_token(digest="j", now=now, expires_at=now + 1e6, uses=5)
            records.bookings.create([draft(A)], now=now, by=BY)
            node = NodeClient(hub.url, (await hub.admit("n")).credential)
            await node.open()
            await node.describe()
            for _ in range(20):
                await node.wait_acked(await node.sample())
            clock.passed_seconds = 0.0  # two hours later, what was written down is put in its place
            await eventually(lambda: any(folder.glob("history/*/*.parquet")))
            records.bookings.create([draft(A, at=int(now) + 90_000)], now=now, by=BY)
            await node.wait_acked(await node.sample())
            await eventually(lambda: _is_noted(folder, hub))
            await asyncio.to_thread(shutil.copytree, folder, killed)
            await node.close()

    asyncio.run(live())
    return killed


def _is_noted(folder: Path, hub: Hub) -> bool:
    care = hub._care
    assert care is not None
    return (folder / "records-seen.json").exists() and care._noted == _counts(hub.records.engine)


async def _seen(hub: Hub, span: dict[str, str]) -> dict[str, object]:
    """Everything that a person would miss."""
    await eventually(lambda: _has_checked(hub))
    people = hub.records.people.load()
    account = next((account for account in people.accounts if account.name == "ada"), None)
    history = await get_json(f"{hub.url}api/v1/history/nodes/n", params=span)
    assert "subjects" in history or "detail" in history, history
    node = hub.node_view(Viewer(privacy="admin"), "n")
    return {
        "nodes": sorted(each.node_id for each in hub.fleet.node_health()),
        "bookings": hub.records.bookings.changed_after(0),
        "account": account,
        "tokens": () if account is None else hub.records.people.tokens(account.id, 0.0),
        "join tokens": hub.records.nodes.tokens(now=0.0),
        "audit": [(entry.action, entry.subject) for entry in hub.records.audit.search()],
        "last state": None if node is None else [device.facts.uuid for device in node.devices],
        "history": history.get("subjects"),
    }


def _has_checked(hub: Hub) -> bool:
    loops = {loop.name: loop for loop in hub.health().loops}
    return loops["check records"].rounds + loops["check records"].errors > 0


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


class Outcome:
    """What a hub made of a damaged folder."""

    def __init__(self, seen: dict[str, object] | None, said: list[str]) -> None:
        self.seen = seen
        self.said = said


def start(folder: Path, span: dict[str, str], caplog: pytest.LogCaptureFixture) -> Outcome:
    """Start a hub and look at everything; an error that is not a sentence for people is raised."""
    caplog.clear()

    async def look() -> Outcome:
        try:
            async with running_hub(folder, hub_options=past(folder), public="read") as hub:
                try:
                    seen = await _seen(hub, span)
                except GpuherdError as error:
                    return Outcome(None, [str(error)])
                reasons = [reason for reason in hub.health().reasons if "overloaded" not in reason]
                return Outcome(seen, [*reasons, *logged()])
        except GpuherdError as error:
            return Outcome(None, [str(error)])

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]

    return asyncio.run(look())


def cases(folder: Path) -> Iterator[tuple[Path, str]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    empty = sorted(path for path in folder.rglob("*") if path.is_file() and not path.stat().st_size)
    for path in files:
        yield from ((path.relative_to(folder), kind) for kind in DAMAGE)
    yield from ((path.relative_to(folder), "deleted") for path in empty)


@pytest.mark.chaos
@pytest.mark.promise("damage-is-said")
def test_damage_of_any_file_is_survived_or_said(
    used: Path, tmp_path: Path, tally: Tally, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    shutil.copytree(used, folder)
    until = int(time.time())
    span = {"from": _iso(until - 10_800), "to": _iso(until), "points": "500"}
    whole = start(folder, span, caplog)
    assert whole.seen is not None, whole.said
    assert whole.said == []
    assert "0.5" in repr(whole.seen["history"])
    chosen = list(cases(used))
    if SOAK == 1:
        chosen = random.Random(3).sample(chosen, SAMPLED)  # noqa: S311 - the same cases each time
    crashed: list[str] = []
    silent: list[str] = []
    journal: list[str] = []
    refused: list[str] = []
    for file, kind in chosen:
        shutil.rmtree(folder)
        shutil.copytree(used, folder)
        damaged = DAMAGE[kind]((folder / file).read_bytes())
        (folder / file).unlink() if damaged is None else (folder / file).write_bytes(damaged)
        case = f"{file}: {kind}"
        try:
            outcome = start(folder, span, caplog)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no sentence
            crashed.append(f"{case}: {type(error).__name__}: {error}")
            continue
        refused += outcome.said if outcome.seen is None else []
        if outcome.seen != whole.seen and not outcome.said:
            (journal if file.suffix == ".journal" else silent).append(
                f"{case}: {[key for key in whole.seen if (outcome.seen or {}).get(key) != whole.seen[key]]}"
            )
    tally.add(
        "damage of a file in the state folder",
        tries=len(chosen),
        held=len(chosen) - len(crashed) - len(silent) - len(journal),
        lost=len(silent) + len(journal),
        figure=f"{len(refused)} starts refused, {len(crashed)} crashes, {len(journal)} journals lost unsaid",
    )
    assert (crashed, silent) == ([], [])
    assert [said for said in refused if "gpuherd restore" not in said] == []


@pytest.mark.chaos
@pytest.mark.promise("damage-is-said")
def test_a_damaged_header_of_the_records_is_said_or_costs_nothing(tmp_path: Path, tally: Tally) -> None:
    original, file = tmp_path / "original.sqlite", tmp_path / "records.sqlite"
    with closing(BookingRecords(open_records(original))) as records:
        made = records.create([draft(A)], now=NOW, by=BY)
    content = original.read_bytes()
    silent: list[str] = []
    step, bits = (3, 1) if SOAK == 1 else (1, 8)
    flips = [(byte, bit) for byte in range(0, HEADER_BYTES, step) for bit in range(bits)]
    for byte, bit in flips:
        file.write_bytes(content[:byte] + bytes([content[byte] ^ 1 << bit]) + content[byte + 1 :])
        is_said = False
        try:
            with closing(BookingRecords(open_records(file))) as records:
                care = RecordsCare(records._engine, tmp_path)
                care.check(NOW)
                is_said = "gpuherd restore" in " ".join(notice.message for notice in care.notices())
                both = [*made, *records.create([draft(A, at=START + 7200)], now=NOW, by=BY)]
                is_whole = list(records.changed_after(0)) == both
        except (Failed, Misconfigured) as error:
            is_said |= "gpuherd restore" in str(error)
            is_whole = False
        if not (is_said or is_whole):
            silent.append(f"byte {byte}, bit {bit}")
        for part in tmp_path.glob("records.sqlite*"):
            part.unlink()
    tally.add("a bit of the header of records.sqlite", tries=len(flips), held=len(flips) - len(silent))
    assert silent == []


@pytest.mark.promise("damaged-state-set-aside")
def test_damage_that_shows_only_in_writing_is_said_and_mended(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    state = folder / "state.sqlite"

    async def report(boot_id: str) -> list[bool]:
        """Say whether notices, health and doctor speak of damage."""
        async with running_hub(folder) as hub:
            async with node_client(hub, "n", boot_id=boot_id) as node:
                await node.wait_acked(await node.sample())
            words = [
                word for word in await doctors_words(hub, tmp_path) if word.startswith("the hub is degraded")
            ]
            notices = [notice.message for notice in hub.notices()]
            return [
                "state.sqlite was damaged" in " ".join(each)
                for each in (notices, hub.health().reasons, words)
            ]

    assert asyncio.run(report("one")) == [False, False, False]
    content = bytearray(state.read_bytes())
    content[18] += 1  # the version of the format for writing: SQLite reads the file, but does not write it
    state.write_bytes(content)
    assert asyncio.run(report("two")) == [True, True, True]
    assert state.with_name("state.sqlite.damaged").exists()
    assert asyncio.run(report("three")) == [False, False, False]
