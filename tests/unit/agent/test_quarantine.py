"""Bans: how long, since when, and what is said of them."""

from __future__ import annotations

from gpuherd.agent.exchange import Skip
from gpuherd.agent.marker import Position
from gpuherd.agent.quarantine import LONGEST_RETRY_SECONDS, Quarantine
from gpuherd.model.devices import DeviceFacts

GPU_1 = Position("nvml", 1, "nvmlDeviceGetTemperature")
WHOLE = Position("nvml", -1, "nvmlInit")
DEVICES = (
    DeviceFacts(uuid="GPU-0", index=0, name="A100"),
    DeviceFacts(uuid="GPU-1", index=1, name="A100", is_partitioned=True),
    DeviceFacts(uuid="MIG-0", index=0, name="A100 MIG", kind="slice", parent_uuid="GPU-1"),
    DeviceFacts(uuid="MIG-1", index=1, name="A100 MIG", kind="slice", parent_uuid="GPU-1"),
)


def test_each_failure_doubles_the_wait_up_to_a_limit() -> None:
    quarantine = Quarantine()
    now, waits = 1000.0, []
    for _ in range(8):
        ban = quarantine.ban(GPU_1, "driver_hung", now=now, node_time=5000.0 + now)
        waits.append(ban.retry_at - now)
        now = ban.retry_at
    assert waits == [10, 20, 40, 40, 40, 40, 40, LONGEST_RETRY_SECONDS]
    assert max(waits) < 60, "a repaired GPU is back within a minute"
    assert len(quarantine) == 1
    assert next(iter(quarantine)).since == 6000.0, "since the first time"


def test_a_gpu_that_fails_again_soon_after_is_not_trusted_as_quickly() -> None:
    quarantine = Quarantine()
    quarantine.lift([quarantine.ban(GPU_1, "driver_hung", now=0.0, node_time=0.0)])
    assert quarantine.ban(GPU_1, "driver_hung", now=100.0, node_time=100.0).retry_at == 120.0
    quarantine.lift(list(quarantine))
    assert quarantine.ban(GPU_1, "driver_hung", now=9000.0, node_time=9000.0).retry_at == 9010.0, "long ago"


def test_bans_come_due_one_by_one() -> None:
    quarantine = Quarantine()
    first = quarantine.ban(GPU_1, "driver_hung", now=0.0, node_time=0.0)
    quarantine.ban(Position("nvml", 3, "x"), "driver_crashed", now=20.0, node_time=20.0)
    assert quarantine.due(9.9) == ()
    assert quarantine.due(10.0) == (first,)
    assert quarantine.skips() == (Skip("nvml", 1), Skip("nvml", 3))
    assert quarantine.skips(retried=(first,)) == (Skip("nvml", 3),)


def test_a_gpu_in_quarantine_keeps_its_row_and_its_slices() -> None:
    quarantine = Quarantine()
    ban = quarantine.ban(GPU_1, "driver_crashed", now=0.0, node_time=77.0)
    assert [device.uuid for device in quarantine.kept(DEVICES)] == ["GPU-1", "MIG-0", "MIG-1"]
    problems = quarantine.problems(DEVICES)
    assert [problem.device_uuid for problem in problems] == ["GPU-1", "MIG-0", "MIG-1"]
    assert all(problem.is_fault and problem.since == 77.0 for problem in problems)
    assert all("nvmlDeviceGetTemperature" in problem.message for problem in problems)
    assert quarantine.problems(DEVICES, retried=(ban,)) == ()
    assert quarantine.kept(DEVICES, retried=(ban,)) == ()


def test_a_gpu_nobody_knows_does_not_make_the_whole_node_faulty() -> None:
    quarantine = Quarantine()
    quarantine.ban(Position("nvml", 9, "x"), "driver_hung", now=0.0, node_time=0.0)
    (problem,) = quarantine.problems(DEVICES)
    assert problem.device_uuid is None
    assert not problem.is_fault
    assert "GPU 9" in problem.message


def test_a_hung_driver_is_a_fault_of_the_whole_node() -> None:
    quarantine = Quarantine()
    ban = quarantine.ban(WHOLE, "driver_hung", now=0.0, node_time=0.0)
    assert quarantine.whole_driver() == (ban,)
    assert quarantine.skips() == (), "there is no GPU -1 to skip"
    (problem,) = quarantine.problems(DEVICES)
    assert problem.is_fault
    assert problem.device_uuid is None
