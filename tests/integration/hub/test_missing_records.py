"""Records that are gone, older or damaged: a hub says so, and does not pass for a new one."""

from __future__ import annotations

import asyncio
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from click.testing import CliRunner
from sqlalchemy import text

from gpuherd.api.hub import Hub
from gpuherd.api.open_records import OpenRecords, open_hub_records
from gpuherd.api.records_care import CHECKPOINT_SECONDS, MISSING, RecordsCare, _counts
from gpuherd.api.settings import HubSettings
from gpuherd.cli.hub import command
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.model.people import Actor
from gpuherd.records.audit import Deed
from gpuherd.records.backup import restore_backup, write_backup
from gpuherd.records.sqlite_file import SqliteFile
from gpuherd.wiring.past import past_outfit
from support.doctor import doctors_words
from support.hub import NodeClient, eventually, get_json, running_hub
from support.tally import Tally

BY = Actor(account_id=None, label="test")


def remembering(state_dir: Path) -> dict[str, Any]:
    return {"past": past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), state_dir)}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a hub that had a node and an account."""
    folder = tmp_path_factory.mktemp("used")

    async def live() -> None:
        async with running_hub(folder, hub_options=remembering(folder)) as hub:
            assert hub.notices() == ()
            assert await hub.setup_link() is not None
            enrolled = await hub.admit("n")
            node = NodeClient(hub.url, enrolled.credential)
            await node.open()
            await node.describe()
            await node.wait_acked(await node.sample())
            await node.close()
            hub.records.people.create_account(
                name="ada", display_name="", role="admin", now=time.time(), by=BY
            )

    asyncio.run(live())
    return folder


@pytest.fixture
def folder(used: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(used, tmp_path / "state"))


def lose_records(folder: Path) -> None:
    for part in folder.glob("records.sqlite*"):
        part.unlink()


@pytest.mark.chaos
@pytest.mark.promise("missing-records-are-said")
@pytest.mark.parametrize(
    "also_lost",
    [
        [],
        ["state.sqlite", "history"],
        ["records-seen.json"],
        ["records-seen.json", "state.sqlite"],
        ["records-seen.json", "history"],
    ],
)
def test_a_hub_whose_records_are_gone_says_so_until_they_are_back_or_given_up(
    folder: Path, also_lost: list[str], tally: Tally, caplog: pytest.LogCaptureFixture
) -> None:
    def lose() -> None:
        for name in also_lost:
            part = folder / name
            shutil.rmtree(part) if part.is_dir() else part.unlink()

    async def start(is_missing: bool) -> None:
        caplog.clear()
        async with running_hub(folder, hub_options=remembering(folder), public="off") as hub:
            assert (MISSING in caplog.messages) == is_missing
            session = await get_json(f"{hub.url}api/v1/session")
            link = await hub.setup_link()
            told.append(hub.are_records_missing == is_missing)
            assert hub.are_records_missing == is_missing
            assert session["are_records_missing"] == is_missing
            assert (MISSING in hub.health().reasons) == is_missing
            assert [notice.message for notice in hub.notices()] == [MISSING] * is_missing
            assert (link is None) == is_missing
            words = await doctors_words(hub, folder.parent)
            assert [word for word in words if "database is empty" in word] == [
                f"the hub is degraded: {MISSING}"
            ] * is_missing
            if is_missing:
                with pytest.raises(Refused, match="the database is empty"):
                    await hub.admit("n")
                await _rounds(hub)

    told: list[bool] = []
    lose_records(folder)
    lose()
    arguments = ["--state-dir", str(folder)]
    for _ in range(2):  # what it knows by is not forgotten meanwhile
        asyncio.run(start(is_missing=True))
    begun = CliRunner().invoke(command, [*arguments, "start-afresh"])
    assert begun.exit_code == 0, begun.output
    asyncio.run(start(is_missing=False))
    tally.add("records deleted: said at each start", tries=3, held=sum(told))


async def _rounds(hub: Hub) -> None:
    """Wait until every loop that looks after records and last states has gone round."""

    def have_gone() -> bool:
        loops = {loop.name: loop.rounds for loop in hub.health().loops}
        return loops["check the database"] > 0 and loops["keep last state"] > 1

    await eventually(have_gone)


@pytest.mark.promise("missing-records-are-said")
def test_a_hub_whose_records_are_gone_is_not_open_like_a_new_one(folder: Path) -> None:
    async def shown() -> str | None:
        async with running_hub(folder, hub_options=remembering(folder)) as hub:
            session = await get_json(f"{hub.url}api/v1/session")
            return cast("str | None", session["privacy"])

    assert asyncio.run(shown()) is None
    lose_records(folder)
    assert asyncio.run(shown()) is None, "without accounts, it shows what only people with one could see"


def test_a_set_up_link_is_not_offered_and_starting_afresh_is_refused_where_it_is_wrong(folder: Path) -> None:
    arguments = ["--state-dir", str(folder)]
    refused = CliRunner().invoke(command, [*arguments, "start-afresh"])
    assert isinstance(refused.exception, Refused)
    assert "nothing was changed" in str(refused.exception)
    lose_records(folder)
    refused = CliRunner().invoke(command, [*arguments, "setup-link"])
    assert isinstance(refused.exception, Refused)
    assert str(refused.exception) == MISSING
    good = folder / "nightly.backup"
    good.write_bytes(b"the last good one")
    refused = CliRunner().invoke(command, [*arguments, "backup", str(good)])
    assert isinstance(refused.exception, Refused)
    assert (str(refused.exception), good.read_bytes()) == (MISSING, b"the last good one")

    async def beside_a_running_hub() -> None:
        async with running_hub(folder):
            running = await asyncio.to_thread(CliRunner().invoke, command, [*arguments, "start-afresh"])
            assert isinstance(running.exception, Misconfigured)
            assert "another hub runs" in str(running.exception)

    asyncio.run(beside_a_running_hub())


def test_a_backup_ends_it(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backup = tmp_path / "backup"
    write_backup(folder / "records.sqlite", backup)
    lose_records(folder)
    restored = CliRunner().invoke(command, ["--state-dir", str(folder), "restore", str(backup)])
    assert restored.exit_code == 0, restored.output

    async def start() -> None:
        async with running_hub(folder, hub_options=remembering(folder)) as hub:
            assert hub.notices() == ()
            assert [node.node_id for node in hub.fleet.node_health()] == ["n"]

    asyncio.run(start())
    asyncio.run(start())
    (line,) = (message for message in caplog.messages if "restored" in message)
    assert line.startswith("the database was restored from a backup of 20")


@pytest.fixture
def records(folder: Path) -> Iterator[OpenRecords]:
    with closing(open_hub_records(HubSettings(state_dir=folder))) as records:
        yield records


@pytest.mark.promise("missing-records-are-said")
def test_records_that_lack_the_last_changes_are_told(folder: Path, records: OpenRecords) -> None:
    care = RecordsCare(records.engine, folder)
    care.open((), time.time())
    assert care.notices() == ()
    older = folder / "older"
    shutil.copy(folder / "records.sqlite", older)
    records.people.create_account(name="bob", display_name="", role="member", now=time.time(), by=BY)
    care.look()
    records.close()
    lose_records(folder)
    older.rename(folder / "records.sqlite")
    with closing(open_hub_records(HubSettings(state_dir=folder))) as again:
        care = RecordsCare(again.engine, folder)
        care.open((), time.time())
        assert [notice.code for notice in care.notices()] == ["records_older"]
        assert not care.is_missing
        care.look()  # from now on these are the records
        care = RecordsCare(again.engine, folder)
        care.open((), time.time())
        assert care.notices() == ()


@pytest.mark.promise("missing-records-are-said")
def test_an_audit_log_that_lacks_its_last_entries_is_told(folder: Path, records: OpenRecords) -> None:
    records.audit.append([Deed("read", "", "", BY, time.time())])
    care = RecordsCare(records.engine, folder)
    care.open((), time.time())
    care.look()
    with records.engine.begin() as connection:
        connection.execute(text("DROP TRIGGER audit_kept"))
        connection.execute(text("DELETE FROM audit WHERE action = 'read'"))
    care = RecordsCare(records.engine, folder)
    care.open((), time.time())
    assert [notice.code for notice in care.notices()] == ["records_older"]


def test_a_note_of_the_last_release_is_read(folder: Path, records: OpenRecords) -> None:
    numbers = list(msgspec.structs.astuple(_counts(records.engine)))[:3]
    checksum = zlib.crc32(msgspec.json.encode(numbers))
    (folder / "records-seen.json").write_bytes(msgspec.json.encode({"counts": numbers, "checksum": checksum}))
    care = RecordsCare(records.engine, folder)
    care.open((), time.time())
    assert care._noted is not None
    assert (care._noted.audit, care.notices()) == (0, ())


@pytest.mark.promise("full-disk-start")
def test_a_log_that_cannot_be_emptied_stops_no_start(
    folder: Path, records: OpenRecords, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def is_full(_: SqliteFile) -> bool:
        raise Failed("cannot write records.sqlite: database or disk is full; free some space")

    monkeypatch.setattr(SqliteFile, "checkpoint", is_full)
    care = RecordsCare(records.engine, folder)
    care.open((), time.time())
    assert (care.is_missing, care.notices()) == (False, ())
    assert "free some space" in caplog.text


@pytest.mark.promise("log-emptied-every-minute")
def test_the_log_is_emptied_at_the_start_and_every_minute(folder: Path, records: OpenRecords) -> None:
    log, now = folder / "records.sqlite-wal", 0.0
    care = RecordsCare(records.engine, folder, monotonic=lambda: now)

    def change(name: str) -> None:
        records.people.create_account(name=name, display_name="", role="member", now=time.time(), by=BY)
        assert log.stat().st_size > 0

    change("bob")
    care.open((), time.time())
    assert log.stat().st_size == 0
    change("eve")
    care.look()
    assert log.stat().st_size > 0
    now += CHECKPOINT_SECONDS
    care.look()
    assert log.stat().st_size == 0


def test_damaged_records_name_the_remedy_and_can_be_restored_over(folder: Path, tmp_path: Path) -> None:
    file, backup = folder / "records.sqlite", tmp_path / "backup"
    write_backup(file, backup)
    file.write_bytes(b"x" * 100_000)
    with pytest.raises(Misconfigured, match="gpuherd restore FILE --replace"):
        open_hub_records(HubSettings(state_dir=folder))
    restore_backup(backup, file, replace=True)
    with closing(open_hub_records(HubSettings(state_dir=folder))) as records:
        assert records.people.account_by_name("ada") is not None
    assert (folder / "records.sqlite.damaged").read_bytes() == b"x" * 100_000
