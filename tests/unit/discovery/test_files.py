"""Files that change, vanish, hang or are not what they should be."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuherd.discovery import files
from gpuherd.discovery.files import FileFinder, Reading, read_text
from gpuherd.discovery.hosts_file import HostsFileFinder, parse_hosts
from gpuherd.discovery.settings import HostsFileSettings
from gpuherd.model.errors import Failed, Misconfigured
from support.running import PATIENCE_SECONDS


class Looks:
    """A clock that moves with each look at the file; a step may be done before a look."""

    def __init__(self, steps: dict[int, Callable[[], object]]) -> None:
        self.now = 0.0
        self.number = 0
        self._steps = steps

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.number += 1
        self._steps.get(self.number, lambda: None)()
        await asyncio.sleep(0)

    def monotonic(self) -> float:
        return self.now


def _watch(file: Path, steps: dict[int, Callable[[], object]]) -> Looks:
    """Wait for a change of a file that was read before; the looks tell how long it took."""
    looks = Looks(steps)
    finder = FileFinder(file, parse_hosts, every_seconds=30, sleep=looks.sleep, monotonic=looks.monotonic)

    async def run() -> None:
        await finder.find()
        await finder.wait()

    asyncio.run(run())
    return looks


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    file = tmp_path / "hosts.txt"
    file.write_text("a\n")
    return file


def test_nothing_happens_until_the_time_has_passed(hosts: Path) -> None:
    assert _watch(hosts, {}).now == 30


def test_a_change_is_noticed_once_the_file_stands_still(hosts: Path) -> None:
    looks = _watch(hosts, {3: lambda: hosts.write_text("a\nb"), 4: lambda: hosts.write_text("a\nb1\nc\n")})
    assert looks.number == 5


def test_a_file_replaced_by_another_is_noticed(hosts: Path) -> None:
    before = hosts.stat()

    def replace() -> None:
        new = hosts.with_suffix(".new")
        new.write_text("b\n")  # as long, and as old as the one before
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        new.replace(hosts)

    assert _watch(hosts, {2: replace}).number == 3


def test_a_file_that_is_away_for_a_moment_only_is_not_missed(hosts: Path) -> None:
    looks = _watch(hosts, {2: hosts.unlink, 3: lambda: hosts.write_text("a\nb\n")})
    assert looks.number == 4


def test_a_file_that_stays_away_is_worth_a_look(hosts: Path) -> None:
    assert _watch(hosts, {2: hosts.unlink}).number == 3


def test_a_relative_file_begins_at_the_base(tmp_path: Path, hosts: Path) -> None:
    finder = HostsFileFinder(HostsFileSettings(file=Path(hosts.name)), base=tmp_path)
    found = asyncio.run(finder.find())
    assert [(target.name, target.place) for target in found] == [("a", f"{hosts}:1")]


def test_a_byte_order_mark_is_no_part_of_the_first_host(hosts: Path) -> None:
    hosts.write_bytes(b"\xef\xbb\xbfgpu01\r\n")
    assert read_text(hosts) == "gpu01\r\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a\nb\nm\xfcller\n", r":3: is not UTF-8 text \(byte 0xfc\); save the file as UTF-8"),
        ("a\n".encode("utf-16"), ":1: is UTF-16 text; save the file as UTF-8"),
        (b"a\n" * 3_000_000, "is larger than 4 MiB, which ends in line 2097153; name"),
    ],
    ids=["latin-1", "utf-16", "huge"],
)
def test_text_that_cannot_be_read(hosts: Path, content: bytes, complaint: str) -> None:
    hosts.write_bytes(content)
    with pytest.raises(Misconfigured, match=complaint):
        read_text(hosts)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Misconfigured, match="there is no such file; check the path"):
        read_text(tmp_path / "absent")
    with pytest.raises(Misconfigured, match="pipe: is not a file"):
        read_text(tmp_path / "pipe")
    with pytest.raises(Misconfigured, match=r"is not a file|cannot be read"):
        read_text(tmp_path)


def test_reading_that_hangs_is_left_behind_and_not_repeated() -> None:
    release = threading.Event()
    started = []

    def hang() -> str:
        started.append(1)
        release.wait(PATIENCE_SECONDS)
        return "late"

    async def run() -> None:
        reading = Reading("hosts.txt", deadline_seconds=0.05)
        with pytest.raises(Failed, match="did not finish within"):
            await reading.do(hang)
        with pytest.raises(Failed, match="still hangs"):
            await reading.do(hang)
        release.set()
        for _ in range(500):  # the thread tells nobody when it is back
            if await _attempt(reading):
                break
            await asyncio.sleep(0.01)
        assert await reading.do(lambda: "again") == "again"

    asyncio.run(run())
    assert started == [1]


async def _attempt(reading: Reading) -> bool:
    try:
        await reading.do(lambda: None)
    except Failed:
        return False
    return True


def test_a_read_that_hangs_does_not_end_the_waiting(hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: Path) -> None:
        raise Failed("the drive is gone")

    looks = _watch(hosts, {2: lambda: monkeypatch.setattr(files, "stamp", fail)})
    assert looks.now == 30
