"""A hub that is frozen, without room or with a wrong clock while nodes report: all is remembered once, at its time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.settings import HubSettings
from gpuherd.history.batch import NOT_JUDGED
from gpuherd.history.journal import JournalFiles
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wire.frames import Welcome
from gpuherd.wiring.past import past_outfit
from support.counting_node import CountingNode, remembered, remembered_times
from support.crowd import Losses
from support.doctor import doctors_words
from support.hub import eventually, running_hub
from support.hub_process import HubProcess, ShiftedClock
from support.running import PATIENCE_SECONDS
from support.soak import SOAK
from support.tally import Tally

HOUR = 3600.0


class _Latecomer(CountingNode):
    """Takes a while between the handshake and its hello, or between its hello and its backlog."""

    def __init__(self, *args: Any, pauses_before_hello: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_connected, self.may_go_on = asyncio.Event(), asyncio.Event()
        self._pauses_before_hello = pauses_before_hello

    async def open(self, *, live_from_seq: int = 0) -> Welcome:
        await self.dial()
        if self._pauses_before_hello:
            await self._pause()
        welcome = await self.hello(live_from_seq=self.seq + 1)
        if not self._pauses_before_hello:
            await self._pause()
        return welcome

    async def _pause(self) -> None:
        self.is_connected.set()
        await self.may_go_on.wait()


@pytest.mark.chaos
@pytest.mark.promise("late-hello-moves-nothing")
def test_a_hub_that_is_frozen_right_after_a_node_connects_misdates_nothing(
    tmp_path: Path, tally: Tally
) -> None:
    enrolment = open_enrolment(HubSettings(state_dir=tmp_path))
    frozen_seconds = 3.0 if SOAK == 1 else 5.0
    # By the hub's clock an hour has just begun; one node is in step with it, one an hour ahead, one an hour behind.
    hub_shift = -(time.time() % HOUR)
    clocks = {"in-step": 0.0, "ahead": HOUR, "behind": -HOUR}

    async def story() -> None:
        hub = HubProcess(tmp_path, history=HistorySettings(min_free_bytes=0), shift_seconds=hub_shift)
        nodes = {}
        for pauses_before_hello in (True, False):
            for clock, ahead_seconds in clocks.items():
                name = f"{clock}-{'hello' if pauses_before_hello else 'backlog'}"
                nodes[name] = node = _Latecomer(
                    hub.url,
                    enrolment.admit(name, now=time.time()).credential,
                    shift_seconds=hub_shift,
                    ahead_seconds=ahead_seconds,
                    every_seconds=0.2,
                    pauses_before_hello=pauses_before_hello,
                )
                for seq in range(3, 60):
                    node.times[seq] = node.node_time() - (60 - seq) * 0.2
                node.seq = 59
        await hub.start()
        running = [asyncio.create_task(node.run()) for node in nodes.values()]
        for node in nodes.values():
            await node.is_connected.wait()
        hub.freeze()
        for node in nodes.values():
            node.may_go_on.set()
        await asyncio.sleep(frozen_seconds)  # the fault itself
        hub.thaw()
        for node in nodes.values():
            await eventually(lambda node=node: node.acked > 70)  # type: ignore[misc]
            node.is_finishing = True
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*running)
        assert await hub.stop() == 0
        kept = remembered_times(tmp_path / "history")
        losses = Losses()
        for name, node in nodes.items():
            with losses.a_try():
                losses.count_samples(name, node, node.seq, kept[name])
        losses.add_to(
            tally,
            f"hub frozen {frozen_seconds:.0f} s as a node connects",
            f"{sum(map(len, kept.values()))} samples, waiting or live",
        )
        assert losses.all == (set(), set(), set())
        assert losses.held == len(nodes)

    asyncio.run(story())


@pytest.mark.chaos
@pytest.mark.promise("hub-clock-is-said")
def test_a_hub_whose_own_clock_is_wrong_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        past = past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), tmp_path)
        clock = ShiftedClock(3 * 24 * HOUR)
        async with running_hub(tmp_path, hub_options={"past": past, "clock": clock}) as hub:
            nodes = [
                CountingNode(hub.url, (await hub.admit(f"n{number}")).credential, every_seconds=0.1)
                for number in range(4)
            ]
            running = [asyncio.create_task(node.run()) for node in nodes]
            said = "the hub's clock is 3 d ahead of those of 4 of 4 nodes"
            await eventually(lambda: any(said in reason for reason in hub.health().reasons))
            await eventually(lambda: any(said in notice.message for notice in hub.fleet.view().notices))
            assert any(said in word for word in await doctors_words(hub, tmp_path))
            for node in nodes:
                node.is_finishing = True
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*running)

    asyncio.run(story())


def test_without_room_the_herd_stays_live_and_all_is_remembered_when_there_is_room(tmp_path: Path) -> None:
    async def story() -> None:
        past = past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), tmp_path)
        clock = ShiftedClock(-(time.time() % HOUR))
        async with running_hub(tmp_path, hub_options={"past": past, "clock": clock}) as hub:
            assert hub._remembering is not None
            journal, intake = hub._remembering.library.historian._journal, hub.fleet.intake
            assert journal is not None
            assert intake is not None
            intake._bound_bytes_now = lambda: 100_000
            node = CountingNode(hub.url, (await hub.admit("load")).credential)
            running = asyncio.create_task(node.run())
            await eventually(lambda: node.acked > 2)
            journal._min_free_bytes = 2**60
            await eventually(lambda: any("min_free_bytes" in reason for reason in hub.health().reasons))
            await eventually(lambda: intake.is_closed)
            seen = hub.fleet.received_at("load")
            await eventually(lambda: hub.fleet.received_at("load") != seen)
            acked = node.acked
            assert acked <= max(remembered(tmp_path / "history")["load"]), "only what is kept is acknowledged"
            assert hub.health().store.state == "ok"
            journal._min_free_bytes = 0
            await eventually(lambda: node.acked > acked + 50)
            node.is_finishing = True
            async with asyncio.timeout(PATIENCE_SECONDS):
                await running
            health = hub.health().history
            assert health is not None
            assert (health.journal.state, health.is_closed, health.lost_samples) == ("ok", False, 0)
            assert health.sent_again_samples > 0
        assert remembered(tmp_path / "history")["load"] == Counter(range(3, node.seq + 1))

    asyncio.run(story())


def kept_states(folder: Path) -> list[str]:
    """Give the states that the samples in the journal were judged to be, in order."""
    files = JournalFiles(folder / "journal")
    batches = [batch for number in files.paths() for _, batch in files.read(number).batches]
    codes = [code for batch in batches for code in batch.devices.state.tolist()]
    return ["not judged" if code == NOT_JUDGED else DEVICE_STATES[code] for code in codes]


@pytest.mark.parametrize(("tick_seconds", "state"), [(0.05, "busy"), (60.0, "not judged")])
def test_a_single_sample_is_kept_with_what_it_shows_or_unjudged_if_that_takes_long(
    tmp_path: Path, tick_seconds: float, state: str
) -> None:
    async def story() -> None:
        options = {
            "past": past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), tmp_path),
            "clock": ShiftedClock(-(time.time() % HOUR)),
        }
        async with running_hub(tmp_path, hub_options=options, tick_seconds=tick_seconds) as hub:
            node = CountingNode(hub.url, (await hub.admit("load")).credential)
            await node.open()
            await node.send(node.facts_message(1))
            await node.send(node.table_message(2))
            await node.send(node.sample_message())
            await node.wait_acked(3)
            await node.send(node.sample_message())
            received = hub.fleet.node_health
            await eventually(lambda: received()[0].accepted == 2)
        assert remembered(tmp_path / "history")["load"] == Counter([3, 4])
        assert kept_states(tmp_path / "history")[:4] == [state] * 4
        await node.close()

    asyncio.run(story())
