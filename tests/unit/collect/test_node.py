"""Reports put together from scripted collectors: fallbacks, recovery, caps, stable objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.collect.host import HostCollector
from gpuherd.collect.node import MAX_PROCESSES, RETRY_SECONDS, NodeCollector
from gpuherd.collect.processes import ProcessLookup
from gpuherd.collect.reading import CollectorFailed, CollectorUnavailable, GpuReading, SeenUse
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import GpuherdError
from gpuherd.model.processes import Process, ProcessSample
from gpuherd.model.reports import MAX_DEVICES, Problem


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def reading(count: int = 2, **more: object) -> GpuReading:
    devices = tuple(DeviceFacts(uuid=f"GPU-{index}", index=index, name="A100") for index in range(count))
    samples = tuple(DeviceSample(utilization_gpu=0.5) for _ in devices)
    return GpuReading(devices=devices, samples=samples, driver_version="550", cuda_version="12.4", **more)  # type: ignore[arg-type]


class Scripted:
    """A collector that does what it is told."""

    def __init__(self, name: str, does: GpuReading | GpuherdError) -> None:
        self.name = name
        self.does = does
        self.opened = 0
        self.is_open = False

    def open(self) -> None:
        self.opened += 1
        if isinstance(self.does, CollectorUnavailable):
            raise self.does
        self.is_open = True

    def read(self) -> GpuReading:
        assert self.is_open
        if isinstance(self.does, GpuherdError):
            raise self.does
        return self.does

    def skip(self, devices: frozenset[int]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "stat").write_bytes(b"cpu  1 0 1 7 1 0 0 0\nbtime 1700000000\n")
    return tmp_path


class Node:
    def __init__(self, proc: Path, clock: Clock) -> None:
        self.proc, self.clock = proc, clock
        self.made: list[NodeCollector] = []

    def __call__(self, *collectors: Scripted) -> NodeCollector:
        made = NodeCollector(
            collectors,
            processes=ProcessLookup(self.proc, monotonic=self.clock, trust_pids=True),
            host=HostCollector(
                proc_root=self.proc, etc_root=self.proc, addresses=tuple, monotonic=self.clock
            ),
            clock=self.clock,
            monotonic=self.clock,
        )
        self.made.append(made)
        return made


@pytest.fixture
def node(proc: Path, clock: Clock) -> Iterator[Node]:
    made = Node(proc, clock)
    yield made
    for collector in made.made:
        collector.close()
        collector.close()


NO_DRIVER = CollectorUnavailable("no_driver", "the driver is not installed: install it")
MISMATCH = CollectorUnavailable("driver_mismatch", "version mismatch: reboot")
GONE = CollectorFailed("driver_failed", "the driver was reloaded")


def test_a_report_fits_together_and_stays_the_same_object(node: Node, clock: Clock) -> None:
    collector = Scripted(
        "nvml", reading(uses=(SeenUse(device=1, pid=5, gpu_memory_bytes=7, utilization_sm=0.5),))
    )
    made = node(collector)
    first = made.read()
    clock.now += 1
    second = made.read()
    assert first.mismatch() is None
    assert second.facts is first.facts
    assert second.table is first.table
    assert first.facts.host.driver_version == "550"
    assert first.table.processes == (Process(pid=5, is_gone=True),)
    assert (first.table.uses[0].device, first.sample.uses[0].gpu_memory_bytes) == (1, 7)
    assert (first.sample.time, second.sample.time) == (1000.0, 1001.0)
    collector.does = reading(3)
    third = made.read()
    assert third.mismatch() is None
    assert len(third.facts.devices) == 3
    assert third.table is not first.table


def test_the_first_that_opens_is_used(node: Node) -> None:
    first, second, third = (
        Scripted("nvml", NO_DRIVER),
        Scripted("nvidia_smi", reading()),
        Scripted("amd", reading(9)),
    )
    report = node(first, second, third).read()
    assert len(report.facts.devices) == 2
    assert report.sample.problems == ()
    assert third.opened == 0


def test_no_gpu_says_why_for_each_way_and_tries_again(node: Node, clock: Clock) -> None:
    nvml, smi = (
        Scripted("nvml", NO_DRIVER),
        Scripted("nvidia_smi", CollectorUnavailable("no_driver", "no nvidia-smi")),
    )
    made = node(nvml, smi)
    report = made.read()
    assert report.facts.devices == ()
    (problem,) = report.sample.problems
    assert problem.code == "no_driver"
    assert not problem.is_fault
    assert "nvml: the driver is not installed: install it" in problem.message
    assert "nvidia_smi: no nvidia-smi" in problem.message
    clock.now += RETRY_SECONDS - 1
    again = made.read()
    assert nvml.opened == 1
    assert again.sample.problems[0].since == 1000.0
    nvml.does = reading()
    clock.now += 1
    assert len(made.read().facts.devices) == 2
    assert made.read().sample.problems == ()


def test_no_collectors_at_all(node: Node) -> None:
    report = node().read()
    assert report.facts.devices == ()
    assert report.sample.problems == ()
    assert report.mismatch() is None


def test_a_reloaded_driver_is_opened_again_at_once(node: Node) -> None:
    class Reloaded(Scripted):
        def read(self) -> GpuReading:
            if self.opened == 1 and self.does is not None:
                raise GONE
            return super().read()

    collector = Reloaded("nvml", reading())
    report = node(collector).read()
    assert collector.opened == 2
    assert len(report.facts.devices) == 2
    assert report.sample.problems == ()


def test_gpus_stay_listed_while_the_driver_is_gone_and_recover(node: Node, clock: Clock) -> None:
    collector = Scripted("nvml", reading())
    made = node(collector)
    before = made.read()
    collector.does = GONE
    lost = made.read()
    assert lost.facts.devices is before.facts.devices
    assert lost.sample.devices == (DeviceSample(), DeviceSample())
    assert [(p.code, p.is_fault, p.device_uuid) for p in lost.sample.problems] == [
        ("driver_failed", True, None)
    ]
    collector.does = MISMATCH
    clock.now += 1
    mismatch = made.read()
    assert [(p.code, p.is_fault) for p in mismatch.sample.problems] == [("driver_mismatch", True)]
    assert mismatch.mismatch() is None
    collector.does = reading()
    clock.now += RETRY_SECONDS
    healed = made.read()
    assert healed.sample.devices[0].utilization_gpu == 0.5
    assert healed.sample.problems == ()
    assert healed.facts is before.facts


def test_problems_are_dated_from_when_they_began(node: Node, clock: Clock) -> None:
    problem = Problem(code="gpu_lost", message="x", device_uuid="GPU-1", is_fault=True)
    collector = Scripted("nvml", reading(problems=(problem,)))
    made = node(collector)
    made.read()
    clock.now += 50
    assert made.read().sample.problems[0].since == 1000.0
    collector.does = reading()
    made.read()
    collector.does = reading(problems=(problem,))
    assert made.read().sample.problems[0].since == 1050.0


def test_known_processes_come_from_the_collector(node: Node) -> None:
    fake = Process(pid=5, user="user01", started_at=3.0)
    uses = (
        SeenUse(device=0, pid=5, process=fake, process_sample=ProcessSample(cpu_cores=1.0)),
        SeenUse(device=1, pid=5, process=fake),
    )
    report = node(Scripted("simulated", reading(uses=uses))).read()
    assert report.table.processes == (fake,)
    assert [use.process for use in report.table.uses] == [0, 0]
    assert report.sample.processes == (ProcessSample(cpu_cores=1.0),)


def test_caps_hold(node: Node) -> None:
    uses = tuple(SeenUse(device=pid % 600, pid=pid) for pid in range(5000))
    report = node(Scripted("nvml", reading(600, uses=uses))).read()
    assert report.mismatch() is None
    assert len(report.facts.devices) == MAX_DEVICES
    assert len(report.table.processes) == MAX_PROCESSES
    assert report.table.omitted == 5000 - MAX_PROCESSES
    assert any(problem.code == "too_many_devices" for problem in report.sample.problems)


def test_gpus_whose_processes_do_not_all_fit_are_not_called_free(node: Node) -> None:
    many = tuple(SeenUse(device=0, pid=pid) for pid in range(1, MAX_PROCESSES + 1))
    late = SeenUse(device=1, pid=MAX_PROCESSES + 1)
    report = node(Scripted("nvml", reading(uses=(*many, late)))).read()
    assert report.table.omitted == 1
    assert [(p.code, p.device_uuid) for p in report.sample.problems] == [
        ("processes_failed", report.facts.devices[1].uuid)
    ]


def test_more_problems_than_fit_leave_nothing_free(node: Node) -> None:
    fault = Problem(code="gpu_lost", message="lost", device_uuid="GPU-1", is_fault=True)
    noise = tuple(Problem(code="xid", message=str(number), device_uuid="GPU-0") for number in range(2000))
    problems = node(Scripted("nvml", reading(problems=(*noise, fault)))).read().sample.problems
    assert len(problems) == 1000
    assert (problems[0].code, problems[0].device_uuid) == ("gpu_lost", "GPU-1")
    assert (problems[-1].code, problems[-1].device_uuid) == ("processes_failed", None)


@pytest.mark.parametrize("is_host", [True, False])
def test_a_node_that_does_not_see_the_hosts_processes_says_so(
    proc: Path, clock: Clock, is_host: bool
) -> None:
    made = NodeCollector(
        [Scripted("nvml", reading())],
        processes=ProcessLookup(proc, monotonic=clock, trust_pids=is_host),
        host=HostCollector(proc_root=proc, etc_root=proc, addresses=tuple, monotonic=clock),
        clock=clock,
        monotonic=clock,
    )
    found = [(p.code, p.device_uuid, "--pid=host" in p.message) for p in made.read().sample.problems]
    made.close()
    assert found == ([] if is_host else [("processes_hidden", None, True)])
