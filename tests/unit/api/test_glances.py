"""Glances are made once a tick for each class, beside what else the hub does, and compressed where that pays."""

from __future__ import annotations

import asyncio
import zlib

import msgspec
import pytest

from gpuherd.api.asgi import takes_gzip
from gpuherd.api.glances import COMPRESSED_FROM_BYTES, NODES_AT_ONCE, Glances
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.glance import Glance
from support.herd import WORKING, ManualClock, Speaker, gpu

NODES = 4 * NODES_AT_ONCE


def herd(nodes: int = NODES, gpus: int = 1) -> Fleet:
    clock = ManualClock()
    fleet = Fleet(clock=clock)
    for number in range(nodes):
        fleet.add_node(f"n{number}", f"n{number}", "push")
        node = Speaker(fleet, clock, f"n{number}")
        node.describe(*(gpu(index) for index in range(gpus)))
        node.sample(*[WORKING] * gpus)
    fleet.tick()
    return fleet


def test_one_for_all_who_ask_until_the_next_tick() -> None:
    async def story() -> None:
        glances = Glances(herd(2))
        first, again = await asyncio.gather(glances.glance("member"), glances.glance("member"))
        assert first is again is await glances.glance("member")
        assert await glances.glance("public") is not first
        glances.renew()
        assert await glances.glance("member") is not first

    asyncio.run(story())


def test_others_go_on_while_it_is_made_and_who_leaves_takes_nothing_away() -> None:
    async def story() -> int:
        fleet, turns = herd(), 0
        glances = Glances(fleet)

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        going_on = asyncio.create_task(others())
        leaving, staying = (asyncio.create_task(glances.glance("member")) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        made = msgspec.json.decode((await staying).plain, type=Glance)
        assert made.nodes.id == list(fleet.node_ids())
        going_on.cancel()
        return turns

    assert asyncio.run(story()) > NODES // NODES_AT_ONCE


def test_what_was_begun_before_a_tick_is_not_kept_beyond_it() -> None:
    async def story() -> None:
        fleet = herd(2)
        glances = Glances(fleet)
        asking = asyncio.create_task(glances.glance("member"))
        for _ in range(2):  # it is asked for, and put together, but not encoded yet
            await asyncio.sleep(0)
        fleet.tick()
        glances.renew()
        after = asyncio.create_task(glances.glance("member"))
        old = msgspec.json.decode((await asking).plain, type=Glance)
        assert msgspec.json.decode((await after).plain, type=Glance).tick == 2, (
            "what is asked for after it is new"
        )
        new = msgspec.json.decode((await glances.glance("member")).plain, type=Glance)
        assert (old.tick, new.tick) == (1, 2)

    asyncio.run(story())


def test_only_what_is_large_is_compressed_and_once() -> None:
    async def story() -> None:
        small = await Glances(herd(2)).glance("member")
        large = await Glances(herd(60, 16)).glance("member")
        assert await small.compressed() is None
        assert len(large.plain) > COMPRESSED_FROM_BYTES
        packed, again = await asyncio.gather(large.compressed(), large.compressed())
        assert packed is not None
        assert packed is again
        assert zlib.decompress(packed, 31) == large.plain
        assert len(packed) < len(large.plain) / 5

    asyncio.run(story())


def test_who_can_read_gzip() -> None:
    for accepted in ("gzip", "br, GZIP", "deflate, gzip;q=0.5", "gzip; q=1"):
        assert takes_gzip(accepted), accepted
    assert not takes_gzip(None)
    for accepted in ("", "identity", "gzip;q=0", "gzip; q=0.00", "xgzip"):
        assert not takes_gzip(accepted), accepted


def test_a_node_that_goes_and_comes_back_meanwhile_is_the_new_one() -> None:
    async def story() -> None:
        fleet = herd(NODES, 2)
        glances = Glances(fleet)
        asking = asyncio.create_task(glances.glance("member"))
        for _ in range(2):  # some nodes have been looked at, and the last has not
            await asyncio.sleep(0)
        last = f"n{NODES - 1}"
        fleet.remove_node(last)
        fleet.add_node(last, last, "push")
        await asking
        fleet.tick()
        glances.renew()
        glance = msgspec.json.decode((await glances.glance("member")).plain, type=Glance)
        assert len(glance.devices.uuid) == sum(glance.nodes.device_count) == 2 * (NODES - 1)
        (inventory,) = (node for node in fleet.snapshot().nodes if node.id == last)
        assert inventory.devices == (), "nor has the stream been told of the old one"

    asyncio.run(story())


def test_names_without_end_take_no_room_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.fleet.glancing.MAX_KEPT_MODELS", 8)
    clock = ManualClock()
    fleet = Fleet(clock=clock)
    fleet.add_node("n", "n", "push")
    for number in range(5):
        node = Speaker(fleet, clock, "n", f"boot-{number}")
        node.describe(*(gpu(index, name=f"NVIDIA Z{number}.{index % 3}") for index in range(6)))
        node.sample(*[WORKING] * 6)
        fleet.tick()
        glance = fleet.glance("member")
        named = [glance.models[model].name for model in glance.devices.model]
        assert named == [f"NVIDIA Z{number}.{index % 3}" for index in range(6)]
        assert len(fleet.glancer("member")._models) <= 8
