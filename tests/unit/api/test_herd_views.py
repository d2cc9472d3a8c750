"""Views are made once a tick for each class; doors of older tools show their own nodes as these always did."""

from __future__ import annotations

import asyncio

import pytest

from gpuherd.api.command_reads import CommandReads
from gpuherd.api.errors import HttpError
from gpuherd.api.health import (
    Health,
    HealthSummary,
    LinkHealth,
    LoopHealth,
    StoreHealth,
    ViewerHealth,
    health_for,
)
from gpuherd.api.herd_views import NODES_AT_ONCE, SMALL_HERD, HerdViews
from gpuherd.fleet.fleet import Fleet
from gpuherd.history.historian import HistoryHealth, JournalHealth
from gpuherd.history.store import SinkHealth
from gpuherd.model.history import MissingPart
from gpuherd.model.hosts import HostFacts
from gpuherd.model.people import Viewer
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import NodeFacts
from gpuherd.model.targets import NodeWay
from support.herd import WORKING, ManualClock, Speaker, gpu

WAYS: tuple[NodeWay, ...] = ("gpustat", "node_info", "push")


@pytest.fixture
def views() -> HerdViews:
    clock = ManualClock()
    fleet = Fleet(clock=clock)
    for way in WAYS:
        fleet.add_node(way, way, way)
        node = Speaker(fleet, clock, way)
        node.describe(
            gpu(0),
            processes=(Process(pid=1, user="ada", command="python3 train.py"),),
            uses=(ProcessUse(process=0, device=0),),
        )
        node.sample(WORKING)
    fleet.tick()
    return HerdViews(fleet, CommandReads(clock, is_public=False))


@pytest.mark.parametrize("way", ["gpustat", "node_info"])
def test_a_door_shows_command_lines_of_its_own_nodes_only(views: HerdViews, way: NodeWay) -> None:
    shown = {node.id: node.devices[0].processes[0] for node in views.door(way).nodes}
    assert {node_id: process.command for node_id, process in shown.items()} == {
        each: "python3 train.py" if each == way else "python" for each in WAYS
    }
    assert {process.user for process in shown.values()} == {"ada"}


def test_each_class_has_one_view_until_the_next_tick(views: HerdViews) -> None:
    member, public = Viewer(privacy="member"), Viewer(privacy="public")
    first = views.herd(member)
    assert views.herd(member) is first
    assert views.herd(public) is not first
    assert views.users(public) is views.users(public)
    views.renew()
    assert views.herd(member) is not first


def test_only_nodes_by_a_name_as_they_are_and_as_they_were_judged() -> None:
    clock = ManualClock()
    fleet = Fleet(clock=clock)
    for node_id, name in (("gpu07.lab", "Big.One"), ("b", "small"), ("GPU07.old", "c"), ("d", "gpu08.lab")):
        fleet.add_node(node_id, name, "push")
    node = Speaker(fleet, clock, "b")
    node.describe(gpu(0))
    node.facts = NodeFacts(host=HostFacts(hostname="GPU08"), devices=(gpu(0),))
    node.revision += 1
    node.send_facts()
    node.run_table()
    node.sample(WORKING)
    fleet.tick()
    judged_at = clock.wall()
    clock.advance(100)
    views = HerdViews(fleet, CommandReads(clock, is_public=False))
    member, public = Viewer(privacy="member"), Viewer(privacy="public")

    def found(viewer: Viewer, name: str) -> list[str]:
        view = views.called(viewer, name)
        assert view is not None
        return [node.id for node in view.nodes]

    assert found(member, "GPU07.lab") == ["gpu07.lab"]
    assert found(member, "gpu07") == found(member, "gpu07.else") == ["gpu07.lab", "GPU07.old"]
    assert found(member, "gpu08") == ["b"]
    assert found(public, "gpu08") == ["d"], "who sees no host name cannot guess it"
    assert found(member, "gpu0") == found(member, "") == []
    seen = views.called(member, "small")
    assert seen is not None
    assert seen.nodes[0].age_seconds == pytest.approx(100)
    assert seen.time == views.herd(member).time == judged_at, (
        "by that a clockwork that stands still is noticed"
    )
    assert seen.totals == views.herd(member).totals


