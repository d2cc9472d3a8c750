"""Holes in a report are filled without moving anything to the wrong place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuherd.agent.keep import with_kept
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample

ALL = tuple(
    device
    for index in range(4)
    for device in (
        DeviceFacts(uuid=f"GPU-{index}", index=index, name="n"),
        DeviceFacts(uuid=f"MIG-{index}-0", index=0, name="n", kind="slice", parent_uuid=f"GPU-{index}"),
        DeviceFacts(uuid=f"MIG-{index}-1", index=1, name="n", kind="slice", parent_uuid=f"GPU-{index}"),
    )
)


def report_of(devices: tuple[DeviceFacts, ...], *problems: Problem) -> Report:
    """One process on each device, whose pid is the device's place in ``ALL``."""
    return Report(
        facts=NodeFacts(host=HostFacts(hostname="n"), devices=devices),
        table=ProcessTable(
            processes=tuple(Process(pid=ALL.index(device)) for device in devices),
            uses=tuple(ProcessUse(process=place, device=place) for place in range(len(devices))),
        ),
        sample=Sample(
            time=1.0,
            devices=tuple(DeviceSample(power_watts=float(ALL.index(device))) for device in devices),
            processes=(ProcessSample(),) * len(devices),
            uses=(UseSample(),) * len(devices),
            problems=problems,
        ),
    )


@given(st.sets(st.integers(0, 3)))
def test_skipped_gpus_stay_in_their_place(skipped: set[int]) -> None:
    def is_skipped(device: DeviceFacts) -> bool:
        return ALL.index(device) // 3 in skipped

    read = report_of(tuple(device for device in ALL if not is_skipped(device)))
    report = with_kept(read, tuple(device for device in ALL if is_skipped(device)), (), ())
    assert report.facts.devices == ALL
    assert report.mismatch() is None
    for place, sample in enumerate(report.sample.devices):
        assert sample.power_watts == (None if is_skipped(ALL[place]) else float(place))
    for use in report.table.uses:
        assert report.table.processes[use.process].pid == use.device


def test_a_report_without_holes_is_passed_on_as_it_is() -> None:
    report = report_of(ALL)
    assert with_kept(report, ALL[:3], ALL, ()) is report


def test_problems_are_added() -> None:
    ours, theirs = Problem(code="driver_hung", message="m"), Problem(code="xid", message="m")
    report = with_kept(report_of(ALL, theirs), (), (), (ours,))
    assert report.sample.problems == (ours, theirs)


def test_all_gpus_are_remembered_only_when_the_node_is_faulty() -> None:
    faulty = Problem(code="driver_mismatch", message="m", is_fault=True)
    assert with_kept(report_of((), faulty), (), ALL, ()).facts.devices == ALL
    assert with_kept(report_of(()), (), ALL, ()).facts.devices == (), "GPUs taken out are gone"
    of_one = Problem(code="gpu_lost", message="m", is_fault=True, device_uuid="GPU-0")
    assert with_kept(report_of((), of_one), (), ALL, ()).facts.devices == ()


def test_a_gpu_that_does_not_tell_who_it_is_keeps_its_name_and_slices() -> None:
    """A new probe meets a lost GPU that an older one knew."""
    known = (
        DeviceFacts(uuid="GPU-a", index=0, name="A100"),
        DeviceFacts(uuid="GPU-b", index=1, name="A100"),
        DeviceFacts(uuid="MIG-b", index=0, name="A100", kind="slice", parent_uuid="GPU-b"),
    )
    nameless = DeviceFacts(uuid="gpu-1-without-uuid", index=1, name="NVIDIA GPU")
    lost = Problem(code="gpu_lost", message="lost", device_uuid=nameless.uuid, is_fault=True)
    report = Report(
        facts=NodeFacts(host=HostFacts(hostname="n"), devices=(known[0], nameless)),
        sample=Sample(
            time=1.0, devices=(DeviceSample(utilization_gpu=0.5), DeviceSample()), problems=(lost,)
        ),
    )
    named = with_kept(report, (), known, ())
    assert named.mismatch() is None
    assert [device.uuid for device in named.facts.devices] == ["GPU-a", "GPU-b", "MIG-b"]
    assert [problem.device_uuid for problem in named.sample.problems] == ["GPU-b"]
    fewer = with_kept(report, (), known[:1], ())
    assert fewer.facts.devices == report.facts.devices, "another number of GPUs: it may be any of them"
