"""A folder that others write into, with all that goes wrong in such folders."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpuherd.collect.scrub import scrub
from gpuherd.model.errors import Failed
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.sources import files as files_module
from gpuherd.sources import folder_reading
from gpuherd.sources.files import FolderWatch
from gpuherd.sources.settings import FolderSettings
from support.arrivals import KeptArrivals
from support.herd import IDLE, ManualClock, gpu
from support.running import PATIENCE_SECONDS
from support.soak import SOAK
from support.tally import Tally

START = 1_600_000_200.0  # 2020-09-13T12:30:00Z


class Folder:
    """A folder, its watch and its writers."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.clock = ManualClock()
        self.clock.wall_offset = START - self.clock.now
        self.arrivals = KeptArrivals(taken=("taken",))
        self.watch = FolderWatch(
            FolderSettings(path=path, **settings),
            self.arrivals,
            scrub=scrub,
            wall=self.clock.wall,
            monotonic=self.clock.monotonic,
        )

    def stamp(self, seconds: float) -> str:
        whole = int(seconds) % 3600
        return f"2020/09/13 {12 + (1800 + int(seconds)) // 3600:02}:{(1800 + whole) // 60 % 60:02}:{whole % 60:02}.000"

    def write(self, name: str, content: str | bytes, age_seconds: float = 0.0) -> None:
        file = self.path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        at = self.clock.wall() - age_seconds
        os.utime(file, (at, at))

    def drop(self, host: str, *, age_seconds: float = 0.0, utilization: int = 50) -> None:
        """Write a host's files as of now, or as of a while ago."""
        stamp = self.stamp(self.clock.wall() - START - age_seconds)
        gpus = f"0, GPU-{host}, Tesla M40, 11, 22945, {utilization}, 0, 30, {stamp}\n"
        self.write(f"{host}_gpus.csv", gpus, age_seconds)
        self.write(f"{host}_processes.csv", f"{stamp}, GPU-{host}, 10, python, 500\n", age_seconds)

    async def looks(self, count: int = 2, seconds: float = 1.0) -> None:
        for _ in range(count):
            await self.watch.look()
            self.clock.advance(seconds)

    def utilizations(self, host: str) -> list[float | None]:
        return [report.sample.devices[0].utilization_gpu for report in self.arrivals.nodes[host].reports]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


Test = Callable[[Folder], Coroutine[Any, Any, None]]


def looping(test: Test) -> Callable[[Folder], None]:
    def run(folder: Folder) -> None:
        asyncio.run(test(folder))

    run.__name__ = test.__name__
    return run


def own_report(time: float, host: str = "somebody else") -> bytes:
    return msgspec.json.encode(
        Report(
            facts=NodeFacts(host=HostFacts(hostname=host), devices=(gpu(0),)),
            sample=Sample(time=time, devices=(IDLE,)),
        )
    )


@looping
async def test_files_are_taken_when_they_rest_and_once(folder: Folder) -> None:
    folder.drop("gpu01")
    await folder.looks(1)
    assert folder.arrivals.nodes == {}
    await folder.looks(3)
    assert folder.utilizations("gpu01") == [0.5]
    assert folder.arrivals.ways == {"gpu01": ("file", 20.0)}
    folder.drop("gpu01", utilization=60)
    await folder.looks(2)
    assert folder.utilizations("gpu01") == [0.5, 0.6]


@looping
async def test_a_file_that_is_being_written_is_left_alone(folder: Folder) -> None:
    folder.drop("gpu01")
    await folder.looks(2)
    for size in range(5):
        folder.write("gpu01_gpus.csv", "0, GPU-gpu01, Tesla M40, 99"[: 5 * size])
        await folder.looks(1)
    assert folder.utilizations("gpu01") == [0.5]
    assert folder.arrivals.troubles == {}
    folder.drop("gpu01", utilization=70)
    await folder.looks(2)
    assert folder.utilizations("gpu01") == [0.5, 0.7]


@looping
async def test_files_that_never_rest_are_read_all_the_same(folder: Folder) -> None:
    for second in range(30):
        folder.drop("gpu01", utilization=second)
        await folder.looks(1)
    assert len(folder.utilizations("gpu01")) >= 1


@looping
async def test_data_that_does_not_move_on_is_not_handed_over_again(folder: Folder) -> None:
    folder.drop("gpu01")
    await folder.looks(2)
    content = (folder.path / "gpu01_gpus.csv").read_bytes()
    for _ in range(20):  # the copying goes on, nvidia-smi hangs
        folder.write("gpu01_gpus.csv", content)
        await folder.looks(2, seconds=2.0)
    assert len(folder.arrivals.nodes["gpu01"].reports) == 1
    failure = folder.arrivals.troubles["gpu01"]
    assert failure is not None
    assert (failure.code, "nvidia-smi hangs" in str(failure)) == ("no_data", True)
    folder.drop("gpu01")
    await folder.looks(2)
    assert len(folder.arrivals.nodes["gpu01"].reports) == 2
    assert folder.arrivals.troubles["gpu01"] is None