def test_nodes_of_one_beginning_are_not_all_put_together_at_once() -> None:
    fleet = Fleet(clock=ManualClock())
    for number in range(SMALL_HERD + 1):
        fleet.add_node(f"10.0.0.{number}", f"10.0.0.{number}", "gpustat")
    fleet.tick()
    views = HerdViews(fleet, CommandReads(ManualClock(), is_public=False))
    assert views.called(Viewer(privacy="member"), "10.1.1.1") is None
    one = views.called(Viewer(privacy="member"), "10.0.0.7")
    assert one is not None
    assert [node.id for node in one.nodes] == ["10.0.0.7"]


@pytest.mark.parametrize("viewer", [Viewer(privacy=None), Viewer(privacy="counts")])
def test_who_sees_totals_alone_reads_nothing_else(views: HerdViews, viewer: Viewer) -> None:
    for read in (
        lambda: views.herd(viewer),
        lambda: views.called(viewer, "push"),
        lambda: views.called(viewer, "no such node"),
        lambda: views.node(viewer, "push"),
        lambda: views.node(viewer, "no such node"),
        lambda: views.devices(viewer),
        lambda: views.users(viewer),
        lambda: views.recent(viewer, "push", None),
    ):
        with pytest.raises(HttpError):
            read()
    with pytest.raises(HttpError):
        asyncio.run(views.glance(viewer))


def test_errors_of_the_hubs_own_parts_are_for_admins() -> None:
    loop = LoopHealth(
        name="keep last state",
        state="failing",
        rounds=1,
        errors=1,
        consecutive_errors=1,
        last_error="disk /secret/place is full",
        last_error_at=None,
        last_success_at=None,
    )
    health = Health(
        status="degraded",
        reasons=("keep last state: disk /secret/place is full", "hosts.txt: gpu07 is no address"),
        version="1",
        time=1.0,
        uptime_seconds=1.0,
        tick=1,
        loops=(loop,),
        store=StoreHealth(
            state="failing", saved_at=None, waiting_nodes=3, last_error="disk /secret/place is full"
        ),
        history=HistoryHealth(
            journal=JournalHealth(state="ok"),
            sinks=(
                SinkHealth(
                    name="usage",
                    state="ok",
                    unreadable=(MissingPart(start=1.0, end=2.0, reason="/secret/place: no such file"),),
                ),
            ),
        ),
        links=LinkHealth(open=1, replaced=0, refused_credentials=0, flapping=("gpu07",)),
        lists=(),
        viewers=ViewerHealth(open=1, limit=9, resyncs=0),
        nodes=(),
    )
    assert health_for(health, "admin") is health
    shown = health_for(health, "member")
    assert "secret" not in str(shown)
    assert isinstance(shown, Health)
    assert shown.history is not None
    assert [part.start for part in shown.history.sinks[0].unreadable] == [1.0]
    assert shown.reasons == (
        "keep last state: failing; the hub's log says why",
        "hosts.txt: gpu07 is no address",
    )
    for privacy in (None, "counts", "public"):
        summary = health_for(health, privacy)
        assert summary == HealthSummary(status="degraded", version="1", time=1.0, uptime_seconds=1.0)


def test_a_large_herd_is_put_together_while_others_go_on() -> None:
    clock = ManualClock()
    fleet = Fleet(clock=clock)
    for number in range(2 * SMALL_HERD):
        fleet.add_node(f"n{number}", f"n{number}", "push")
    fleet.tick()
    views = HerdViews(fleet, CommandReads(clock, is_public=False))
    member = Viewer(privacy="member")

    async def story() -> int:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        going_on = asyncio.create_task(others())
        await asyncio.gather(views.prepare(member), views.prepare(member))
        going_on.cancel()
        return turns

    assert asyncio.run(story()) > 2 * SMALL_HERD // NODES_AT_ONCE
    made = views.herd(member)
    assert [node.id for node in made.nodes] == list(fleet.node_ids())
    assert views.herd(member) is made
    views.renew()
    assert views.herd(member).nodes == made.nodes
