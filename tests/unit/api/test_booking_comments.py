"""What a hub makes of a comments.json that it writes, and of the names in one that it reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from gpuherd.api.booking_comments import (
    FIRST_NODE_SECONDS,
    STATE_NAME,
    CommentsExport,
    CommentsWatch,
    _read_state,
    find_owner,
)
from gpuherd.api.record_calls import RecordCalls
from gpuherd.bookings.comments_sync import CommentsSync, Owner, Placed, SyncOutcome
from gpuherd.bookings.herd import Herd
from gpuherd.model.bookings import PAST_SHOWN_SECONDS, Booking
from support.booking_desk import a100, herd_of, person
from support.herd import ManualClock

ANN = {"name": "ann", "date": "2027-01-01 10:00", "comment": "x"}
BOB = {"name": "bob", "date": "2027-01-02 10:00", "comment": ""}
NOBODY = {"name": "", "date": "", "comment": ""}
UTC = ZoneInfo("UTC")


class Known:
    """A hub without bookings, whose nodes report one after the other."""

    def __init__(self) -> None:
        self.devices = herd_of()

    def bookings(self) -> list[Booking]:
        return []

    def herd(self) -> Herd:
        return self.devices


class Export:
    """A hub that has just been started, beside a file."""

    def __init__(self, folder: Path, content: object) -> None:
        self.file = folder / "comments.json"
        self.file.write_text(content if isinstance(content, str) else json.dumps(content))
        self.known, self.clock = Known(), ManualClock()
        self._export = CommentsExport(self.file, zone=UTC, known=self.known, clock=self.clock)

    def look(self) -> object:
        asyncio.run(self._export.look())
        return json.loads(self.file.read_bytes())


def test_a_start_takes_nothing_out_of_the_file_before_its_node_has_been_seen(tmp_path: Path) -> None:
    content = {"gpu01.lab": [NOBODY, ANN], "gpu02": [BOB]}
    export = Export(tmp_path, content)
    assert export.look() == content
    export.clock.advance(FIRST_NODE_SECONDS)
    assert export.look() == content
    export.known.devices = herd_of(a100("gpu02", 0, node_name="gpu02"))
    assert export.look() == {"gpu02": [], "gpu01.lab": [NOBODY, ANN]}
    export.known.devices = herd_of()  # seen once, it is known to have no bookings
    assert export.look() == {"gpu01.lab": [NOBODY, ANN]}
    export.known.devices = herd_of(a100("gpu01.lab", 0, node_name="Shown Otherwise"))
    assert export.look() == {"gpu01.lab": []}


def test_what_is_long_over_does_not_stay(tmp_path: Path) -> None:
    export = Export(tmp_path, {"gpu01": [ANN], "gpu02": [BOB]})
    export.known.devices = herd_of(a100("gpu03", 0, node_name="gpu03"))
    export.clock.wall_offset = 1_798_797_600.0 + PAST_SHOWN_SECONDS - export.clock.now  # ann's end
    assert export.look() == {"gpu03": [], "gpu02": [BOB]}


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_file_that_is_none_is_written_anew(tmp_path: Path, content: str) -> None:
    export = Export(tmp_path, content)
    export.known.devices = herd_of(a100("gpu01", 0, node_name="gpu01"))
    assert export.look() == {"gpu01": []}
    copies = [file.read_text() for file in tmp_path.glob("comments.json.bak*")]
    assert copies == ([content] if content else [])


def test_what_others_wrote_is_copied_before_it_is_replaced(tmp_path: Path) -> None:
    written = '{"gpu01": [{"name": "eve", "date": "3d", "comment": "no date, so it is not told"}]} // by hand'
    (tmp_path / "comments.json.bak").write_text("an older copy")
    export = Export(tmp_path, written)
    export.known.devices = herd_of(a100("gpu01", 0, node_name="gpu01"))
    assert export.look() == {"gpu01": []}
    assert (tmp_path / "comments.json.bak").read_text() == "an older copy"
    assert (tmp_path / "comments.json.bak1").read_text() == written
    again = CommentsExport(export.file, zone=UTC, known=export.known, clock=export.clock)
    asyncio.run(again.look())
    assert len([*tmp_path.glob("*.bak*")]) == 2, "what the hub itself wrote needs no copy"


def test_hosts_keep_the_names_that_the_file_has(tmp_path: Path) -> None:
    export = Export(tmp_path, {"GPU01": [], "gpu02": [BOB], "gpu03.lab": []})
    export.known.devices = herd_of(*(a100(f"gpu0{n}.lab", 0, node_name=f"gpu0{n}.lab") for n in range(1, 5)))
    assert export.look() == {"GPU01": [], "gpu02": [], "gpu03.lab": [], "gpu04": []}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ann", Owner("id-ann", "Ann Lee")),
        ("Ann Lee", Owner("id-ann", "Ann Lee")),
        ("ann lee", Owner("id-ann", "Ann Lee")),
        ("Kim", Owner("id-kim", "Someone")),
        ("Bob", Owner("id-bob", "Kim")),
        ("Doe", Owner(None, "Doe")),
        ("Ann", Owner("id-ann", "Ann Lee")),
        ("+ann", Owner("id-ann", "Ann Lee")),
        ("a+nn", Owner("id-a+nn", "Plus")),
        ("eve", Owner(None, "eve")),
    ],
)
def test_whom_a_name_means(name: str, expected: Owner) -> None:
    people = [
        person("ann", display_name="Ann Lee"),
        person("bob", display_name="Kim"),  # the name of an account goes before what others are shown as
        person("kim", display_name="Someone"),
        person("a+nn", display_name="Plus"),  # the exact name goes before one that differs by a plus
        person("d1", display_name="Doe"),
        person("d2", display_name="doe"),
    ]
    assert find_owner(name, people, lambda one: one) == expected


class Taking:
    """Stands for the records: notes what is to be booked, and books nothing."""

    def __init__(self) -> None:
        self.hosts: list[list[str]] = []

    async def run(self, verb: Callable[..., Any], *arguments: Any) -> Any:
        return verb(*arguments)

    def apply(self, placed: Sequence[Placed], before: dict[str, Any], **_: object) -> SyncOutcome:
        self.hosts.append([one.entry.host for one in placed])
        return SyncOutcome(taken=before, made=(), changed=(), ended=(), complaints=())


def test_damage_of_what_was_taken_before_is_as_good_as_nothing(tmp_path: Path) -> None:
    file = tmp_path / STATE_NAME
    for damaged in (b"", b'{"file": "\xf2', b'{"file": "\xf2", "taken": {}}'):
        file.write_bytes(damaged)
        assert _read_state(file, tmp_path / "comments.json") == {}


def test_an_entry_is_taken_as_soon_as_its_node_has_come(tmp_path: Path) -> None:
    file, taking, known = tmp_path / "comments.json", Taking(), Known()
    file.write_text(json.dumps({"gpu01": [ANN], "gpu02": [BOB]}))
    watch = CommentsWatch(
        file,
        follows=True,
        zone=UTC,
        state_dir=tmp_path,
        known=known,
        sync=cast("CommentsSync", taking),
        calls=cast("RecordCalls", taking),
        clock=ManualClock(),
    )

    def look() -> list[list[str]]:
        asyncio.run(watch.look())
        return taking.hosts

    assert look() == []  # a file is taken when it has come to rest
    assert look() == [[]]
    assert look() == [[]], "nobody has come"
    known.devices = herd_of(a100("gpu02", 0, node_name="gpu02"))
    assert look() == [[], ["gpu02"]]
    known.devices = herd_of(a100("gpu02", 0, node_name="gpu02"), a100("gpu01", 0, node_name="gpu01"))
    assert look()[2:] == [["gpu01", "gpu02"]]
    assert len(look()) == 3, "all are there"