@looping
async def test_old_files_show_their_host_but_give_no_report(folder: Folder) -> None:
    folder.drop("gpu01", age_seconds=300)
    await folder.looks(3)
    assert folder.arrivals.nodes["gpu01"].reports == []
    await folder.looks(2, seconds=60)
    assert folder.arrivals.troubles["gpu01"] is not None


@looping
async def test_renewed_files_with_old_content_wait_until_it_moves(folder: Folder) -> None:
    folder.drop("gpu01", age_seconds=300)
    os.utime(folder.path / "gpu01_gpus.csv", (folder.clock.wall(),) * 2)
    await folder.looks(3)
    assert folder.arrivals.nodes["gpu01"].reports == []
    folder.clock.advance(20)
    folder.drop("gpu01", age_seconds=300)
    os.utime(folder.path / "gpu01_gpus.csv", (folder.clock.wall(),) * 2)
    await folder.looks(2)
    assert len(folder.arrivals.nodes["gpu01"].reports) == 1  # its clock is five minutes slow, but it lives


@looping
async def test_a_clock_that_is_set_back_does_not_silence_a_host(folder: Folder) -> None:
    folder.drop("gpu01")
    await folder.looks(2)
    folder.drop("gpu01", age_seconds=3600, utilization=60)
    await folder.looks(2)
    assert folder.utilizations("gpu01") == [0.5, 0.6]


@looping
async def test_half_a_copied_log_ends_earlier_and_is_no_news(folder: Folder) -> None:
    folder.drop("gpu01")
    await folder.looks(2)
    folder.drop("gpu01", age_seconds=20, utilization=10)
    await folder.looks(2)
    assert folder.utilizations("gpu01") == [0.5]


@looping
async def test_our_own_reports_are_taken_under_the_name_of_the_file(folder: Folder) -> None:
    folder.write("gpu02.json", own_report(folder.clock.wall()))
    await folder.looks(1)
    assert folder.arrivals.nodes["gpu02"].last.facts.devices[0].uuid == "GPU-0"
    folder.write("gpu02.json", own_report(folder.clock.wall())[:100])
    await folder.looks(1)
    failure = folder.arrivals.troubles["gpu02"]
    assert failure is not None
    assert failure.code == "garbled"
    folder.write("gpu02.json", own_report(folder.clock.wall()))
    await folder.looks(1)
    assert len(folder.arrivals.nodes["gpu02"].reports) == 2
    assert folder.arrivals.troubles["gpu02"] is None


@looping
async def test_facts_and_table_stay_the_same_objects(folder: Folder) -> None:
    for _ in range(2):
        folder.drop("gpu01")
        await folder.looks(2)
    first, second = folder.arrivals.nodes["gpu01"].reports
    assert first.facts is second.facts
    assert first.table is second.table


@looping
async def test_only_plain_files_with_plain_names_are_read(folder: Folder) -> None:
    target = folder.path.parent / "outside.json"
    target.write_bytes(own_report(folder.clock.wall()))
    (folder.path / "linked.json").symlink_to(target)
    (folder.path / "linked_gpus.csv").symlink_to("/dev/zero")
    os.mkfifo(folder.path / "pipe_gpus.csv")
    os.mkfifo(folder.path / "pipe.json")
    (folder.path / "folder.json").mkdir()
    (folder.path / "folder_gpus.csv").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder.path / "socket.json"))
        for name in (
            "comments.json",
            "hosts.json",
            ".hidden.json",
            "-rf.json",
            "a b.json",
            "x\n.json",
            "_gpus.csv",
        ):
            folder.write(name, own_report(folder.clock.wall()))
        folder.write("$(reboot).json", own_report(folder.clock.wall()))
        folder.write("gpu01.json.tmp", own_report(folder.clock.wall()))
        folder.write("good.json", own_report(folder.clock.wall()))
        await folder.looks(3)
    assert list(folder.arrivals.nodes) == ["good"]


@looping
async def test_a_link_that_takes_the_place_of_a_file_is_not_followed(folder: Folder) -> None:
    folder.write("gpu01.json", own_report(folder.clock.wall()))
    with folder_reading.open_folder(folder.path) as descriptor:
        drops, _ = folder_reading.scan(descriptor, 10)
        (folder.path / "gpu01.json").rename(folder.path.parent / "moved")
        (folder.path / "gpu01.json").symlink_to(folder.path.parent / "moved")
        assert folder_reading.read_file(descriptor, "gpu01", "json", drops["gpu01"]["json"]) is None


