"""What older tools tell and cannot be: never enough to call a GPU free."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gpuherd.fleet.fleet import Fleet
from gpuherd.model.reports import Report
from gpuherd.sources.drop_csv import read_drop
from gpuherd.sources.gpustat_json import read_post
from gpuherd.sources.node_info_answer import read_answer
from gpuherd.sources.xmlrpc_answer import StartTimes, read_stats
from support.herd import ManualClock

WALL = 1_790_001_000.0
Tell = Callable[[object, object, list[Any]], Report]
"""Makes a report of one GPU from its utilisation, its total memory in MiB and what is listed as its processes."""


def plain(words: Sequence[str]) -> list[str]:
    return list(words)


def gpustat(utilization: object, total: object, processes: list[Any]) -> Report:
    gpu = {"index": 0, "uuid": "GPU-0", "name": "T4", "utilization.gpu": utilization, "memory.used": 0,
           "memory.total": total, "processes": processes}  # fmt: skip
    body = json.dumps({"hostname": "n1", "gpus": [gpu]}).encode()
    return read_post(body, peer="127.0.0.1", wall=WALL, scrub=plain).report


def node_info(utilization: object, total: object, processes: list[Any]) -> Report:
    gpu = {
        "index": 0,
        "name": "T4",
        "use_mem": 0,
        "tot_mem": total,
        "utilize": utilization,
        "users": processes,
    }
    body = json.dumps({"hostname": "n1", "gpus": [gpu], "last_update": "now"}).encode()
    return read_answer(body, name="n1", node_id="n1", wall=WALL, scrub=plain).report


def xmlrpc(utilization: object, total: object, processes: list[Any]) -> Report:
    gpu = {"model": "T4", "memory_total": total, "memory_used": 0, "utilization": utilization}
    stats = json.dumps({"gpus": [gpu], "procs": [processes]})
    return read_stats(stats, name="n1", node_id="n1", wall=WALL, scrub=plain, starts=StartTimes())


def drop(utilization: object, total: object, processes: list[Any]) -> Report:
    stamp = "2026/09/21 14:30:00.000"
    gpus = f"0, GPU-0, T4, 0 MiB, {total} MiB, {utilization} %, 0 %, 30, {stamp}\n"
    rows = [
        f"{stamp}, GPU-0, 1 MiB, python, {entry.get('pid')}" if isinstance(entry, dict) else str(entry)
        for entry in processes
    ]
    files = {"gpus": gpus.encode(), "processes": "".join(row + "\n" for row in rows).encode()}
    return read_drop(files, host="n1", wall=WALL, interval_seconds=5.0, scrub=plain).report


def state(report: Report) -> str:
    fleet = Fleet(clock=ManualClock())
    fleet.add_node("n1", "n1")
    fleet.accept_report("n1", report)
    fleet.tick()
    node = fleet.node("n1")
    assert node is not None
    return node.devices[0].availability.state


WAYS = [gpustat, node_info, xmlrpc, drop]


@pytest.mark.parametrize("tell", WAYS)
def test_an_idle_gpu_is_free(tell: Tell) -> None:
    assert state(tell(0, 15360, [])) == "free"


@pytest.mark.parametrize("tell", WAYS)
@pytest.mark.parametrize(
    "processes", [[{"pid": "[N/A]"}], [{"pid": -1}], [{}], ["[Insufficient Permissions]"], [7]]
)
def test_a_process_that_cannot_be_read(tell: Tell, processes: list[Any]) -> None:
    assert state(tell(0, 15360, processes)) == "unknown"


@pytest.mark.parametrize("tell", WAYS)
@pytest.mark.parametrize("utilization", [101, 65535, 2**32 - 1, -1])
def test_a_utilisation_that_cannot_be(tell: Tell, utilization: int) -> None:
    assert state(tell(utilization, 15360, [])) == "unknown"


@pytest.mark.parametrize("tell", WAYS)
def test_a_gpu_without_any_memory(tell: Tell) -> None:
    assert state(tell(0, 0, [])) == "unknown"


def test_a_dropped_process_on_a_slice() -> None:
    line = "2026/09/21 14:30:00.000, MIG-0-1, 1 MiB, python, 77"
    assert state(drop(0, 15360, [line])) == "unknown"
    assert state(drop(0, 15360, ["WARNING: infoROM is corrupted at gpu 0000:01:00.0"])) == "free"


@pytest.mark.parametrize("broken", ["[Insufficient Permissions]", "2026/09/21 14:30:00.000, GPU-0, 1 MiB"])
def test_a_line_within_the_newest_block_that_cannot_be_read(broken: str) -> None:
    other = "2026/09/21 14:30:00.000, GPU-1, 1 MiB, python, 77"
    assert state(drop(0, 15360, [other])) == "free"
    assert state(drop(0, 15360, [other, broken, other])) == "unknown"
    assert (
        state(drop(0, 15360, [broken, "2026/09/21 14:29:00.000, GPU-1, 1 MiB, python, 77", other])) == "free"
    )


def test_a_process_may_be_on_the_gpu_that_does_not_tell_its_uuid() -> None:
    stamp = "2026/09/21 14:30:00.000"
    rows = "".join(f"{n}, [Unknown Error], T4, 0, 15360, 0, 0, 30, {stamp}\n" for n in range(2))
    files = {"gpus": rows.encode(), "processes": f"{stamp}, GPU-7, 1 MiB, python, 77\n".encode()}
    report = read_drop(files, host="n1", wall=WALL, interval_seconds=5.0, scrub=plain).report
    assert len(report.facts.devices) == 2, "both are listed"
    assert state(report) == "unknown"


def test_more_processes_than_are_kept() -> None:
    many = [{"pid": pid} for pid in range(1, 1025)]
    gpus = [
        {"index": n, "uuid": f"GPU-{n}", "utilization.gpu": 0, "memory.used": 0, "memory.total": 15360,
         "processes": [{"pid": 1024 * n + entry["pid"]} for entry in many]}
        for n in range(5)
    ]  # fmt: skip
    body = json.dumps({"hostname": "n1", "gpus": gpus}).encode()
    report = read_post(body, peer="127.0.0.1", wall=WALL, scrub=plain).report
    assert [(p.code, p.device_uuid) for p in report.sample.problems] == [("processes_failed", "GPU-4")]


def test_two_gpus_with_one_id() -> None:
    gpus = [
        {"index": 1, "name": "T4", "use_mem": 0, "tot_mem": 15360, "utilize": 0, "users": users}
        for users in ([], [{"pid": 7}])
    ]
    body = json.dumps({"hostname": "n1", "gpus": gpus, "last_update": "now"}).encode()
    assert state(read_answer(body, name="n1", node_id="n1", wall=WALL, scrub=plain).report) == "fault"
