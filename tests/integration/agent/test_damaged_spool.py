"""A spool that was damaged while the hub was away: the hub gets the rest, and is told how much is lost."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import msgspec
import pytest

from gpuherd.agent.address import HubAddress
from gpuherd.agent.enrol import Credentials
from gpuherd.agent.link import Link
from gpuherd.agent.numbering import Entry, FrameKind
from gpuherd.agent.outbox import Outbox
from gpuherd.agent.segments import RunFacts
from gpuherd.api.hub import Hub
from gpuherd.fleet.node import NodeHealth
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wiring.past import past_outfit
from support.counting_node import CountingNode, remembered
from support.hub import eventually, running_hub
from support.hub_process import ShiftedClock
from support.soak import SOAK
from support.tally import Tally

HOUR = 3600.0
RUNS = ("run-0", "run-1", "run-2")
FRAMES = 60
FACTS = RunFacts(boot_id="", layout=LAYOUT, interval_seconds=1.0)


def spool(folder: Path, node: CountingNode) -> None:
    """Leave three runs, each with facts, table and samples whose values tell them apart."""
    for number, boot_id in enumerate(RUNS):
        current = Outbox(folder, 10**7, msgspec.structs.replace(FACTS, boot_id=boot_id)).current
        current.put([numbered(0, FrameKind.FACTS, node.facts_message(1))])
        current.put([numbered(1, FrameKind.TABLE, node.table_message(1))])
        for seq in range(2, FRAMES):
            known_as = 1000 * number + seq
            node.times[known_as] = node.node_time() - 600.0 + 60 * number + seq
            current.put([numbered(seq, FrameKind.SAMPLE, node.sample_message(known_as))])


def numbered(seq: int, kind: FrameKind, message: bytes) -> Entry:
    """Give a frame another number."""
    return Entry(seq, kind, msgspec.msgpack.encode({**msgspec.msgpack.decode(message), "seq": seq}))


def health_of(hub: Hub) -> NodeHealth:
    (health,) = hub.health().nodes
    return health


@pytest.mark.chaos
@pytest.mark.promise("damaged-spool-costs-what-was-damaged")
@pytest.mark.parametrize("seed", range(2 if SOAK == 1 else 10))
def test_the_hub_gets_the_rest_and_is_told_what_is_lost(tmp_path: Path, tally: Tally, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - places of damage
    lost = dice.sample(range(2, FRAMES - 1), 5)

    async def story() -> None:
        shift = -(time.time() % HOUR)
        past = past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), tmp_path)
        options = {"past": past, "clock": ShiftedClock(shift)}
        async with running_hub(tmp_path, hub_options=options) as hub:
            credential = (await hub.admit("n1")).credential
            folder = tmp_path / "agent"
            folder.mkdir()
            (folder / "credential").write_text(credential)
            node = CountingNode(hub.url, credential, shift_seconds=shift)
            spool(folder / "spool", node)
            damage(folder / "spool", lost)
            (folder / "spool").joinpath("0000000002-run-2", "run").write_bytes(bytes(600))
            outbox = Outbox(folder / "spool", 10**7, msgspec.structs.replace(FACTS, boot_id="now"))
            address = HubAddress.parse(hub.url)
            credentials = Credentials(address, credential_file=folder / "credential")
            task = asyncio.create_task(Link(address, credentials, outbox, node_time=node.node_time).run())
            try:
                await eventually(lambda: outbox.older_run() is None)
                await eventually(lambda: health_of(hub).dropped_by_agent > 0)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            dropped = health_of(hub).dropped_by_agent
            shown = hub.fleet.node("n1")
            assert shown is not None
            notes = [note.code for note in shown.notes]
        wanted = {
            1000 * number + seq
            for number in range(3)
            for seq in range(2, FRAMES)
            if number != 1 or seq not in lost
        }
        kept = remembered(tmp_path / "history")["n1"]
        missing = len(wanted - set(kept))
        tally.add(
            "agent's spool damaged, one `run` file zeroed",
            tries=len(wanted),
            held=len(wanted) - missing,
            lost=missing,
            figure=f"{len(lost)} frames damaged, {dropped} told",
        )
        assert set(kept) == wanted
        assert dropped == len(lost)
        assert "frames_dropped" in notes
        assert not list((folder / "spool").glob("*-run-*"))

    asyncio.run(story())


def damage(folder: Path, lost: list[int]) -> None:
    """Flip a bit in these frames of the second run."""
    (path,) = (folder / "0000000001-run-1").glob("*.seg")
    content = bytearray(path.read_bytes())
    marks = content[:8]
    places = [place for place in range(len(content)) if content.startswith(marks, place)]
    # The first records are the run, then frame 0.
    for seq in lost:
        content[places[seq + 1] + 40] ^= 1
    path.write_bytes(content)