@looping
async def test_of_a_huge_log_only_the_end_is_read(folder: Folder) -> None:
    folder.drop("gpu01")
    row = (folder.path / "gpu01_gpus.csv").read_bytes()
    with (folder.path / "gpu01_gpus.csv").open("wb") as file:
        file.truncate(100 * 2**20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + row)
    os.utime(folder.path / "gpu01_gpus.csv", (folder.clock.wall(),) * 2)
    await folder.looks(2)
    assert folder.utilizations("gpu01") == [0.5]


@looping
async def test_a_huge_report_is_not_read_at_all(folder: Folder) -> None:
    folder.write("gpu01.json", own_report(folder.clock.wall()))
    await folder.looks(1)
    with (folder.path / "gpu01.json").open("wb") as file:
        file.truncate(100 * 2**20)
    await folder.looks(1)
    failure = folder.arrivals.troubles["gpu01"]
    assert failure is not None
    assert failure.code == "too_large"


@looping
async def test_one_bad_host_of_many_is_alone_with_it(folder: Folder) -> None:
    for number in range(49):
        folder.drop(f"gpu{number:02}")
    folder.write("bad_gpus.csv", os.urandom(4096))
    folder.drop("taken")
    await folder.looks(3)
    assert sorted(folder.arrivals.nodes) == [f"gpu{number:02}" for number in range(49)]
    assert all(len(node.reports) == 1 for node in folder.arrivals.nodes.values())


def test_hosts_are_bounded(tmp_path: Path) -> None:
    folder = Folder(tmp_path, max_nodes=3)
    for number in range(10):
        folder.write(f"gpu{number}.json", own_report(folder.clock.wall()))
    asyncio.run(folder.looks(2))
    assert len(folder.arrivals.nodes) == 3
    said = folder.arrivals.left_out_of[str(folder.path)]
    assert said is not None
    assert "has files of 10 hosts, 7 more than folders.max_nodes" in said


@pytest.mark.attack
@pytest.mark.promise("known-hosts-first")
def test_made_up_names_do_not_displace_a_host(tmp_path: Path, tally: Tally) -> None:
    folder = Folder(tmp_path, max_nodes=3)
    folder.write("gpu_01.json", own_report(folder.clock.wall()))
    asyncio.run(folder.looks(1))
    junk = 500 * SOAK
    for number in range(junk):
        folder.write(f"a{number}.json", own_report(folder.clock.wall()))
    asyncio.run(folder.looks(1))
    after_restart = Folder(tmp_path, max_nodes=3)
    after_restart.arrivals.intake("gpu-01", "file", interval_seconds=60)
    for known in (folder, after_restart):
        known.clock.advance(60)
        known.write("gpu_01.json", own_report(known.clock.wall()))
        asyncio.run(known.looks(1))
    held = [len(folder.arrivals.nodes["gpu_01"].reports) == 2, "gpu_01" in after_restart.arrivals.nodes]
    tally.add("junk names in a drop folder", tries=2 * junk, held=junk * sum(held), lost=2 - sum(held))
    assert held == [True, True]
    for number in range(junk):
        (folder.path / f"a{number}.json").unlink()
    asyncio.run(folder.looks(1))
    assert folder.arrivals.left_out_of == {str(folder.path): None}


@looping
async def test_hosts_whose_files_come_and_go_leave_nothing_behind(folder: Folder) -> None:
    for number in range(20):
        folder.write(f"gpu{number}_status.csv", "nothing\n")
        await folder.looks(1)
        (folder.path / f"gpu{number}_status.csv").unlink()
    await folder.looks(1)
    assert folder.watch._hosts == {}


@looping
async def test_a_missing_folder_is_named_and_found_again(folder: Folder) -> None:
    moved = folder.path.rename(folder.path.with_name("away"))
    with pytest.raises(Failed, match=str(folder.path)):
        await folder.watch.look()
    moved.rename(folder.path)
    folder.write("gpu01.json", own_report(folder.clock.wall()))
    await folder.watch.look()
    assert len(folder.arrivals.nodes["gpu01"].reports) == 1


