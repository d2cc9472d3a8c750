"""The parts of the NVML collector that need no library; the rest is in tests/integration/collect."""

from __future__ import annotations

import re
from ctypes import c_uint, c_ulonglong, sizeof
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpuherd.collect.nvml.metrics import (
    GPU_METRICS,
    PCIE_METRICS,
    SLICE_METRICS,
    WORK_METRICS,
    MemoryV1,
    MemoryV2,
    Utilization,
)
from gpuherd.collect.nvml.running import Running, RunningLists
from gpuherd.collect.nvml.sleep import SleepWatch
from gpuherd.collect.reading import no_progress
from gpuherd.collect.xids import XIDS, xid_message
from gpuherd.model.devices import DeviceSample, ThrottleReason
from gpuherd.model.xids import is_xid_fault, xid_catalog

DOC = (Path(__file__).parents[3] / "docs" / "collectors.md").read_text()
POWER_AND_HEAT = ThrottleReason.POWER_CAP | ThrottleReason.SOFTWARE_THERMAL
METRICS = {**GPU_METRICS, **WORK_METRICS, **PCIE_METRICS, **SLICE_METRICS}


def taken(metric: str, *cells: Any, way: int = 0) -> dict[str, Any]:
    values: dict[str, Any] = {}
    METRICS[metric][way].take(*cells)(values)
    return values


def test_array_layouts_are_the_vendors() -> None:
    assert sizeof(Utilization) == sizeof(pynvml.c_nvmlUtilization_t)
    assert sizeof(MemoryV1) == sizeof(pynvml.c_nvmlMemory_t)
    assert sizeof(MemoryV2) == sizeof(pynvml.c_nvmlMemory_v2_t)
    vendor = pynvml.c_nvmlMemory_v2_t
    offsets = [getattr(vendor, name).offset // 8 for name in ("version", "total", "reserved", "free", "used")]
    assert offsets == [0, 1, 2, 3, 4]
    made = METRICS["memory"][0].outputs[0]()
    assert vendor.from_buffer(made).version == pynvml.nvmlMemory_v2


def test_every_metric_fills_fields_of_the_sample() -> None:
    facts = {"memory_total_bytes", "memory_basis"}
    for name, ways in METRICS.items():
        for way, call in enumerate(ways):
            found = taken(name, *(make() for make in call.outputs), way=way)
            assert found, name
            assert found.keys() - facts <= set(DeviceSample.__struct_fields__), name


@pytest.mark.parametrize(
    ("metric", "cells", "expected"),
    [
        ("utilization", [Utilization(37, 0)], {"utilization_gpu": 0.37, "utilization_memory": 0.0}),
        ("utilization", [Utilization(101, 2**32 - 1)], {}),
        ("power", [c_uint(326909)], {"power_watts": 326.909}),
        ("power", [c_uint(2**32 - 1)], {}),
        ("fan", [c_uint(105)], {"fan_ratio": 1.0}),
        ("fan", [c_uint(2**32 - 1)], {}),
        ("energy", [c_ulonglong(2**64 - 1)], {}),
        ("ecc_corrected", [c_ulonglong(2**63 - 1)], {}),
        ("throttle_reasons", [c_ulonglong(0)], {"throttle_reasons": 0}),
        ("throttle_reasons", [c_ulonglong(0x24)], {"throttle_reasons": POWER_AND_HEAT}),
        ("throttle_reasons", [c_ulonglong(1 << 40)], {"throttle_reasons": ThrottleReason.OTHER}),
        ("throttle_reasons", [c_ulonglong(2**64 - 1)], {}),
        ("encoder", [c_uint(0), c_uint(7)], {"utilization_encoder": 0.0}),
    ],
)  # fmt: skip
def test_values(metric: str, cells: list[Any], expected: dict[str, Any]) -> None:
    assert taken(metric, *cells) == expected


def test_xids_are_documented() -> None:
    rows = {
        int(number): fault
        for number, fault in re.findall(r"^\| (\d+) \| [^|]+ \| (yes|no) \|$", DOC, re.MULTILINE)
    }
    assert rows == {number: "yes" if is_xid_fault(number) else "no" for number in XIDS}
    agent = {number for number, meaning in XIDS.items() if meaning.is_fault}
    assert agent == {number for number in xid_catalog() if is_xid_fault(number)}, "agent and hub agree"
    for number, meaning in XIDS.items():
        assert f"| {number} | {meaning.text} |" in DOC
    assert xid_message(79).startswith("Xid 79, the GPU has fallen off the bus: reboot")
    assert xid_message(4711).startswith("Xid 4711: see NVIDIA's")


@pytest.mark.parametrize(
    "number",
    [46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, *range(144, 152), 155, 156, 158],
)
def test_what_nvidia_answers_with_a_reset_or_worse_is_a_fault(number: int) -> None:
    assert is_xid_fault(number)


@pytest.mark.parametrize("number", [13, 31, 43, 45, 63, 92, 94, 154, 160, 4711])
def test_what_nvidia_answers_with_less_is_none(number: int) -> None:
    assert not is_xid_fault(number)


def test_sleep(tmp_path: Path) -> None:
    power = tmp_path / "bus" / "pci" / "devices" / "0000:3b:00.0" / "power"
    power.mkdir(parents=True)
    (power / "control").write_text("auto\n")
    (power / "runtime_status").write_text("suspended\n")
    watch = SleepWatch(tmp_path)
    watch.watch({0: "00000000:3B:00.0", 1: "00000000:3C:00.0", 2: None})
    assert [watch.is_asleep(index) for index in (0, 1, 2, 3)] == [True, False, False, False]
    (power / "runtime_status").write_text("active\n")
    assert not watch.is_asleep(0)
    (power / "control").write_text("on\n")
    (power / "runtime_status").write_text("suspended\n")
    watch.watch({0: "00000000:3B:00.0"})
    assert not watch.is_asleep(0), "a GPU that may not sleep is not looked up again"


class Lists:
    """A driver that answers each question for processes with a status and a count."""

    def __init__(self, status: int, count: int) -> None:
        self.status, self.count = status, count
        self.rooms: list[int] = []

    def function(self, name: str) -> Any:
        return self._answer if name.endswith("_v3") else None

    def _answer(self, handle: Any, count_at: Any, buffer: Any) -> int:
        self.rooms.append(count_at._obj.value)
        count_at._obj.value = self.count
        return self.status


@pytest.mark.parametrize(
    ("status", "count"),
    [
        pytest.param(7, 0, id="never enough room"),
        pytest.param(7, 10**6, id="more than the bound"),
        pytest.param(0, 10**6, id="cut without a word"),
    ],
)
def test_a_list_that_the_driver_cuts_is_a_failure(status: int, count: int) -> None:
    lists = Lists(status, count)
    running = Running(lists, no_progress, lambda: 0.0)  # type: ignore[arg-type]
    device = RunningLists(running, 0, None, is_whole=True)  # type: ignore[arg-type]
    for _ in range(2):
        _, failures = device.read(0, no_progress)
        assert ("nvmlDeviceGetComputeRunningProcesses", 7) in failures
    assert len(lists.rooms) < 100, "it is not asked for ever"
