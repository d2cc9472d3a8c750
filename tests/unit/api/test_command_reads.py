"""That an admin has read other people's command lines is in the audit log, once an hour."""

from __future__ import annotations

import asyncio

import pytest

from gpuherd.api.command_reads import CommandReads
from gpuherd.model.errors import Failed
from gpuherd.model.people import Account, Viewer
from gpuherd.records.audit import Deed
from support.herd import ManualClock

ROOT = Account(id="r", name="root", display_name="Root", role="admin")
ADMIN = Viewer(privacy="admin", account=ROOT, peer="192.0.2.7")


class Log:
    def __init__(self) -> None:
        self.deeds: list[Deed] = []
        self.is_broken = False

    async def append(self, deeds: list[Deed]) -> None:
        if self.is_broken:
            raise Failed("no database")
        self.deeds += deeds


@pytest.mark.promise("admin-reads-are-logged")
def test_looks_are_written_once_an_hour_for_each_admin_and_thing() -> None:
    clock, log = ManualClock(), Log()
    reads = CommandReads(clock, is_public=False)
    for minute in range(130):
        clock.now = 1000.0 + 60 * minute
        reads.note_stream(ADMIN)
        reads.note_node(ADMIN, "n1")
        reads.note_node(ADMIN, "n2")
    asyncio.run(reads.write(log.append))
    assert [deed.subject for deed in log.deeds] == ["live view", "n1", "n2"] * 3
    first = log.deeds[0]
    assert (first.action, first.by.account_id, first.by.peer) == ("command_lines.read", "r", "192.0.2.7")
    asyncio.run(reads.write(log.append))
    assert len(log.deeds) == 9


@pytest.mark.parametrize(
    "viewer",
    [
        Viewer(privacy="member", account=ROOT),
        Viewer(privacy="admin"),
        Viewer(privacy="public"),
    ],
)
def test_who_reads_no_command_lines_of_others_is_not_noted(viewer: Viewer) -> None:
    reads, log = CommandReads(ManualClock(), is_public=False), Log()
    reads.note_stream(viewer)
    reads.note_herd(viewer)
    asyncio.run(reads.write(log.append))
    assert log.deeds == []


def test_where_everyone_reads_them_nothing_is_noted() -> None:
    reads, log = CommandReads(ManualClock(), is_public=True), Log()
    reads.note_stream(ADMIN)
    asyncio.run(reads.write(log.append))
    assert log.deeds == []


def test_what_could_not_be_written_is_written_later() -> None:
    reads, log = CommandReads(ManualClock(), is_public=False), Log()
    reads.note_herd(ADMIN)
    log.is_broken = True
    with pytest.raises(Failed):
        asyncio.run(reads.write(log.append))
    log.is_broken = False
    asyncio.run(reads.write(log.append))
    assert [deed.subject for deed in log.deeds] == ["herd"]
