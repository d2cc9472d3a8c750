"""What the NVML collector says when it could not read what decides: never enough to call a taken device free.

``may_be_free`` holds a reading against the rules of the hub, which decides (docs/collectors.md).
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pynvml
import pytest

from gpuherd.collect.scenario import Fault, MigSlice, Scenario, ScheduledXid, SimulatedGpu, SimulatedProcess

from .conftest import REPOSITORY, Bench, Reader
from .test_nvml import GIB, codes, gpu, scene

REMAPPED = {"remapped_rows_corrected": 0, "remapped_rows_uncorrected": 1}
SIMULATOR_LOOKS_SECONDS = 0.2
"""Longer than the simulator goes on without a look at its scenario."""
BLIND = ("processes_failed", "processes_hidden", "no_permission")


def may_be_free(reading: Any, place: int) -> bool:
    """Whether everything that decides was read of a device, and says that nobody uses it."""
    facts, sample = reading["devices"][place], reading["samples"][place]
    parent = facts.get("parent_uuid", facts["uuid"])
    for problem in reading["problems"]:
        about = problem.get("device_uuid")
        if problem.get("is_fault") and about in (None, facts["uuid"], parent):
            return False
        if problem["code"] in BLIND and about in (None, facts["uuid"]):
            return False
        columns = problem.get("columns", [])
        if about == facts["uuid"] and "utilization_gpu" in columns:
            return False
    total, used = facts.get("memory_total_bytes"), sample.get("memory_used_bytes")
    if facts.get("is_partitioned") or total is None or used is None or used > 0.02 * total:
        return False
    is_used = any(use["device"] == place and use["kind"] == "compute" for use in reading["uses"])
    return not is_used and sample.get("utilization_gpu", 0.0) < 0.05


def idle(index: int = 0, **more: Any) -> SimulatedGpu:
    quiet: dict[str, Any] = {
        "utilization_gpu_percent": 0,
        "utilization_memory_percent": 0,
        "memory_used_bytes": 2**20,
        "pci_bus_id": f"00000000:{index + 1:02x}:00.0",
    }
    return gpu(index, **(quiet | more))


def busy(index: int = 0, **more: Any) -> SimulatedGpu:
    """A GPU whose process, an idle notebook, is all that says that it is taken."""
    return idle(index, processes=(SimulatedProcess(pid=4242, memory_used_bytes=2**20),), **more)


def split(index: int = 0, **more: Any) -> SimulatedGpu:
    """A GPU with a slice that is taken and one that is not."""

    def part(number: int, *processes: SimulatedProcess) -> MigSlice:
        return MigSlice(
            uuid=f"MIG-{index}-{number}",
            profile="1g.5gb",
            gpu_instance=number,
            compute_instance=0,
            memory_total_bytes=5 * GIB,
            memory_used_bytes=2**20,
            memory_reserved_bytes=0,
            processes=processes,
        )

    taken = SimulatedProcess(pid=4343, memory_used_bytes=2**20)
    return idle(index, mig_mode=True, mig_slices=(part(1, taken), part(2)), **more)


def opened(bench: Bench, *gpus: SimulatedGpu, **more: Any) -> Reader:
    bench.play(scene(*gpus, **more))
    reader = bench.reader()
    reader.ask("open")
    return reader


def test_a_healthy_idle_gpu_may_be_free_and_others_may_not(bench: Bench) -> None:
    reading = opened(bench, idle(), busy(1), split(2)).read()
    assert [may_be_free(reading, place) for place in range(5)] == [True, False, False, False, True]
    assert reading["problems"] == []


@pytest.mark.parametrize("card", [idle, split])
@pytest.mark.parametrize("code", [3, 4, 6, 7, 13, 25, 26, 999])
def test_processes_that_cannot_be_listed_leave_a_device_unknown(bench: Bench, card: Any, code: int) -> None:
    fault = Fault(function="nvmlDeviceGetComputeRunningProcesses*", effect=code)
    reading = opened(bench, card(), faults=(fault,)).read()
    about = [device["uuid"] for device in reading["devices"] if not device.get("is_partitioned")]
    assert codes(reading) == [("processes_failed", uuid, False) for uuid in about]
    assert not any(may_be_free(reading, place) for place in range(len(reading["devices"])))
    assert all(problem["message"].rpartition("; ")[2] for problem in reading["problems"]), (
        "each says what to do"
    )


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        ({"memory_used_bytes": 10**18}, ["memory_used_bytes"]),
        ({"memory_used_bytes": 17 * GIB}, ["memory_used_bytes"]),
        ({"memory_total_bytes": 0}, ["memory_used_bytes", "memory_total_bytes"]),
        ({"utilization_gpu_percent": 101}, ["utilization_gpu"]),
        ({"utilization_gpu_percent": 2**32 - 1}, ["utilization_gpu"]),
    ],
)
def test_values_that_cannot_be_are_failures(bench: Bench, values: dict[str, Any], columns: list[str]) -> None:
    reading = opened(bench, idle(**values)).read()
    (problem,) = reading["problems"]
    assert (problem["code"], problem["columns"]) == ("metric_failed", columns)
    assert not may_be_free(reading, 0)


def test_a_gpu_that_may_not_be_asked_says_so(bench: Bench) -> None:
    asked = [name for name in OF_A_GPU if not name.endswith(("HandleByIndex", "GetUUID", "GetMigMode"))]
    faults = tuple(Fault(function=f"{name}*", effect=4) for name in asked)
    reading = opened(bench, idle(), faults=faults).read()
    assert codes(reading)[0] == ("no_permission", "GPU-0", False)
    assert "/dev/nvidia" in reading["problems"][0]["message"]
    assert not may_be_free(reading, 0)


def test_a_card_without_memory_figures_does_not_get_the_hosts(bench: Bench) -> None:
    silent: dict[str, Any] = {
        "memory_total_bytes": None,
        "memory_used_bytes": None,
        "memory_reserved_bytes": None,
    }
    reading = opened(bench, idle(compute_capability="3.5", **silent)).read()
    assert "memory_total_bytes" not in reading["devices"][0]
    assert reading["devices"][0].get("memory_basis") != "host"
    assert "memory_used_bytes" not in reading["samples"][0]


@pytest.mark.parametrize("version", ["535.54.03", "535.104.05"])
def test_processes_of_early_535_drivers(bench: Bench, version: str) -> None:
    """Their entries are larger; reading them with the usual size gave one right process and rubbish."""
    processes = tuple(
        SimulatedProcess(pid=100 + n, type="compute" if n < 3 else "graphics", memory_used_bytes=n * 2**20)
        for n in range(5)
    )
    bench.play(Scenario(driver_version=version, gpus=(idle(processes=processes), idle(1))))
    reader = bench.reader()
    reader.ask("open")
    for _ in range(2):
        uses = reader.read()["uses"]
        assert [(use["pid"], use["kind"], use["gpu_memory_bytes"]) for use in uses] == [
            (100 + n, "compute" if n < 3 else "graphics", n * 2**20) for n in range(5)
        ]


@pytest.mark.parametrize("function", ["nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount"])
@pytest.mark.parametrize("code", [3, 4, 13, 999])
def test_a_split_gpu_never_passes_as_a_whole_one(bench: Bench, function: str, code: int) -> None:
    reader = opened(bench, split(), faults=(Fault(function=function, effect=code),))
    reading = reader.read()
    assert ("processes_failed", "GPU-0", False) in codes(reading)
    assert not may_be_free(reading, 0)
    bench.play(scene(split()))
    healed = reader.until(lambda r: len(r["devices"]) == 3 and not r["problems"], "the slices")
    assert healed["devices"][0]["is_partitioned"]


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"]
)
def test_slices_that_cannot_be_listed_do_not_vanish(bench: Bench, function: str) -> None:
    whole = scene(split(), idle(1))
    bench.play(whole)
    reader = bench.reader()
    reader.ask("open")
    before = [device["uuid"] for device in reader.read()["devices"]]
    failing = msgspec.structs.replace(
        whole, gpus=(*whole.gpus, idle(2)), faults=(Fault(function=function, gpu=0, effect=999),)
    )
    bench.play(failing)  # the third GPU makes it look for all of them
    reading = reader.until(lambda r: len(r["devices"]) == len(before) + 1, "a look at all GPUs")
    assert [device["uuid"] for device in reading["devices"]] == [*before, "GPU-2"]
    assert not any(may_be_free(reading, place) for place in range(3))


def test_compute_instances_that_share_memory_say_so(bench: Bench) -> None:
    parts = tuple(
        MigSlice(
            uuid=f"MIG-{n}",
            profile="1c.3g.71gb",
            gpu_instance=2,
            compute_instance=n,
            memory_total_bytes=8 * GIB,
            memory_used_bytes=GIB,
        )
        for n in range(2)
    )
    reading = opened(bench, idle(mig_mode=True, mig_slices=parts)).read()
    assert [device.get("gpu_instance") for device in reading["devices"]] == [None, 2, 2]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"recovery_action": 1}, "recovery_action"),
        ({"recovery_action": 4}, "recovery_action"),
        ({"retired_pages_pending": True}, "retirement_pending"),
        ({**REMAPPED, "remapped_rows_pending": True}, "remap_pending"),
        ({**REMAPPED, "remapped_rows_failed": True}, "remap_failed"),
    ],
)  # fmt: skip
def test_health_registers_are_faults_and_end(bench: Bench, fields: dict[str, Any], code: str) -> None:
    reader = opened(bench, idle(**fields), idle(1))
    reading = reader.read()
    assert codes(reading) == [(code, "GPU-0", True)]
    assert codes(reader.read()) == [(code, "GPU-0", True)], "also while it is not asked again"
    well = {name: False if value is True else 0 for name, value in fields.items()}
    bench.play(scene(idle(**well), idle(1)))
    reader.ask("open")
    healed = reader.read()
    assert healed["problems"] == []
    assert len(healed["devices"][0]["health_checks"]) == 2
    assert healed["devices"][1]["health_checks"] == ["xid"], "what it cannot read was not checked"


def test_health_is_read_rarely(bench: Bench) -> None:
    reader = opened(bench, idle(recovery_action=0))
    reader.read()
    reader.ask("calls")
    for _ in range(3):
        reader.read()
    asked = {call for _, call in reader.ask("calls")}
    assert not asked & {"nvmlDeviceGetFieldValues", "nvmlDeviceGetRemappedRows"}


@pytest.mark.parametrize("number", [46, 109, 110, 136, 155, 156, 158])
def test_what_nvidia_answers_with_a_reset_is_a_fault(bench: Bench, number: int) -> None:
    reader = opened(bench, idle(), xids=(ScheduledXid(gpu=0, at=0.2, xid=number),))
    reading = reader.until(lambda r: r["problems"], "the Xid")
    assert codes(reading) == [("xid", "GPU-0", True)]
    assert reading["problems"][0]["xid"] == number


def test_an_xid_is_not_lost_while_gpus_are_looked_for(bench: Bench) -> None:
    """It happens between two reads, of which the second finds that there is one more GPU."""
    bench.play(scene(idle(), idle(1), frozen_time=0))
    reader = bench.reader()
    reader.ask("open")
    for _ in range(9):
        assert reader.read()["problems"] == []
    lost = (Fault(function="nvmlDeviceGet*", gpu=1, effect=15),)
    xids = (ScheduledXid(gpu=1, at=5, xid=79),)
    bench.play(scene(idle(), idle(1), idle(2), frozen_time=10, faults=lost, xids=xids))
    due = time.monotonic() + SIMULATOR_LOOKS_SECONDS
    reader.until(lambda _: time.monotonic() > due, "the simulator looks at its file", command="calls")
    reading = reader.read()  # the tenth, which looks for GPUs
    assert len(reading["devices"]) == 3
    assert ("xid", "GPU-1", True) in codes(reading), "also of a GPU that is lost by now"


def test_xids_are_watched_again_after_an_error(bench: Bench) -> None:
    bench.play(scene(idle(), faults=(Fault(function="nvmlEventSetWait*", effect=999),)))
    reader = bench.reader()
    reader.ask("open")
    reader.read()
    bench.play(
        scene(idle(), epoch=time.time(), xids=[ScheduledXid(gpu=0, at=n / 4, xid=46) for n in range(400)])
    )
    reader.until(lambda r: codes(r) == [("xid", "GPU-0", True)], "the Xid")


@pytest.mark.parametrize("code", [3, 4, 999])
def test_an_ecc_count_that_cannot_be_read_any_more_stays(bench: Bench, code: int) -> None:
    errors = {"ecc_uncorrected_volatile": 5, "ecc_corrected_volatile": 0}
    reader = opened(bench, idle(**errors))
    assert reader.read()["samples"][0]["ecc_uncorrected"] == 5
    fault = Fault(function="nvmlDeviceGetTotalEccErrors", effect=code)
    bench.play(scene(idle(temperature_celsius=MARKER, **errors), faults=(fault,)))
    reading = reader.until(lambda r: r["samples"][0].get("temperature_celsius") == MARKER, "the fault")
    for _ in range(3):
        assert reading["samples"][0]["ecc_uncorrected"] == 5
        reading = reader.read()


@pytest.mark.parametrize(
    "fields",
    [
        {"ecc_uncorrected_volatile": 5, "ecc_corrected_volatile": 0},
        {"throttle_reasons": 128},
        {"recovery_action": 1},
    ],
)
def test_a_broken_gpu_that_sleeps_is_still_broken(
    bench: Bench, tmp_path: Path, fields: dict[str, Any]
) -> None:
    power = tmp_path / "sys" / "bus" / "pci" / "devices" / "0000:01:00.0" / "power"
    power.mkdir(parents=True)
    (power / "control").write_text("auto\n")
    (power / "runtime_status").write_text("suspended\n")
    bench.play(scene(idle(**fields)))
    reader = bench.reader(sys_root=str(tmp_path / "sys"))
    reader.ask("open")
    for _ in range(3):
        reading = reader.read()
        sample = reading["samples"][0]
        assert sample.get("ecc_uncorrected") or sample.get("throttle_reasons") or reading["problems"]


# --- every function and every code ----------------------------------------------------------------------------

SOURCES = (REPOSITORY / "src" / "gpuherd" / "collect" / "nvml").glob("*.py")
CALLED = sorted(
    {
        re.sub(r"_v\d$", "", name)
        for source in SOURCES
        for name in re.findall(r'"(nvml(?:Device|System|Event|Init)\w+)"', Path(source).read_text())
    }
)
OF_NO_GPU = [name for name in CALLED if not name.startswith("nvmlDevice") or "GetCount" in name]
OF_A_GPU = [name for name in CALLED if name not in OF_NO_GPU]
CODES = sorted(
    value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_") and isinstance(value, int)
)
GONE = {1, 9, 18}
"""The driver as a whole is gone: nothing else can be read."""
NOT_FOUND = 6
MARKER = 77


def cards(count: int, **more: Any) -> tuple[SimulatedGpu, ...]:
    """An idle, a busy and a split GPU for every code, and one by which a new scenario is known."""
    kinds = (idle, busy, split)
    return (*(kinds[index % 3](index) for index in range(count)), idle(count, **more))


def wrong(reading: Any) -> list[str]:
    """Devices that might be called free though somebody is on them."""
    taken = [
        place
        for place, device in enumerate(reading["devices"])
        if (device["uuid"].startswith("GPU-") and int(device["uuid"][4:]) % 3 == 1)
        or re.fullmatch(r"MIG-\d+-1", device["uuid"])
        or (device["uuid"].startswith("GPU-") and int(device["uuid"][4:]) % 3 == 2)
    ]
    return [reading["devices"][place]["uuid"] for place in taken if may_be_free(reading, place)]


@pytest.mark.parametrize("part", range(2))
def test_no_error_of_any_call_makes_a_taken_device_free_or_vanish(
    bench: Bench, capsys: pytest.CaptureFixture[str], part: int
) -> None:
    mine = [code for code in CODES if code not in GONE][part::2]
    count = 3 * len(mine)
    healthy = scene(*cards(count))
    bench.play(healthy)
    reader = bench.reader()
    reader.ask("open")
    before = reader.read()
    listed = [device["uuid"] for device in before["devices"]]
    free = [place for place in range(len(listed)) if may_be_free(before, place)]
    assert len(free) == 2 * len(mine) + 1, "idle GPUs and idle slices are free without faults"
    tried = back = 0
    for function in OF_A_GPU:
        faults = tuple(
            Fault(function=f"{function}*", gpu=index, effect=mine[index // 3]) for index in range(count)
        )
        bench.play(scene(*cards(count, temperature_celsius=MARKER), faults=faults))
        mid_run = reader.until(
            lambda r: r["samples"][-1].get("temperature_celsius") == MARKER, f"faults of {function}"
        )
        readings = [mid_run, *(reader.read() for _ in range(11))]  # also after a look at the layout
        vanished = set(listed) - {device["uuid"] for device in readings[-1]["devices"]}
        if function == "nvmlDeviceGetMigDeviceHandleByIndex" and NOT_FOUND in mine:
            # There it means that the GPU has no slice, which its own row says.
            vanished -= {f"MIG-{3 * mine.index(NOT_FOUND) + 2}-{number}" for number in (1, 2)}
        assert vanished == set(), function
        reader.ask("open")
        readings.append(reader.read())
        for number, reading in enumerate(readings):
            assert wrong(reading) == [], (function, number)
        tried += count
        bench.play(healthy)
        reader.until(
            lambda r: r["samples"][-1].get("temperature_celsius") != MARKER,
            f"the end of faults of {function}",
        )
        for _ in range(60):  # a read a second: a minute
            reading = reader.read()
            if reading["devices"] == before["devices"] and not reading["problems"]:
                break
        assert [place for place in range(len(listed)) if may_be_free(reading, place)] == free, function
        back += len(free)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{tried} errors of {len(OF_A_GPU)} calls: 0 wrong free, 0 vanished; {back} of {back} free again\n"
        )


def test_no_error_of_the_driver_as_a_whole_makes_a_taken_device_free(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.play(scene(*cards(3)))
    reader = bench.reader()
    reader.ask("open")
    tried = 0
    every = [(function, code) for function in OF_NO_GPU for code in CODES]
    every += [(function, code) for function in OF_A_GPU for code in sorted(GONE)]
    for function, code in every:
        bench.play(scene(*cards(3), faults=(Fault(function=f"{function}*", effect=code),)))
        if reader.ask("open") is None:
            reading = reader.read()
            assert "error" in reading or wrong(reading) == [], (function, code)
        tried += 1
    bench.play(scene(*cards(3)))
    assert reader.ask("open") is None
    healed = reader.read()
    assert [may_be_free(healed, place) for place in range(6)] == [True, False, False, False, True, True]
    with capsys.disabled():
        sys.stdout.write(f"\n{tried} errors of the driver as a whole: 0 wrong free\n")
