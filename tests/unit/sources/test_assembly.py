"""Reports put together part by part."""

from __future__ import annotations

from collections.abc import Sequence

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessSample, UseSample
from gpuherd.model.reports import MAX_DEVICES
from gpuherd.sources import assembly as module
from gpuherd.sources.assembly import Assembly, SteadyParts, remembering


def filled(devices: int, processes: int = 0) -> Assembly:
    assembly = Assembly()
    for index in range(devices):
        assembly.add_device(DeviceFacts(uuid=f"GPU-{index}", index=index, name="X"), DeviceSample())
    for pid in range(processes):
        assembly.add_use(pid % min(devices, MAX_DEVICES), Process(pid=pid), ProcessSample(), UseSample())
    return assembly


def test_too_many_devices_and_processes_are_left_out_and_counted() -> None:
    report = filled(MAX_DEVICES + 3, module.MAX_PROCESSES + 5).report(HostFacts(hostname="x"), time=1.0)
    assert len(report.facts.devices) == MAX_DEVICES
    assert [problem.code for problem in report.sample.problems] == ["too_many_devices"]
    assert len(report.table.processes) == module.MAX_PROCESSES
    assert report.table.omitted == 5
    assert report.mismatch() is None


def test_what_stays_the_same_stays_the_same_object() -> None:
    steady = SteadyParts()
    first = steady.keep(filled(2, 1).report(HostFacts(hostname="x"), time=1.0))
    second = steady.keep(filled(2, 1).report(HostFacts(hostname="x"), time=2.0))
    third = steady.keep(filled(2, 2).report(HostFacts(hostname="x"), time=3.0))
    assert second.facts is first.facts
    assert second.table is first.table
    assert third.facts is first.facts
    assert third.table is not first.table
    assert [report.sample.time for report in (first, second, third)] == [1.0, 2.0, 3.0]


def test_command_lines_are_scrubbed_once_and_memory_is_bounded() -> None:
    asked: list[Sequence[str]] = []

    def scrub(arguments: Sequence[str]) -> list[str]:
        asked.append(arguments)
        return ["…" for _ in arguments]

    look_up = remembering(scrub)
    assert [look_up(["a", "b"]) for _ in range(3)] == [["…", "…"]] * 3
    assert len(asked) == 1
    look_up(["a", "b"]).append("changed by the caller")
    assert look_up(["a", "b"]) == ["…", "…"]
    for number in range(module.REMEMBERED_COMMANDS):
        look_up([str(number)])
    look_up(["a", "b"])
    assert asked[-1] == ("a", "b")
    for _ in range(2):
        look_up(["x" * 2000])
    assert [len(arguments[0]) for arguments in asked[-2:]] == [2000, 2000]
