"""Lists become nodes; a list that fails or is suddenly empty takes nobody away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Self

import pytest

from gpuherd.api.arrivals import ARRIVAL_KEPT_SECONDS, NAMESAKE_SILENT_SECONDS
from gpuherd.api.known_nodes import load_known
from gpuherd.api.node_groups import Group
from gpuherd.api.roster import EMPTY_DOUBTED_SECONDS, MISSING_KEPT_SECONDS, Roster
from gpuherd.api.supervision import Supervisor
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.model.targets import NodeWay, Target
from gpuherd.sources.following import ContactFailed, NodeIntake
from support.herd import ManualClock
from support.running import until

CHANCE = Random(1)  # noqa: S311 - jitter that is the same every time


class ListFinder:
    """A finder whose answers the test gives one by one."""

    def __init__(self, name: str = "hosts.txt") -> None:
        self._name = name
        self.answer: tuple[Target, ...] | Exception = ()
        self.hangs = False
        self.changed = asyncio.Event()
        self.looked = 0
        self.remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self._name

    def names(self, *names: str, port: int | None = None, expected_gpus: int | None = None) -> None:
        self.answer = tuple(
            Target(name=name, address=f"{name}.example.org", port=port, expected_gpus=expected_gpus)
            for name in names
        )
        self.changed.set()

    async def find(self) -> tuple[Target, ...]:
        self.looked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        return self.answer

    async def wait(self) -> None:
        await self.changed.wait()
        self.changed.clear()

    async def close(self) -> None:
        self.answer = Failed("closed")


class ScriptedWay:
    """A way on which the test decides what happens to each node."""

    interval_seconds = 0.01
    way: NodeWay = "ssh"

    def __init__(self) -> None:
        self.followed: list[Target] = []
        self.failures: dict[str, BaseException] = {}
        self.intakes: dict[str, NodeIntake] = {}
        self.closed = False

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        self.followed.append(target)
        self.intakes[target.name] = intake
        if target.name in self.failures:
            raise self.failures[target.name]
        intake.take(report(gpus=2, time=float(len(self.followed))))
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        self.closed = True


def report(gpus: int = 1, time: float = 1.0) -> Report:
    devices = tuple(DeviceFacts(uuid=f"GPU-{n}", index=n, name="A100") for n in range(gpus))
    return Report(
        facts=NodeFacts(host=HostFacts(hostname="says-what-it-likes"), devices=devices),
        sample=Sample(time=time, devices=(DeviceSample(),) * gpus),
    )


class Stage:
    """A roster with everything around it."""

    def __init__(self, file: Path, *, finders: tuple[ListFinder, ...] = ()) -> None:
        self.clock = ManualClock()
        self.fleet = Fleet(clock=self.clock)
        self.finders = finders or (ListFinder(),)
        self.way = ScriptedWay()
        self.forgotten: list[str] = []
        self.roster = Roster(
            self.fleet,
            [Group(finder, self.way) for finder in self.finders],
            file=file,
            clock=self.clock,
            random=CHANCE,
            forget=self.forgotten.append,
        )
        self.supervisor = Supervisor(self.clock, CHANCE)

    async def __aenter__(self) -> Self:
        self.roster.restore()
        self.roster.start(self.supervisor)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.supervisor.stop()
        await self.roster.stop()

    def shown(self) -> dict[str, tuple[str, ...]]:
        self.fleet.tick()
        return {node.id: tuple(note.code for note in node.notes) for node in self.fleet.nodes()}

    def names(self) -> dict[str, str]:
        self.fleet.tick()
        return {node.id: node.name for node in self.fleet.nodes()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "known-nodes.json"


async def _named(stage: Stage, *names: str) -> None:
    await until(lambda: stage.roster.node_ids >= set(names), f"{names} are listed")
    await until(lambda: {t.name for t in stage.way.followed} >= set(names), f"{names} are followed")


def test_a_list_becomes_nodes_and_grows(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1", "gpu2")
            await _named(stage, "gpu1", "gpu2")
            stage.finders[0].names("gpu1", "gpu2", "gpu3")
            await _named(stage, "gpu3")
            assert stage.shown() == {"gpu1": (), "gpu2": (), "gpu3": ()}
            assert [node.way for node in stage.fleet.nodes()] == ["ssh"] * 3
            assert len(stage.way.followed) == 3, "who is followed already is left alone"
        assert stage.way.closed

    asyncio.run(scene())


def test_a_failing_or_suddenly_empty_list_takes_nobody_away(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            finder = stage.finders[0]
            finder.names("gpu1", "gpu2")
            await _named(stage, "gpu1", "gpu2")
            finder.names()
            await until(lambda: bool(stage.roster.notices()), "the empty list is told")
            assert "the list is empty" in stage.roster.notices()[0].message
            assert "2 nodes of the last good list are still used" in stage.roster.notices()[0].message
            finder.answer = Failed("connection refused")
            finder.changed.set()
            await until(lambda: "refused" in stage.roster.notices()[0].message, "the failure is told")
            assert stage.shown() == {"gpu1": (), "gpu2": ()}
            looked = finder.looked
            finder.names("gpu1", "gpu2")
            await until(lambda: finder.looked > looked and not stage.roster.notices(), "it is well again")

    asyncio.run(scene())


def test_what_a_list_passed_over_is_told_as_long_as_it_is_so(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            finder = stage.finders[0]
            finder.remarks = ("group_vars/gpu: is encrypted\x1b[31m",)
            finder.names("gpu1")
            await _named(stage, "gpu1")
            await until(lambda: bool(stage.roster.notices()), "the remark is told")
            (notice,) = stage.roster.notices()
            assert (notice.code, notice.message) == (
                "list_remark",
                "group_vars/gpu: is encrypted\ufffd[31m",
            )
            finder.remarks = ()
            finder.names("gpu1")
            await until(lambda: not stage.roster.notices(), "it is told no more")

    asyncio.run(scene())


def test_an_empty_list_is_believed_after_a_day(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1")
            await _named(stage, "gpu1")
            stage.finders[0].names()
            await until(lambda: bool(stage.roster.notices()), "the empty list is told")
            stage.clock.advance(EMPTY_DOUBTED_SECONDS + 1)
            stage.finders[0].changed.set()
            await until(lambda: stage.shown() == {"gpu1": ("not_discovered",)}, "it is believed")

    asyncio.run(scene())


def test_a_node_off_the_list_is_marked_and_forgotten_after_an_hour(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1", "gpu2")
            await _named(stage, "gpu1", "gpu2")
            stage.finders[0].names("gpu1")
            await until(lambda: stage.shown()["gpu2"] == ("not_discovered",), "it is marked")
            stage.clock.advance(MISSING_KEPT_SECONDS - 1)
            stage.roster.sweep()
            assert "gpu2" in stage.shown()
            stage.clock.advance(2)
            stage.roster.sweep()
            assert set(stage.shown()) == {"gpu1"}
            assert stage.forgotten == ["gpu2"]

    asyncio.run(scene())


def test_a_node_that_comes_back_in_time_is_as_before(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1", "gpu2")
            await _named(stage, "gpu1", "gpu2")
            stage.finders[0].names("gpu1")
            await until(lambda: stage.shown()["gpu2"] == ("not_discovered",), "it is marked")
            stage.finders[0].names("gpu1", "gpu2")
            await until(lambda: stage.shown()["gpu2"] == (), "the mark is gone")
            assert [target.name for target in stage.way.followed].count("gpu2") == 1

    asyncio.run(scene())


def test_a_changed_address_is_followed_anew(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1")
            await _named(stage, "gpu1")
            stage.finders[0].names("gpu1", port=2222)
            await until(lambda: any(t.port == 2222 for t in stage.way.followed), "the new port is followed")

    asyncio.run(scene())


def test_another_line_of_the_file_is_no_reason_to_connect_again(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            finder = stage.finders[0]
            finder.answer = (Target(name="gpu1", address="a", place="hosts.txt:1"),)
            finder.changed.set()
            await _named(stage, "gpu1")
            looked = finder.looked
            finder.answer = (Target(name="gpu1", address="a", place="hosts.txt:2", expected_gpus=8),)
            finder.changed.set()
            await until(lambda: finder.looked > looked, "it was looked up again")
            await until(lambda: stage.fleet.gpu_count("gpu1") == 2, "it has reported")
            stage.roster.sweep()
            assert stage.shown()["gpu1"] == ("gpus_missing",), "the new entry is in force"
            assert len(stage.way.followed) == 1

    asyncio.run(scene())


def test_trouble_is_shown_with_its_reason_and_goes_with_the_first_report(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.way.failures = {"gpu1": ContactFailed("login_refused", "gpu1: no key is accepted")}
            stage.finders[0].names("gpu1", "gpu2")
            await until(lambda: stage.shown().get("gpu1") == ("login_refused",), "the trouble shows")
            node = stage.fleet.node("gpu1")
            assert node is not None
            assert (node.state, node.reason) == ("never", "gpu1: no key is accepted")
            assert node.notes[0].since == stage.clock.wall()
            assert stage.shown()["gpu2"] == ()
            assert stage.roster.health()[0].failing == 1
            stage.way.failures.clear()
            await until(lambda: stage.shown()["gpu1"] == (), "it is gone")
            assert stage.roster.health()[0].failing == 0

    asyncio.run(scene())


def test_a_bug_in_one_contact_harms_no_other(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.way.failures = {"gpu1": ZeroDivisionError("oops")}
            stage.finders[0].names("gpu1", "gpu2")
            await until(lambda: stage.shown().get("gpu1") == ("hub_error",), "the trouble shows")
            await _named(stage, "gpu2")
            assert stage.shown()["gpu2"] == ()

    asyncio.run(scene())
    assert "unexpected error in the connection to node gpu1" in caplog.text


def test_a_contact_that_is_broken_off_from_within_begins_again(file: Path) -> None:
    """Something that a way shares between nodes may be cancelled under one of them."""

    async def scene() -> None:
        async with Stage(file) as stage:
            stage.way.failures = {"gpu1": asyncio.CancelledError()}
            stage.finders[0].names("gpu1")
            await until(lambda: stage.shown().get("gpu1") == ("link_lost",), "the trouble shows")
            stage.way.failures.clear()
            await until(lambda: stage.shown()["gpu1"] == (), "it is followed again")

    asyncio.run(scene())


def test_nothing_comes_of_a_contact_that_has_ended(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            lost, followed = asyncio.get_running_loop().create_future(), asyncio.Event()

            async def follow(target: Target, intake: NodeIntake) -> None:
                followed.set()
                await lost
                raise ContactFailed("garbled", "gpu1: half a line")

            stage.way.follow = follow  # type: ignore[method-assign]
            stage.finders[0].names("gpu1")
            await followed.wait()
            contact = next(task for task in asyncio.all_tasks() if task.get_name() == "contact gpu1")
            lost.set_result(None)  # wakes the contact up, but it runs after this
            stage.roster.set_enrolled({"gpu1"})
            await until(contact.done, "it has ended")
            assert stage.shown()["gpu1"] == ()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ZeroDivisionError("oops"), "ZeroDivisionError in the hub, see its log"),
        (TimeoutError(), "no response within"),
        (None, "no response within 0.05 s"),
    ],
)
def test_whatever_keeps_a_list_from_being_looked_up_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch, answer: Exception | None, told: str
) -> None:
    monkeypatch.setattr("gpuherd.api.roster.FIND_SECONDS", 0.05)

    async def scene() -> None:
        stage = Stage(file)
        stage.finders[0].hangs = answer is None
        stage.finders[0].answer = answer or ()
        async with stage:
            await until(lambda: bool(stage.roster.notices()), "it is told")
            assert told in stage.roster.notices()[0].message
            assert told in (stage.roster.health()[0].trouble or "")
            stage.finders[0].hangs = False
            stage.finders[0].names("gpu1")
            await _named(stage, "gpu1")
            assert stage.roster.notices() == []

    asyncio.run(scene())


def test_a_node_that_moves_to_another_list_is_asked_because_of_that(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file, finders=(ListFinder("a"), ListFinder("b"))) as stage:
            a, b = stage.finders
            a.names("gpu1", "gpu2")
            await _named(stage, "gpu1", "gpu2")
            b.names("gpu1", "gpu3")
            await _named(stage, "gpu3")
            assert set(stage.roster.health()[1].refused) == {"gpu1"}
            a.names("gpu2")
            await until(lambda: stage.roster.health()[1].nodes == 2, "it is on the other list")
            assert stage.shown() == {"gpu1": (), "gpu2": (), "gpu3": ()}
            assert stage.roster.notices() == []
            a.names("gpu2", "gpu4")
            await _named(stage, "gpu4")
            b.names("gpu1", "gpu2", "gpu3", "gpu4")
            await until(lambda: len(stage.roster.health()[1].refused) == 2, "both name two of them")
            stage.clock.advance(MISSING_KEPT_SECONDS + 1)
            stage.roster.sweep()
            assert set(stage.shown()) == {"gpu1", "gpu2", "gpu3", "gpu4"}

    asyncio.run(scene())


def test_a_part_that_cannot_be_closed_does_not_keep_the_hub_from_stopping(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gpuherd.api.roster.STOP_SECONDS", 0.1)

    async def scene() -> None:
        hanging = asyncio.get_running_loop().create_future()

        async def close() -> None:
            await hanging

        async with Stage(file, finders=(ListFinder("a"), ListFinder("b"))) as stage:
            stage.way.close = close  # type: ignore[method-assign]

            async def fail() -> None:
                raise ZeroDivisionError("oops")

            stage.finders[0].close = fail  # type: ignore[method-assign]
            stage.roster.intake("old", "gpustat", interval_seconds=1.0)
        hanging.cancel()

    asyncio.run(scene())
    assert "stopping: ZeroDivisionError: oops" in caplog.text
    assert "did not close" in caplog.text
    assert b'"old"' in file.read_bytes()


def test_the_nodes_of_last_time_are_there_although_the_list_cannot_be_had(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as before:
            before.finders[0].names("gpu1", "gpu2")
            await _named(before, "gpu1", "gpu2")
            before.roster.intake("old-node", "gpustat", interval_seconds=1.0)
        stage = Stage(file)
        stage.finders[0].answer = Failed("connection refused")
        async with stage:
            await _named(stage, "gpu1", "gpu2")
            await until(lambda: bool(stage.roster.notices()), "the failure is told")
            assert set(stage.shown()) == {"gpu1", "gpu2", "old-node"}

    asyncio.run(scene())


def test_a_folders_list_names_its_nodes_and_forgets_those_it_lost(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as before:
            for name, shown in (("gpu1", "gpu1.lip6.fr"), ("gpu2", "")):
                before.roster.intake(name, "file", interval_seconds=20.0, place="/data", shown=shown)
            before.roster.intake("elsewhere", "file", interval_seconds=20.0, place="/other")
            assert set(before.shown()) == {"gpu1", "gpu2", "elsewhere"}
            assert before.names()["gpu1"] == "gpu1.lip6.fr"
        async with Stage(file) as stage:
            assert stage.names()["gpu1"] == "gpu1.lip6.fr", "also after a start"
            stage.roster.keep_only("/data", {"gpu1"})
            assert set(stage.shown()) == {"gpu1", "elsewhere"}
            stage.roster.intake("gpu1", "file", interval_seconds=20.0, place="/data", shown="GPU one")
            assert stage.names()["gpu1"] == "GPU one"

    asyncio.run(scene())
    assert b"gpu2" not in file.read_bytes()


def test_a_list_that_the_configuration_has_lost_is_forgotten(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file, finders=(ListFinder("a"), ListFinder("b"))) as stage:
            stage.finders[0].names("gpu1")
            stage.finders[1].names("gpu2")
            await _named(stage, "gpu1", "gpu2")
        stage = Stage(file, finders=(ListFinder("b"),))
        stage.finders[0].answer = Failed("connection refused")
        async with stage:
            await _named(stage, "gpu2")
        assert load_known(file).groups.keys() == {"b"}

    asyncio.run(scene())


@pytest.mark.parametrize("content", [b'{"groups": 3', b'{"groups": {"\xff": []}}', b""])
def test_a_damaged_file_of_known_nodes_does_not_stop_the_start(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1")
            await _named(stage, "gpu1")

    asyncio.run(scene())


def test_two_lists_with_the_same_node_ask_it_once(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file, finders=(ListFinder("a"), ListFinder("b"))) as stage:
            stage.finders[0].names("gpu1")
            await _named(stage, "gpu1")
            stage.finders[1].names("GPU1", "gpu2")
            await _named(stage, "gpu2")
            assert stage.roster.health()[1].refused == {"GPU1": "gpu1 is already polled because of a"}
            assert any("is ignored" in notice.message for notice in stage.roster.notices())

    asyncio.run(scene())


def test_an_enrolled_node_is_not_asked_until_it_is_removed(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1", "gpu2")
            await _named(stage, "gpu1", "gpu2")
            stage.roster.set_enrolled({"gpu1"})
            assert stage.roster.node_ids == {"gpu2"}
            assert "is enrolled" in stage.roster.health()[0].refused["gpu1"]
            with pytest.raises(Refused, match="is enrolled"):
                stage.roster.intake("GPU1", "gpustat", interval_seconds=1.0)
            stage.roster.set_enrolled(set())
            await until(lambda: [t.name for t in stage.way.followed].count("gpu1") == 2, "asked again")

    asyncio.run(scene())


def test_fewer_gpus_than_the_inventory_says_is_told(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1", expected_gpus=8)
            await _named(stage, "gpu1")
            await until(lambda: stage.fleet.gpu_count("gpu1") == 2, "it has reported")
            stage.roster.sweep()
            assert stage.shown()["gpu1"] == ("gpus_missing",)
            stage.way.intakes["gpu1"].take(report(gpus=8, time=2.0))
            stage.roster.sweep()
            assert stage.shown()["gpu1"] == ()

    asyncio.run(scene())


def test_nodes_may_come_by_themselves_but_not_as_somebody_else(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.finders[0].names("gpu1")
            await _named(stage, "gpu1")
            intake = stage.roster.intake("old", "gpustat", interval_seconds=1.0)
            assert stage.roster.intake("OLD", "gpustat", interval_seconds=1.0) is intake
            intake.take(report())
            assert stage.shown()["old"] == ("unproven",)
            with pytest.raises(Refused, match="in the configuration"):
                stage.roster.intake("gpu1", "gpustat", interval_seconds=1.0)
            with pytest.raises(Refused, match="another way"):
                stage.roster.intake("old", "file", interval_seconds=1.0)
            with pytest.raises(Refused, match="no letter"):
                stage.roster.intake("…", "gpustat", interval_seconds=1.0)
            stage.roster.trouble("old", ContactFailed("garbled", "old: half a line"))
            assert stage.shown()["old"] == ("unproven", "garbled")
            stage.clock.advance(ARRIVAL_KEPT_SECONDS + 1)
            stage.roster.sweep()
            assert "old" not in stage.shown()

    asyncio.run(scene())


def test_two_machines_are_not_one_node_because_their_names_make_one_id(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.roster.intake("gpu_1", "file", interval_seconds=1.0).take(report())
            with pytest.raises(Refused, match="gpu-1 would become node gpu-1 here, but so would gpu_1"):
                stage.roster.intake("gpu-1", "file", interval_seconds=1.0)
            stage.roster.intake("gpu_1", "file", interval_seconds=1.0)
            with pytest.raises(Refused, match="gpu_1 of /b would become node gpu-1 here, but so would gpu_1"):
                stage.roster.intake("gpu_1", "file", interval_seconds=1.0, place="/b")
            long = "a" * 63
            stage.roster.intake(f"{long}.one", "file", interval_seconds=1.0)
            with pytest.raises(Refused, match="another name"):
                stage.roster.intake(f"{long}.two", "file", interval_seconds=1.0)
            stage.clock.advance(NAMESAKE_SILENT_SECONDS + 1)
            stage.roster.intake("gpu-1", "file", interval_seconds=1.0)
            assert [node.name for node in stage.fleet.nodes() if node.id == "gpu-1"] == ["gpu-1"]

    asyncio.run(scene())


def test_another_interval_holds_also_for_nodes_that_came_before(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.roster.intake("old", "file", interval_seconds=1.0).take(report())
        async with Stage(file) as stage:
            stage.roster.intake("old", "file", interval_seconds=20.0).take(report())
            node = stage.fleet.node("old")
            assert node is not None
            assert node.interval_seconds == 20.0

    asyncio.run(scene())


def test_trouble_of_a_node_that_came_by_itself_has_its_first_time(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            intake = stage.roster.intake("old", "file", interval_seconds=1.0)
            began = stage.clock.wall()
            for reason in ("half a line", "a line too many"):
                stage.roster.trouble("old", ContactFailed("garbled", reason))
                stage.clock.advance(5)
            node = stage.fleet.node("old")
            assert node is not None
            assert [(note.message, note.since) for note in node.notes] == [("a line too many", began)]
            intake.take(report())
            stage.roster.trouble("old", ContactFailed("garbled", "again"))
            node = stage.fleet.node("old")
            assert node is not None
            assert [note.since for note in node.notes] == [began + 10]

    asyncio.run(scene())


def test_a_hostile_name_is_kept_harmless(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.roster.intake("gpu1\x1b[2J" + "x" * 500, "gpustat", interval_seconds=1.0)

    asyncio.run(scene())
    content = file.read_bytes()
    assert b"gpu1" in content
    assert b"u001b" not in content
    assert len(content) < 400


def test_a_node_that_is_listed_later_is_asked_from_then_on(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.roster.intake("gpu1", "gpustat", interval_seconds=1.0)
            stage.finders[0].names("gpu1")
            await _named(stage, "gpu1")
            assert stage.shown()["gpu1"] == ()
            assert [node.way for node in stage.fleet.nodes()] == ["ssh"]

    asyncio.run(scene())


def test_who_speaks_for_a_node_is_known_again_after_a_restart(file: Path) -> None:
    async def scene() -> None:
        async with Stage(file) as stage:
            stage.roster.intake("gpu1", "gpustat", interval_seconds=4, sender="10.0.0.1")
            stage.roster.intake("gpu2", "gpustat", interval_seconds=4, sender="10.0.0.2")
            stage.roster.intake("gpu1", "gpustat", interval_seconds=4, sender="10.0.0.3")
            stage.roster.intake("gpu3", "file", interval_seconds=4)
        async with Stage(file) as again:
            assert again.roster.senders("gpustat") == {"gpu1": "10.0.0.3", "gpu2": "10.0.0.2"}

    asyncio.run(scene())