def test_a_folder_that_hangs_is_told_of_and_asked_once(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    begun: list[None] = []

    def hang(*_: Any) -> tuple[dict[str, Any], int]:
        begun.append(None)
        answered.wait(PATIENCE_SECONDS)
        return {}, 0

    async def run() -> None:
        monkeypatch.setattr(files_module, "LOOK_DEADLINE_SECONDS", 0.05)
        with pytest.raises(Failed, match="does not respond"):
            await folder.watch.look()
        with pytest.raises(Failed, match="does not respond"):
            await folder.watch.look()
        assert len(begun) == 1
        answered.set()
        monkeypatch.setattr(files_module, "LOOK_DEADLINE_SECONDS", 10.0)
        await folder.watch.look()

    with monkeypatch.context() as patched:
        patched.setattr(files_module, "scan", hang)
        asyncio.run(run())


@looping
async def test_a_bug_that_one_hosts_files_bring_to_light_harms_no_other(folder: Folder) -> None:
    def stumbling(arguments: Sequence[str]) -> list[str]:
        if "stumble" in arguments:
            raise ZeroDivisionError("oops")
        return list(arguments)

    watch = FolderWatch(
        FolderSettings(path=folder.path),
        folder.arrivals,
        scrub=stumbling,
        wall=folder.clock.wall,
        monotonic=folder.clock.monotonic,
    )
    for host in ("gpu01", "gpu02"):
        folder.drop(host)
    await watch.look()
    await watch.look()
    folder.clock.advance(1)
    for host in ("gpu01", "gpu02"):
        folder.drop(host, utilization=60)
    stamp = folder.stamp(folder.clock.wall() - START)
    folder.write("gpu01_processes.csv", f"{stamp}, GPU-gpu01, 10, stumble, 500\n")
    await watch.look()
    await watch.look()
    assert folder.utilizations("gpu02") == [0.5, 0.6]
    trouble = folder.arrivals.troubles["gpu01"]
    assert trouble is not None
    assert trouble.code == "hub_error"


@looping
async def test_an_error_of_one_look_is_not_told_again_at_the_next(
    folder: Folder,
) -> None:
    folder.drop("gpu01")
    reading, folder.watch._read = folder.watch._read, lambda: 1 / 0  # type: ignore[method-assign,return-value,assignment]
    with pytest.raises(ZeroDivisionError):
        await folder.watch.look()
    folder.watch._read = reading  # type: ignore[method-assign]
    await folder.looks(2)
    assert folder.utilizations("gpu01") == [0.5]


@looping
async def test_hosts_json_says_who_is_shown_and_under_which_name(folder: Folder) -> None:
    for host in ("gpu01", "gpu02", "oldhost"):
        folder.drop(host)
    folder.write("own.json", own_report(folder.clock.wall()))
    folder.write("gpu01_local.txt", "12G\t/local/bob\n")
    folder.write("gpu01_status.csv", "rpool/ROOT 103081248 45123456 52345678 47% /\n")
    folder.write("statsV2.json", '{"time": 1, "data": {}}')
    folder.write("hosts.json", '{"gpu01": "gpu01.lip6.fr", "gpu02": "", "later": "later.lip6.fr"}')
    await folder.looks(3)
    assert folder.arrivals.shown == {"gpu01": "gpu01.lip6.fr", "gpu02": "gpu02", "own": ""}
    disks = folder.arrivals.nodes["gpu01"].last.facts.host.disks
    assert [disk.mount for disk in disks] == ["/", "/local/bob"]
    folder.write("hosts.json", '{"gpu01": "gpu01.lip6.fr"}')
    folder.drop("gpu01", utilization=60)
    await folder.looks(2)
    assert folder.arrivals.nodes.keys() == {"gpu01", "own"}, "gpu02 was taken off the list"
    folder.drop("gpu02", utilization=60)
    (folder.path / "hosts.json").unlink()
    await folder.looks(3)
    assert folder.arrivals.nodes.keys() == {"gpu01", "own", "gpu02", "oldhost"}


@pytest.mark.parametrize(
    ("damaged", "told"),
    [
        (b'{"gpu01": "gpu01.lip6.fr",\n "gp', "line 2 is not JSON"),
        (b"", "line 1 is not JSON"),
        (b"{}", "it lists no hosts"),
        (b"[1]", "is not a table of hosts"),
        (b"\xff\xfe{", "line 1 is not JSON"),
        (b'{"gpu01": "x"}' + b" " * (4 << 20), "is larger than 4 MiB"),
        (b'{"a":' * 100_000, "is nested too deeply"),
    ],
    ids=range(7),
)
def test_a_damaged_hosts_json_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: bytes, told: str
) -> None:
    async def story() -> None:
        folder = Folder(tmp_path)
        folder.drop("gpu01")
        folder.drop("oldhost")
        folder.write("hosts.json", '{"gpu01": "gpu01.lip6.fr"}')
        await folder.looks(2)
        folder.write("hosts.json", damaged)
        await folder.looks(3)
        assert folder.arrivals.nodes.keys() == {"gpu01"}

    asyncio.run(story())
    (line,) = [record.getMessage() for record in caplog.records]
    assert told in line
    assert line.startswith(f"{tmp_path}/hosts.json: ")
    assert line.endswith("the last good list stays in use")
