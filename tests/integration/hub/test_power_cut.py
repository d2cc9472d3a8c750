"""The power goes: only what was flushed is left, on a file system that has to recover itself."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import text

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.open_records import open_hub_records
from gpuherd.history.settings import HistorySettings
from support.crowd import Crowd, Losses
from support.hub import get_json
from support.hub_process import HubProcess
from support.soak import SOAK
from support.tally import Tally

CUTS = 2 if SOAK == 1 else 25
HOUR = 3600.0


def mount(*arguments: str | Path) -> None:
    """Mount something, or skip."""
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")


def unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", place], check=True)


class Disk:
    """A file system in an image in memory: nothing waits for the real disk."""

    def __init__(self, images: Path, place: Path) -> None:
        self.place = place
        self._images = images
        self._cuts = 0
        self._image.write_bytes(bytes(48 * 2**20))
        subprocess.run(["mkfs.ext4", "-q", self._image], check=True)
        place.mkdir()
        mount("-o", "loop", self._image, place)

    @property
    def _image(self) -> Path:
        return self._images / f"image-{self._cuts}"

    def flushed(self) -> bytes:
        """Give what is on the disk, without what only the kernel's memory has. No process may be writing."""
        while (content := self._image.read_bytes()) != self._image.read_bytes():
            pass  # the kernel has just written something by itself
        return content

    def put_back(self, content: bytes) -> None:
        """Mount the disk as it was at the power cut."""
        unmount(self.place)
        self._image.unlink()
        self._cuts += 1
        self._image.write_bytes(content)
        mount("-o", "loop", self._image, self.place)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    memory = tmp_path / "memory"
    memory.mkdir()
    mount("-t", "tmpfs", "-o", "size=256m", "gpuherd-test", memory)
    try:
        disk = Disk(memory, tmp_path / "disk")
        try:
            yield disk
        finally:
            unmount(disk.place)
    finally:
        unmount(memory)


@pytest.mark.chaos
@pytest.mark.promise("power-cuts-lose-nothing")
def test_power_cuts_lose_double_and_misdate_nothing_that_was_acknowledged(disk: Disk, tally: Tally) -> None:
    dice = random.Random(11)  # noqa: S311 - the same moments each time
    # By the hub's clock an hour has just begun: the journal is whole until the end of the test.
    shift_seconds = -(time.time() % HOUR)
    state_dir, history = disk.place / "state", HistorySettings(min_free_bytes=0)
    hub = HubProcess(state_dir, history=history, shift_seconds=shift_seconds)
    now = time.time() + shift_seconds
    crowd = Crowd(hub.url, hub.settings, now=now, shift_seconds=shift_seconds)
    with closing(open_enrolment(hub.settings)) as enrolment:
        token = enrolment.create_token(now=now, lifetime_seconds=7200, uses=CUTS)
    losses, damaged = Losses(), 0
    enrolled = set(crowd.nodes)

    def look() -> None:
        """Compare what is on the disk with what was acknowledged."""
        nonlocal damaged
        acked, wished = crowd.acked(), crowd.wished()
        damaged += crowd.count_samples(state_dir, acked, losses)
        with closing(open_hub_records(hub.settings)) as records:
            crowd.count_bookings(records.bookings.changed_after(0), wished, losses)
            known = {node.id for node in records.nodes.load().nodes}
            with records.engine.connect() as connection:
                damaged += connection.execute(text("PRAGMA integrity_check")).scalar_one() != "ok"
        losses.lost |= {f"node {name}" for name in enrolled - known}

    async def enrol(name: str) -> None:
        async with (
            aiohttp.ClientSession(hub.url) as http,
            http.post("api/v1/enroll", json={"token": token, "hostname": name}) as response,
        ):
            assert response.status == 201
            enrolled.add((await response.json())["node_id"])

    async def story() -> None:
        await hub.start()
        await crowd.start()
        for cut in range(CUTS):
            with losses.a_try():
                await crowd.progress(5)
                await enrol(f"new-{cut}")
                await asyncio.sleep(dice.uniform(0.0, 0.2))  # not waiting for anything: any moment will do
                hub.freeze()
                content = await asyncio.to_thread(disk.flushed)
                await hub.kill()
                await asyncio.to_thread(disk.put_back, content)
                await asyncio.to_thread(look)
                crowd.check()
                # The hub goes on with what is left: what it has forgotten would be asked for and written again.
                await hub.start()
                health = await get_json(f"{hub.url}api/v1/health", headers=crowd.bookers[0].headers)
                assert [reason for reason in health["reasons"] if "overloaded" not in reason] == []
                if cut == CUTS - 1:
                    await crowd.finish()
                    assert await hub.stop() == 0
                    look()

    with closing(hub):
        asyncio.run(story())
    losses.add_to(tally, "power cut", f"{crowd.figure}, {damaged} places damaged")
    assert losses.all == (set(), set(), set())
    assert damaged == 0
    assert losses.held == losses.tries == CUTS
