"""The NVML collector on the simulated library: what it reads, and what it does in trouble."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sim.build import LIBRARY_NAME, SCENARIOS, simulator_environment

from gpuherd.collect.scenario import Fault, Scenario, SimulatedGpu, SimulatedProcess, load_scenario

from .conftest import Bench, library_or_skip

GIB = 2**30


def gpu(index: int = 0, **more: Any) -> SimulatedGpu:
    known: dict[str, Any] = {
        "uuid": f"GPU-{index}",
        "name": "Card",
        "pci_bus_id": f"00000000:0{index + 1}:00.0",
        "memory_total_bytes": 16 * GIB,
        "memory_reserved_bytes": GIB,
        "memory_used_bytes": 3 * GIB,
        "utilization_gpu_percent": 50,
        "utilization_memory_percent": 20,
        "temperature_celsius": 40,
        "power_watts": 100.5,
        "power_limit_watts": 250,
        "fan_percent": 30,
        "clock_sm_mhz": 1400,
        "clock_memory_mhz": 5000,
        "performance_state": 0,
        "throttle_reasons": 0,
    }
    return SimulatedGpu(**(known | more))


def scene(*gpus: SimulatedGpu, **more: Any) -> Scenario:
    return Scenario(driver_version="550.1", cuda_version="12.4", gpus=gpus, **more)


def codes(reading: Any) -> list[tuple[str, str | None, bool]]:
    return [(p["code"], p.get("device_uuid"), p.get("is_fault", False)) for p in reading.get("problems", ())]


def test_everything_of_a_card(bench: Bench) -> None:
    process = SimulatedProcess(pid=os.getpid(), memory_used_bytes=2 * GIB, sm_percent=45)
    bench.play(scene(gpu(compute_capability="8.0", clock_sm_max_mhz=1980, power_limit_default_watts=300, ecc_mode=True,
                         ecc_corrected_volatile=3, ecc_uncorrected_volatile=0, energy_joules=12.5,
                         utilization_encoder_percent=7, utilization_decoder_percent=0, processes=(process,),
                         pcie_tx_bytes_per_second=2_000_000, pcie_rx_bytes_per_second=3_000_000)))  # fmt: skip
    reader = bench.reader(pcie_throughput=True)
    reader.ask("open")
    reading = reader.read()
    assert reading["devices"] == [{
        "uuid": "GPU-0", "index": 0, "name": "Card", "memory_total_bytes": 16 * GIB, "pci_bus_id": "00000000:01:00.0",
        "compute_capability": "8.0", "clock_sm_max_hertz": 1980e6, "power_limit_default_watts": 300.0,
        "health_checks": ["xid"],
    }]  # fmt: skip
    assert reading["samples"] == [{
        "utilization_gpu": 0.5, "utilization_memory": 0.2, "utilization_encoder": 0.07, "utilization_decoder": 0.0,
        "memory_used_bytes": 3 * GIB, "memory_reserved_bytes": GIB, "temperature_celsius": 40.0, "power_watts": 100.5,
        "power_limit_watts": 250.0, "fan_ratio": 0.3, "clock_sm_hertz": 1400e6, "clock_memory_hertz": 5000e6,
        "performance_state": 0, "throttle_reasons": 0, "ecc_corrected": 3, "ecc_uncorrected": 0, "energy_joules": 12.5,
        "pcie_receive_bytes_per_second": 3e6, "pcie_send_bytes_per_second": 2e6,
    }]  # fmt: skip
    assert (reading["driver_version"], reading["cuda_version"], reading["problems"]) == ("550.1", "12.4", [])
    (use,) = reading["uses"]
    assert (use["device"], use["pid"], use["kind"]) == (0, os.getpid(), "compute")
    assert (use["gpu_memory_bytes"], use["utilization_sm"]) == (2 * GIB, 0.45)


def test_pcie_traffic_is_opt_in(bench: Bench) -> None:
    bench.play(scene(gpu(pcie_tx_bytes_per_second=2_000_000)))
    reader = bench.reader()
    reader.ask("open")
    assert "pcie_send_bytes_per_second" not in reader.read()["samples"][0]
    assert "nvmlDeviceGetPcieThroughput" not in {call for _, call in reader.ask("calls")}


def test_a_report_names_a_real_process(bench: Bench) -> None:
    bench.play(scene(gpu(processes=(SimulatedProcess(pid=os.getpid(), memory_used_bytes=GIB),))))
    report = bench.reader().ask("report")
    (process,) = report["table"]["processes"]
    assert process["pid"] == os.getpid()
    ours = Path("/proc/self/cmdline").read_bytes().decode().rstrip("\0").replace("\0", " ")
    assert process["command"]
    assert ours.startswith(process["command"][:80])
    assert report["facts"]["host"]["driver_version"] == "550.1"


def test_unsupported_calls_are_not_repeated(bench: Bench) -> None:
    bench.play(scene(SimulatedGpu(uuid="GPU-0", name="Old card")))
    reader = bench.reader()
    reader.ask("open")
    reader.read()
    reader.ask("calls")
    assert reader.read()["problems"] == []
    asked = [call for _, call in reader.ask("calls")]
    assert asked == [
        "nvmlEventSetWait",
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
    ]
    # A metric that becomes available is found again.
    bench.play(scene(SimulatedGpu(uuid="GPU-0", name="Old card", temperature_celsius=33)))
    reader.until(lambda reading: reading["samples"][0].get("temperature_celsius") == 33.0, "the new metric")


def test_sentinels_are_unknown(bench: Bench) -> None:
    absent = 2**32 - 1
    card = gpu(
        temperature_celsius=absent,
        power_watts=4294967,
        clock_sm_mhz=absent,
        fan_percent=absent,
        utilization_gpu_percent=absent,
        performance_state=32,
        memory_used_bytes=2**53 + 2,
    )
    bench.play(scene(card))
    reader = bench.reader()
    reader.ask("open")
    (sample,) = reader.read()["samples"]
    for field in ("temperature_celsius", "power_watts", "clock_sm_hertz", "fan_ratio", "utilization_gpu",
                  "performance_state", "memory_used_bytes"):  # fmt: skip
        assert field not in sample, field
    assert sample["utilization_memory"] == 0.2


def test_a_metric_that_fails_leaves_the_rest(bench: Bench) -> None:
    bench.play(scene(gpu(), gpu(1), faults=(Fault(function="nvmlDeviceGetPowerUsage", gpu=0, effect=999),)))
    reader = bench.reader()
    reader.ask("open")
    reading = reader.read()
    assert codes(reading) == [("metric_failed", "GPU-0", False)]
    assert "nvmlDeviceGetPowerUsage: Unknown Error (999)" in reading["problems"][0]["message"]
    assert "power_watts" not in reading["samples"][0]
    assert reading["samples"][0]["temperature_celsius"] == 40.0
    assert reading["samples"][1]["power_watts"] == 100.5


@pytest.mark.parametrize(("effect", "code"), [(15, "gpu_lost"), (16, "reset_required"), (999, "gpu_error")])
def test_a_broken_gpu_stays_listed_and_comes_back(bench: Bench, effect: int, code: str) -> None:
    healthy = scene(gpu(), gpu(1), gpu(2))
    bench.play(healthy)
    reader = bench.reader()
    reader.ask("open")
    before = reader.read()
    bench.play(msgspec.structs.replace(healthy, faults=(Fault(function="*", gpu=1, effect=effect),)))
    reading = reader.until(lambda r: codes(r) == [(code, "GPU-1", True)], "the fault")
    for _ in range(25):  # also after a look at the layout, which finds it anew
        reading = reader.read()
        assert codes(reading) == [(code, "GPU-1", True)]
        assert reading["devices"] == before["devices"]
        assert [sample == before["samples"][at] for at, sample in enumerate(reading["samples"])] == [
            True,
            False,
            True,
        ]
        assert reading["samples"][1] == {}
    bench.play(healthy)
    healed = reader.until(lambda r: not r["problems"], "recovery")
    assert healed["samples"] == before["samples"]


def test_a_gpu_that_is_broken_from_the_start(bench: Bench) -> None:
    bench.play(scene(gpu(), gpu(1), faults=(Fault(function="*", gpu=0, effect=15),)))
    reader = bench.reader()
    reader.ask("open")
    reading = reader.read()
    assert [device["uuid"] for device in reading["devices"]] == ["gpu-0-without-uuid", "GPU-1"]
    assert codes(reading) == [("gpu_lost", "gpu-0-without-uuid", True)]
    bench.play(scene(gpu(), gpu(1)))
    healed = reader.until(lambda r: not r["problems"], "recovery")
    assert [device["uuid"] for device in healed["devices"]] == ["GPU-0", "GPU-1"]


def test_slices_are_devices(bench: Bench) -> None:
    bench.play("mig")
    reader = bench.reader()
    reader.ask("open")
    reading = reader.read()
    first = reading["devices"][:5]
    assert [(device.get("kind", "gpu"), device.get("profile")) for device in first] == [
        ("gpu", None), ("slice", "3g.40gb"), ("slice", "2g.20gb"), ("slice", "1g.10gb"), ("slice", "1g.10gb"),
    ]  # fmt: skip
    assert {device["parent_uuid"] for device in first[1:]} == {first[0]["uuid"]}
    assert first[0]["is_partitioned"]
    assert "utilization_gpu" not in reading["samples"][0]
    assert reading["samples"][0]["power_watts"]
    assert all(sample["memory_used_bytes"] for sample in reading["samples"][1:5])
    assert [(use["device"], use["pid"]) for use in reading["uses"][:4]] == [
        (1, 61001),
        (2, 61002),
        (2, 61003),
        (4, 61004),
    ]


def test_a_new_mig_layout_is_noticed(bench: Bench) -> None:
    scenario = load_scenario(SCENARIOS / "mig.json")
    bench.play(scenario)
    reader = bench.reader()
    reader.ask("open")
    assert len(reader.read()["devices"]) == 14
    fewer = msgspec.structs.replace(scenario.gpus[0], mig_slices=scenario.gpus[0].mig_slices[:2])
    bench.play(msgspec.structs.replace(scenario, gpus=(fewer, *scenario.gpus[1:])))
    reader.until(lambda reading: len(reading["devices"]) == 12, "two slices less")


def test_a_lost_partitioned_gpu_keeps_its_slices_listed(bench: Bench) -> None:
    scenario = load_scenario(SCENARIOS / "mig.json")
    bench.play(scenario)
    reader = bench.reader()
    reader.ask("open")
    before = reader.read()
    bench.play(msgspec.structs.replace(scenario, faults=(Fault(function="*", gpu=0, effect=15),)))
    reader.until(lambda reading: len(reading["problems"]) == 5, "the GPU and its four slices lost")
    for _ in range(12):
        reading = reader.read()
        assert reading["devices"] == before["devices"]
        assert [problem["code"] for problem in reading["problems"]] == ["gpu_lost"] * 5


def test_unified_memory_is_the_hosts(bench: Bench) -> None:
    bench.play("unified_memory")
    report = bench.reader().ask("report")
    (device,), (sample,) = report["facts"]["devices"], report["sample"]["devices"]
    assert device["memory_basis"] == "host"
    assert device["memory_total_bytes"] == report["facts"]["host"]["memory_total_bytes"]
    assert 0 < sample["memory_used_bytes"] < device["memory_total_bytes"]


def test_old_driver(bench: Bench) -> None:
    bench.play("old_driver", library=library_or_skip(old_driver=True))
    reader = bench.reader()
    reader.ask("open")
    reading = reader.read()
    assert reading["problems"] == []
    assert [device["memory_basis"] for device in reading["devices"]] == ["framebuffer_with_reserved"] * 2
    assert [use["pid"] for use in reading["uses"]] == [81001]
    assert reading["samples"][0]["temperature_celsius"]


@pytest.mark.parametrize(
    ("name", "code", "remedy"),
    [
        ("mismatch", "driver_mismatch", "reboot"),
        ("driver_not_loaded", "no_driver", "modprobe"),
        ("no_permission", "no_permission", "/dev/nvidia"),
    ],
)
def test_a_driver_that_cannot_be_opened_says_what_to_do(
    bench: Bench, name: str, code: str, remedy: str
) -> None:
    bench.play(name)
    reader = bench.reader()
    kind, found, message = reader.ask("open")["error"]
    assert (kind, found) == ("CollectorUnavailable", code)
    assert remedy in message
    bench.play("healthy")
    reader.until(lambda answer: answer is None, "the driver opens", command="open")
    assert len(reader.read()["devices"]) == 8


def test_no_library() -> None:
    bench = Bench(Path("/nonexistent"))
    bench.environment = {**os.environ, "LD_LIBRARY_PATH": ""}
    reader = bench.reader()
    try:
        kind, code, message = reader.ask("open")["error"]
    finally:
        reader.close()
    assert (kind, code) == ("CollectorUnavailable", "no_driver")
    assert "install the NVIDIA driver" in message


def test_no_gpus(bench: Bench) -> None:
    bench.play(Scenario(driver_version="550.1"))
    assert bench.reader().ask("open")["error"][:2] == ["CollectorUnavailable", "no_gpu"]


@pytest.mark.parametrize(
    ("effect", "code"), [(18, "driver_mismatch"), (9, "no_driver"), (1, "driver_failed")]
)
def test_a_driver_reloaded_under_us(bench: Bench, effect: int, code: str) -> None:
    healthy = scene(gpu(), gpu(1))
    bench.play(healthy)
    reader = bench.reader()
    before = reader.ask("report")
    bench.play(msgspec.structs.replace(healthy, faults=(Fault(function="*", effect=effect),)))
    broken = reader.until(
        lambda r: codes(r["sample"])[:1] == [(code, None, True)], "the failure", command="report"
    )
    assert broken["facts"]["devices"] == before["facts"]["devices"]
    bench.play(healthy)
    # What the node does after its waiting time (tests/unit/collect/test_node.py) is to open again.
    reader.until(lambda answer: answer is None, "the driver opens again", command="open")
    assert reader.read()["samples"] == before["sample"]["devices"]


def test_a_new_library_on_disk_is_loaded_after_a_mismatch(bench: Bench, tmp_path: Path) -> None:
    """After an upgrade the loaded file never fits again; opening must find the new one."""
    new, old = library_or_skip(), library_or_skip(old_driver=True)
    folder = tmp_path / "driver"
    folder.mkdir()
    shutil.copy(old, folder / LIBRARY_NAME)
    bench.play("mismatch")
    bench.environment = simulator_environment(folder / LIBRARY_NAME, bench.scenario)
    reader = bench.reader()
    assert reader.ask("open")["error"][1] == "driver_mismatch"
    shutil.copy(new, folder / "fresh")
    (folder / "fresh").replace(folder / LIBRARY_NAME)
    bench.play("healthy")
    reader.until(lambda answer: answer is None, "the driver opens", command="open")
    # Only the new file has the call that tells memory without the reserved part.
    assert "memory_basis" not in reader.read()["devices"][0]


def test_xids(bench: Bench) -> None:
    bench.play("xid")
    reader = bench.reader()
    reader.ask("open")
    uuids = [device["uuid"] for device in reader.read()["devices"]]
    reading = reader.until(lambda r: len(r["problems"]) == 5, "four Xids and a lost GPU")
    xids = {
        problem["message"].split(",")[0]: problem
        for problem in reading["problems"]
        if problem["code"] == "xid"
    }
    assert {name: (p["device_uuid"], p.get("is_fault", False)) for name, p in xids.items()} == {
        "Xid 13": (uuids[0], False),
        "Xid 48": (uuids[1], True),
        "Xid 63": (uuids[1], False),
        "Xid 79": (uuids[3], True),
    }
    assert ("gpu_lost", uuids[3], True) in codes(reading)


def test_skipped_gpus_are_never_touched(bench: Bench) -> None:
    bench.play("hung_gpu")
    reader = bench.reader()
    reader.ask("skip 1")
    reader.ask("open", 10)
    reading = reader.ask("read", 10)
    assert [device["index"] for device in reading["devices"]] == [0, 2, 3]
    assert 1 not in {device for device, _ in reader.ask("calls")}


def test_skipping_later_keeps_the_gpu_listed(bench: Bench) -> None:
    bench.play(scene(gpu(), gpu(1)))
    reader = bench.reader()
    reader.ask("open")
    reader.read()
    reader.ask("skip 0")
    reader.ask("calls")
    reading = reader.read()
    assert codes(reading) == [("driver_hung", "GPU-0", True)]
    assert reading["samples"][0] == {}
    assert reading["samples"][1]["temperature_celsius"] == 40.0
    # A change elsewhere makes it look for all GPUs anew.
    bench.play(scene(gpu(), gpu(1), gpu(2)))
    found = reader.until(lambda r: len(r["devices"]) == 3, "a third GPU")
    assert codes(found) == [("driver_hung", "GPU-0", True)]
    assert 0 not in {device for device, _ in reader.ask("calls")}


def test_a_sleeping_gpu_is_not_woken(bench: Bench, tmp_path: Path) -> None:
    bench.play(scene(gpu(), gpu(1)))
    for bus, control in (("0000:01:00.0", "on"), ("0000:02:00.0", "auto")):
        power = tmp_path / "sys" / "bus" / "pci" / "devices" / bus / "power"
        power.mkdir(parents=True)
        (power / "control").write_text(f"{control}\n")
        (power / "runtime_status").write_text("suspended\n")
    reader = bench.reader(sys_root=str(tmp_path / "sys"))
    reader.ask("open")
    reader.read()  # opening has woken it; nothing changes on it while it sleeps from then on
    reader.ask("calls")
    for _ in range(12):
        reading = reader.read()
        assert reading["samples"][0]["temperature_celsius"] == 40.0
        assert reading["samples"][1] == {"utilization_gpu": 0.0, "memory_used_bytes": 3 * GIB}
    assert 1 not in {device for device, _ in reader.ask("calls")}
    (power / "runtime_status").write_text("active\n")
    assert reader.read()["samples"][1]["temperature_celsius"] == 40.0


def test_many_processes(bench: Bench) -> None:
    processes = tuple(
        SimulatedProcess(pid=100_000 + n, memory_used_bytes=n, sm_percent=n % 100) for n in range(300)
    )
    bench.play(scene(gpu(processes=processes)))
    reader = bench.reader()
    reader.ask("open")
    uses = reader.read()["uses"]
    assert [(use["pid"], use["gpu_memory_bytes"], use["utilization_sm"]) for use in uses] == [
        (100_000 + n, n, n % 100 / 100) for n in range(300)
    ]


def test_compute_and_graphics(bench: Bench) -> None:
    processes = (
        SimulatedProcess(pid=11, type="compute+graphics", memory_used_bytes=5),
        SimulatedProcess(pid=12, type="graphics", memory_used_bytes=None),
    )
    bench.play(scene(gpu(processes=processes)))
    reader = bench.reader()
    reader.ask("open")
    uses = reader.read()["uses"]
    assert [(use["pid"], use["kind"], use.get("gpu_memory_bytes")) for use in uses] == [
        (11, "compute", 5),
        (12, "graphics", None),
    ]
