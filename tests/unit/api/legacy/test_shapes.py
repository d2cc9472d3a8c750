"""Any node of the herd in the shapes of older tools."""

from __future__ import annotations

import json
import time

import pytest
from msgspec import structs

from gpuherd.api.legacy.get_status import status_of
from gpuherd.api.legacy.gpustat_shape import gpustat_payload, mapped_ip
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.views import NodeView
from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import Address
from gpuherd.model.processes import Process, ProcessUse
from support.herd import HOLDING, IDLE, WORKING, ManualClock, Speaker, gpu

PARENT = gpu(0, is_partitioned=True)
SLICE = gpu(1, kind="slice", parent_uuid="GPU-0", profile="1g.10gb")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fleet(clock: ManualClock) -> Fleet:
    fleet = Fleet(clock=clock)
    fleet.add_node("gpu01", "gpu01")
    return fleet


def seen(fleet: Fleet) -> NodeView:
    fleet.tick()
    node = fleet.node("gpu01")
    assert node is not None
    return node


def working(fleet: Fleet, clock: ManualClock) -> NodeView:
    speaker = Speaker(fleet, clock, "gpu01")
    process = Process(pid=77, user="alice", command="/opt/python train.py")
    speaker.describe(gpu(0), gpu(1), processes=(process,), uses=(ProcessUse(process=0, device=1),))
    speaker.sample(IDLE, structs.replace(WORKING, fan_ratio=0.4, power_watts=249.6))
    return seen(fleet)


def with_addresses(node: NodeView, *addresses: Address) -> NodeView:
    assert node.host is not None
    return structs.replace(node, host=structs.replace(node.host, addresses=addresses))


def test_a_node_as_gpustat_would_print_it(fleet: Fleet, clock: ManualClock) -> None:
    node = with_addresses(
        working(fleet, clock),
        Address("lo", "127.0.0.1"),
        Address("eno1", "fe80::1"),
        Address("eno1", "10.0.0.7"),
    )
    payload = gpustat_payload(node)
    assert payload is not None
    assert payload["hostname"] == "gpu01"
    assert payload["ip"] == "::ffff:10.0.0.7"
    assert time.mktime(time.strptime(payload["query_time"][:19], "%Y-%m-%dT%H:%M:%S")) == int(clock.wall())
    assert payload["gpus"][1] == {
        "index": 1,
        "uuid": "GPU-1",
        "name": "NVIDIA A100-SXM4-80GB",
        "temperature.gpu": 60,
        "fan.speed": 40,
        "utilization.gpu": 90,
        "utilization.enc": None,
        "utilization.dec": None,
        "power.draw": 250,
        "enforced.power.limit": None,
        "memory.used": 40 * 1024,
        "memory.total": 80 * 1024,
        "processes": [
            {
                "username": "alice",
                "command": "python",
                "full_command": ["/opt/python", "train.py"],
                "gpu_memory_usage": 10 * 1024,
                "cpu_percent": 100.0,
                "cpu_memory_usage": 2**30,
                "pid": 77,
            }
        ],
    }
    assert payload["gpus"][0]["processes"] == []
    json.dumps(payload, allow_nan=False)


def test_the_time_stands_still_while_a_node_is_silent(fleet: Fleet, clock: ManualClock) -> None:
    before = gpustat_payload(working(fleet, clock))
    clock.advance(100)
    after = gpustat_payload(seen(fleet))
    assert before is not None
    assert after is not None
    assert before["query_time"] == after["query_time"]


def test_a_node_that_never_reported_is_not_in_the_gpustat_answer(fleet: Fleet) -> None:
    assert gpustat_payload(seen(fleet)) is None


@pytest.mark.parametrize(("ip", "shown"), [("10.0.0.7", "::ffff:10.0.0.7"), ("fd00::1", "fd00::1"), ("", "")])
def test_the_old_page_cuts_seven_characters_off(ip: str, shown: str) -> None:
    assert mapped_ip(ip) == shown


def test_slices_show_as_processes_of_the_gpu_they_are_cut_from(fleet: Fleet, clock: ManualClock) -> None:
    speaker = Speaker(fleet, clock, "gpu01")
    speaker.describe(
        PARENT, SLICE, processes=(Process(pid=5, user="bob"),), uses=(ProcessUse(process=0, device=1),)
    )
    speaker.sample(DeviceSample(), HOLDING)
    node = seen(fleet)
    payload = gpustat_payload(node)
    assert payload is not None
    (only,) = payload["gpus"]
    assert (only["uuid"], only["utilization.gpu"]) == ("GPU-0", None)
    assert [process["username"] for process in only["processes"]] == ["bob"]
    assert [user["username"] for user in status_of(node)["gpus"][0]["users"]] == ["bob"]


def test_a_node_as_the_main_node_of_the_http_tool_would_list_it(fleet: Fleet, clock: ManualClock) -> None:
    node = with_addresses(
        working(fleet, clock), Address("eno1", "10.0.0.7"), Address("docker0", "172.17.0.1")
    )
    status = status_of(node)
    assert list(status) == ["hostname", "last_update", "ips", "gpus", "status", "version"]
    assert status["ips"] == [["eno1", "10.0.0.7"]]
    assert status["status"] is True
    assert status["version"] == "NVIDIA A100-SXM4-80GB"
    assert status["gpus"][1] == {
        "index": 1,
        "name": "NVIDIA A100-SXM4-80GB",
        "use_mem": 40 * 1024,
        "tot_mem": 80 * 1024,
        "utilize": 90,
        "temp": 60,
        "users": [{"pid": 77, "mem(MiB)": 10 * 1024, "username": "alice", "command": "/opt/python train.py"}],
    }


def test_a_node_listed_by_its_address_goes_by_what_it_calls_itself(fleet: Fleet, clock: ManualClock) -> None:
    node = working(fleet, clock)
    assert node.host is not None
    for hostname, told in (
        ("node_1", "node_1"),
        ("<b>1", "\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}1"),
    ):
        host = structs.replace(node.host, hostname=hostname)
        shown = structs.replace(node, name=f"{hostname} (10.0.0.7)", host=host)
        assert status_of(shown)["hostname"] == told


def test_a_never_seen_host_is_listed_as_down(fleet: Fleet) -> None:
    assert status_of(seen(fleet)) == {"hostname": "gpu01", "gpus": [], "status": False, "version": ""}


def test_a_node_is_down_after_a_minute_and_its_last_data_stays(fleet: Fleet, clock: ManualClock) -> None:
    working(fleet, clock)
    clock.advance(30)
    assert status_of(seen(fleet))["status"] is True
    clock.advance(60)
    status = status_of(seen(fleet))
    assert status["status"] is False
    assert status["gpus"][1]["use_mem"] == 40 * 1024


def test_the_old_page_gets_nothing_to_make_html_of(fleet: Fleet, clock: ManualClock) -> None:
    speaker = Speaker(fleet, clock, "gpu01")
    evil = "<img src=x onerror=alert(1)>&\"'"
    speaker.describe(
        gpu(0, name=evil),
        processes=(Process(pid=1, user=evil, command=evil),),
        uses=(ProcessUse(process=0, device=0),),
    )
    speaker.sample(WORKING)
    status = status_of(with_addresses(seen(fleet), Address("<b>", "<script>")))
    only = status["gpus"][0]
    user = only["users"][0]
    for text in (status["version"], only["name"], user["username"], user["command"]):
        assert "img src=x onerror=alert(1)" in text
        assert not {"<", ">", "&", '"', "'"} & set(text)
    assert not {"<", ">"} & set("".join(status["ips"][0]))
