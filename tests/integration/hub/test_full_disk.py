"""A hub that starts on a disk without any room: the live view is there, what is wrong is said, and it heals."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.hub import Hub
from gpuherd.auth.enrolment import Enrolled
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.errors import Failed
from gpuherd.wiring.past import past_outfit
from support.booking_drafts import BY, draft
from support.hub import NodeClient, eventually, get_json, running_hub
from support.running import PATIENCE_SECONDS
from support.tally import Tally

NODES = 3


@pytest.fixture(params=["tmpfs", "ext4"])
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk of a few megabytes."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder, image = tmp_path / "disk", tmp_path / "image"
    folder.mkdir()
    if request.param == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "gpuherd-test", str(folder)]
    else:
        image.write_bytes(bytes(32 * 2**20))
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        mount = ["mount", "-o", "loop", str(image), str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Take all the room there is, to the last byte."""
    path = folder / "filler"
    with path.open("ab", buffering=0) as opened:
        for size in (65_536, 512, 1):
            with suppress(OSError):
                while True:
                    opened.write(bytes(size))
    return path


def remembering(state_dir: Path) -> dict[str, Any]:
    return {"past": past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), state_dir)}


async def report(hub: Hub, enrolled: Enrolled, boot_id: str) -> NodeClient:
    """Connect a node and send what it sees, without waiting for the acknowledgement."""
    node = NodeClient(hub.url, enrolled.credential, boot_id=boot_id)
    await node.open()
    await node.describe()
    await node.sample()
    return node


@pytest.mark.chaos
@pytest.mark.promise("full-disk-start")
def test_a_hub_starts_on_a_full_disk_and_picks_the_disk_up_when_there_is_room(
    small_disk: Path, tally: Tally
) -> None:
    state_dir, start = small_disk / "state", int(time.time()) + 3600

    async def before() -> list[Enrolled]:
        async with running_hub(state_dir, hub_options=remembering(state_dir)) as hub:
            enrolled = [await hub.admit(f"n{number}") for number in range(NODES)]
            for each in enrolled:
                node = await report(hub, each, "first")
                await node.wait_acked(node.seq)
                await node.close()
            hub.records.bookings.create([draft(DeviceRef("n0", "GPU-0"), at=start)], now=start - 60, by=BY)
        return enrolled

    async def on_the_full_disk(enrolled: list[Enrolled], filler: Path) -> list[str]:
        async with running_hub(state_dir, hub_options=remembering(state_dir), public="read") as hub:
            restored = {node.node_id for node in hub.fleet.node_health()}
            assert restored == {each.node_id for each in enrolled}
            nodes = [await report(hub, each, "second") for each in enrolled]
            await eventually(lambda: hub.fleet.totals().nodes.get("live") == NODES)
            await eventually(lambda: hub.health().status == "degraded")
            with pytest.raises(Failed, match="free some space"):
                await hub.admit("one more")
            await eventually(lambda: hub.health().store.state == "failing")
            # What is there can be looked at.
            [bar] = (await get_json(f"{hub.url}api/v1/timeline"))["bookings"]
            assert bar["starts_at"] == start
            past = await get_json(f"{hub.url}api/v1/history/nodes/n0", params={"from": "-1h"})
            assert past["subjects"], past
            with pytest.raises(Failed, match="free some space"):
                await hub.record_calls.run(
                    hub.records.bookings.create,
                    [draft(DeviceRef("n0", "GPU-1"), at=start)],
                    now=start - 60,
                    by=BY,
                )
            said = list(hub.health().reasons)
            notices = [notice.message for notice in hub.notices()]
            tally.add(
                "start on a full disk: nodes live", tries=NODES, held=hub.fleet.totals().nodes.get("live", 0)
            )
            assert any("free some space" in reason for reason in said), said
            assert any("free some space" in notice for notice in notices), notices
            assert all(node.acked < node.seq for node in nodes)
            await asyncio.to_thread(filler.unlink)
            for node in nodes:
                await node.wait_acked(node.seq)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    with suppress(Failed):
                        await hub.admit("one more")
                        break
                    await asyncio.sleep(0.05)
            assert not any("free some space" in notice.message for notice in hub.notices())
            for node in nodes:
                await node.close()
        return said

    enrolled = asyncio.run(before())
    # With it history would make a little room for itself.
    (state_dir / "history" / "ballast").unlink()
    filler = fill(small_disk)
    asyncio.run(on_the_full_disk(enrolled, filler))
