"""Xids reach programs that wait for them, at their time and once."""

from __future__ import annotations

from gpuherd.collect.scenario import Scenario, ScheduledXid, SimulatedGpu

from .conftest import StageFor

GPUS = tuple(SimulatedGpu(uuid=f"GPU-{i}", name="Card") for i in range(2))

WAITER = """
import pynvml, time
pynvml.nvmlInit()
events = pynvml.nvmlEventSetCreate()
for i in range({registered}):
    handle = pynvml.nvmlDeviceGetHandleByIndex(i)
    assert pynvml.nvmlDeviceGetSupportedEventTypes(handle) & pynvml.nvmlEventTypeXidCriticalError
    pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
while True:
    try:
        event = pynvml.nvmlEventSetWait_v2(events, {timeout})
    except pynvml.NVMLError_Timeout:
        break
    print(pynvml.nvmlDeviceGetIndex(event.device), event.eventType, event.eventData)
pynvml.nvmlEventSetFree(events)
"""


def scenario(*xids: tuple[int, float, int], frozen: float | None = None) -> Scenario:
    scheduled = tuple(ScheduledXid(gpu=gpu, at=at, xid=xid) for gpu, at, xid in xids)
    return Scenario(driver_version="1.0", gpus=GPUS, frozen_time=frozen, xids=scheduled)


def test_xids_come_in_order_and_once(stage: StageFor) -> None:
    # Seconds since the library was loaded: registration takes far less than the first of them.
    play = stage(scenario((1, 1.2, 48), (0, 1.0, 13), (1, 1.2, 63), (0, -5, 31)))
    done = play.python(WAITER.format(registered=2, timeout=3000))
    assert done.stdout.splitlines() == ["0 8 13", "1 8 48", "1 8 63"], done.stderr


def test_only_registered_gpus_are_told(stage: StageFor) -> None:
    play = stage(scenario((1, 5, 48), (0, 5, 13), frozen=5))
    done = play.python(WAITER.format(registered=1, timeout=50))
    assert done.stdout.splitlines() == ["0 8 13"], done.stderr


def test_waiting_for_nothing_times_out(stage: StageFor) -> None:
    done = stage(scenario()).python(WAITER.format(registered=2, timeout=20))
    assert (done.returncode, done.stdout) == (0, "")
