"""Readings that once went wrong, from the driver or its tool through a real agent to what the hub says of the card.

Each case has a number in the list of findings (B1 to B12) and says what was seen before.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, build_library, simulator_environment

from e2e.hub_process import HubProcess, ask
from support.running import eventually, running

ROOT = Path(__file__).parents[3]
GIB, MIB = 2**30, 2**20
HOST_PIDS = 0xEFFFFFFC
"""Inode of the host's pid namespace. In another one no agent calls a card free."""

pytestmark = [
    pytest.mark.skipif(
        shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed: no simulated NVML"
    ),
    pytest.mark.skipif(
        Path("/proc/self/ns/pid").stat().st_ino != HOST_PIDS,
        reason="a container without the host's pids: no agent here may call a card free",
    ),
]


class Machine:
    """A machine with simulated cards or made-up tools, and an agent of its own."""

    def __init__(self, folder: Path, hub: HubProcess) -> None:
        folder.mkdir()
        self.name, self.folder, self.hub = folder.name, folder, hub
        self._programs = folder / "bin"
        self._programs.mkdir()
        self._state_dir = folder / "state"
        self._state_dir.mkdir(mode=0o700)
        (self._state_dir / "credential").write_text(hub.join(self.name).credential)
        (self._state_dir / "credential").chmod(0o600)

    def card(self, index: int = 0, **more: Any) -> dict[str, Any]:
        """Give an idle card of this machine."""
        return {
            "uuid": f"GPU-{self.name}-{index}",
            "name": "NVIDIA A100-SXM4-80GB",
            "serial": f"156000000000{index}",
            "compute_capability": "8.0",
            "pci_bus_id": f"00000000:{index + 1:02x}:00.0",
            "memory_total_bytes": 80 * GIB,
            "memory_reserved_bytes": 0,
            "memory_used_bytes": MIB,
            "utilization_gpu_percent": 0,
            "utilization_memory_percent": 0,
            "temperature_celsius": 30,
            "throttle_reasons": 1,
            "ecc_uncorrected_volatile": 0,
            "ecc_corrected_volatile": 0,
            **more,
        }

    def split_card(self, index: int = 0, **more: Any) -> dict[str, Any]:
        """Give a card with two slices that nobody uses."""
        slices = [self.slice(index, number, number, 0) for number in (1, 2)]
        return self.card(index, mig_mode=True, mig_slices=slices, **more)

    def slice(self, index: int, number: int, instance: int, compute: int, **more: Any) -> dict[str, Any]:
        """Give a slice of a card."""
        return {
            "uuid": f"MIG-{self.name}-{index}-{number}",
            "profile": "3g.40gb",
            "gpu_instance": instance,
            "compute_instance": compute,
            "memory_total_bytes": 40 * GIB,
            "memory_used_bytes": MIB,
            "memory_reserved_bytes": 0,
            **more,
        }

    def play(self, *cards: dict[str, Any], driver_version: str = "550.54.15", **more: Any) -> None:
        """Let the simulated NVML have these cards."""
        fresh = self.folder / "scenario.new"
        scenario = {"driver_version": driver_version, "epoch": 0, "gpus": cards, **more}
        fresh.write_text(json.dumps(scenario))
        fresh.replace(self.folder / "scenario.json")

    def install(self, program: str, *answers: tuple[str, str | bytes], status: int = 0) -> None:
        """Make a tool that answers by the beginning of its arguments, and fails at all others."""
        lines = ["#!/bin/sh", 'case "$*" in']
        for number, (arguments, answer) in enumerate(answers):
            file = self.folder / f"{program}-{number}"
            file.write_bytes(answer if isinstance(answer, bytes) else answer.encode())
            lines.append(f"'{arguments}'*) cat '{file}'; exit {status} ;;")
        lines += ["esac", "echo 'Unknown Error'", "exit 255", ""]
        (self._programs / program).write_text("\n".join(lines))
        (self._programs / program).chmod(0o755)

    def agent(self, collector: str = "nvml", interval: str = "0.2") -> AbstractContextManager[Any]:
        """Run an agent."""
        config = self.folder / "gpuherd.toml"
        config.write_text(f'[agent]\ncollectors = ["{collector}"]\ninterval_seconds = {interval}\n')
        environment = simulator_environment(
            build_library(ROOT / "build" / "sim"), self.folder / "scenario.json"
        )
        environment["PATH"] = f"{self._programs}:{os.environ['PATH']}"
        return running(
            "agent", "--config", str(config), "--hub", self.hub.url, "--state-dir", str(self._state_dir),
            environment=environment, log=self.folder / "agent.log",
        )  # fmt: skip

    def look(self) -> dict[str, Any]:
        """Ask the hub about this machine."""
        found: dict[str, Any] = ask(f"{self.hub.url}api/v1/nodes/{self.name}")
        return found

    def until(self, *states: str) -> list[dict[str, Any]]:
        """Wait until the hub shows devices in these states; gives them."""
        seen = eventually(
            self.look,
            lambda node: (
                node["state"] == "live"
                and tuple(device["availability"]["state"] for device in node["devices"]) == states
            ),
        )
        devices: list[dict[str, Any]] = seen["devices"]
        return devices

    def codes(self) -> set[str]:
        """Give the problems that the hub knows of."""
        return {problem["code"] for problem in self.look()["problems"]}


def reason(device: dict[str, Any]) -> str:
    return str(device["availability"]["reason"])


def pids(device: dict[str, Any]) -> list[tuple[int, str]]:
    return [(process["pid"], process["kind"]) for process in device["processes"]]


def b1_early_r535(machine: Machine) -> None:
    """Entries of 32 bytes were read as ones of 24: one right process, then rubbish."""
    processes = [
        {"pid": 1000 + n, "type": "compute" if n < 3 else "graphics", "memory_used_bytes": n * MIB}
        for n in range(5)
    ]
    machine.play(machine.card(processes=processes), machine.card(1), driver_version="535.54.03")
    with machine.agent():
        used, _ = machine.until("busy", "free")
        assert pids(used) == [(1000 + n, "compute" if n < 3 else "graphics") for n in range(5)]


MIG_LOG = """<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>550.1</driver_version><cuda_version>12.4</cuda_version>
<gpu id="00000000:07:00.0"><product_name>A100</product_name><uuid>GPU-b2</uuid>
<mig_mode><current_mig>Enabled</current_mig></mig_mode>
<fb_memory_usage><total>81920 MiB</total><reserved>600 MiB</reserved><used>30 MiB</used></fb_memory_usage>
<utilization><gpu_util>N/A</gpu_util></utilization><pci><pci_bus_id>00000000:07:00.0</pci_bus_id></pci>
<mig_devices><mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>9984 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device>
<mig_device><index>1</index><gpu_instance_id>4</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>9984 MiB</total><used>99 MiB</used></fb_memory_usage></mig_device></mig_devices>
<processes><process_info><gpu_instance_id>4</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<pid>77</pid><type>C</type><process_name>python</process_name><used_memory>87 MiB</used_memory>
</process_info></processes></gpu></nvidia_smi_log>"""
MIG_LIST = """GPU 0: A100 (UUID: GPU-b2)
  MIG 1g.10gb     Device  0: (UUID: MIG-b2-0)
  MIG 1g.10gb     Device  1: (UUID: MIG-b2-1)
"""


def b2_slices_by_nvidia_smi(machine: Machine) -> None:
    """A query that fails gave each slice twice, and the hub refused the node for ever."""
    machine.install("nvidia-smi", ("-q -x", MIG_LOG), ("-L", MIG_LIST))
    with machine.agent("nvidia_smi"):
        _, unused, used = machine.until("busy", "free", "busy")
        assert (unused["facts"]["uuid"], used["facts"]["uuid"]) == ("MIG-b2-0", "MIG-b2-1")
        assert pids(used) == [(77, "compute")]


def b3_mig_mode_unknown(machine: Machine) -> None:
    """A split GPU whose mode could not be asked at the start passed as a whole one, and free."""
    fault = {"function": "nvmlDeviceGetMigMode", "effect": 999}
    machine.play(machine.split_card(), faults=[fault])
    with machine.agent():
        (card,) = machine.until("unknown")
        assert reason(card) == "some values that decide this could not be read"
        (problem,) = machine.look()["problems"]
        assert problem["code"] == "processes_failed"
        assert "nvmlDeviceGetMigMode" in problem["message"]
        machine.play(machine.split_card())
        split = [device["facts"]["uuid"] for device in machine.until("free", "free", "free")]
    machine.play(machine.split_card(), faults=[fault])
    with machine.agent():  # one that has not seen the slices itself
        devices = machine.until("unknown", "unknown", "unknown")
        assert [device["facts"]["uuid"] for device in devices] == split


def b4_slices_not_listed(machine: Machine) -> None:
    """All slices vanished with the next look at the layout, without a word."""
    machine.play(machine.split_card())
    with machine.agent():
        before = [device["facts"]["uuid"] for device in machine.until("free", "free", "free")]
        others: list[dict[str, Any]] = []
        for function in ("nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"):
            others.append(machine.card(len(others) + 1))  # one more makes the agent look at the layout again
            fault = {"function": function, "gpu": 0, "effect": 999}
            machine.play(machine.split_card(), *others, faults=[fault])
            devices = machine.until("unknown", "unknown", "unknown", *["free"] * len(others))
            assert [device["facts"]["uuid"] for device in devices][:3] == before
            assert function in str(machine.look()["problems"])
            machine.play(machine.split_card(), *others)
            machine.until("free", "free", "free", *["free"] * len(others))


def b5_gone(machine: Machine) -> None:
    """A GPU that went was forgotten with the next sample, or with the agent's next start."""
    machine.play(machine.card(), machine.card(1), machine.card(2))
    with machine.agent():
        machine.until("free", "free", "free")
        machine.play(machine.card(), machine.card(2))
        # Lost first, as its handle is still known.
        eventually(machine.look, lambda node: "missing since" in reason(node["devices"][1]))
        _, gone, _ = machine.until("free", "fault", "free")
        assert gone["facts"]["uuid"] == machine.card(1)["uuid"]
        assert all(word in reason(gone) for word in ("GPU 1", "A100", "1560000000001", "slot 0000:02:00.0"))
    machine.play(machine.card())
    with machine.agent():
        *_, gone = machine.until("free", "fault", "fault")
        assert "missing since" in reason(gone)


def b6_no_memory_figures(machine: Machine) -> None:
    """A discrete card without memory figures was given the host's, and called free by them."""
    unknown: dict[str, Any] = dict.fromkeys(
        ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes")
    )
    machine.play(machine.card(name="GeForce GT 730", compute_capability="3.5", **unknown))
    with machine.agent():
        (card,) = machine.until("unknown")
        assert reason(card) == "some values that decide this could not be read"
        assert "memory_total_bytes" not in card["facts"]
        assert "memory_used_bytes" not in card["sample"]


def log_of(*cards: str) -> str:
    gpus = "".join(
        f"""<gpu id="00000000:{n + 1:02x}:00.0"><product_name>A100</product_name><uuid>GPU-b7-{n}</uuid>
        <fb_memory_usage><total>81920 MiB</total><reserved>0 MiB</reserved><used>1 MiB</used></fb_memory_usage>
        <utilization><gpu_util>0 %</gpu_util><memory_util>0 %</memory_util></utilization>{card}
        <processes></processes></gpu>"""
        for n, card in enumerate(cards)
    )
    return f"<nvidia_smi_log><driver_version>550.1</driver_version>{gpus}</nvidia_smi_log>"


def b7_xml_log(machine: Machine) -> None:
    """The log's ECC counters of drivers since 450 were not read, power was the wrong one, N/A meant "not slowed"."""
    ecc = "<sram_uncorrectable>0</sram_uncorrectable><dram_uncorrectable>5</dram_uncorrectable>"
    broken = f"<ecc_errors><volatile>{ecc}</volatile></ecc_errors>"
    power = (
        "<average_power_draw>139.62 W</average_power_draw><instant_power_draw>142.33 W</instant_power_draw>"
    )
    powered = f"<gpu_power_readings><power_draw>N/A</power_draw>{power}</gpu_power_readings>"
    silent = "<clocks_event_reasons><clocks_event_reason_hw_slowdown>N/A</clocks_event_reason_hw_slowdown>"
    braked = "<clocks_event_reasons><clocks_event_reason_hw_power_brake_slowdown>Active"
    braked += "</clocks_event_reason_hw_power_brake_slowdown></clocks_event_reasons>"
    log = log_of(broken, powered + silent + "</clocks_event_reasons>", braked)
    machine.install("nvidia-smi", ("-q -x", log), ("-L", "GPU 0: A100 (UUID: GPU-b7-0)\n"))
    with machine.agent("nvidia_smi"):
        faulty, fine, slow = machine.until("fault", "free", "fault")
        assert "uncorrected ECC errors" in reason(faulty)
        assert "power brake" in reason(slow)
        assert fine["sample"]["power_watts"] == 139.62
        assert fine["facts"]["pci_bus_id"] == "00000000:02:00.0"
        assert "slowdown" in fine["availability"]["not_checked"]


def b8_rocm_3(machine: Machine) -> None:
    """Names of ROCm 3 were not known: no memory, so free by utilisation alone."""
    cards = {
        f"card{n}": {
            "Unique ID": f"21b5140d8a7d4d6{n}",
            "vram Total Memory (B)": "17163091968",
            "vram Total Used Memory (B)": used,
            "Fan Speed (%)": "20",
            "sclk clock speed": "(852Mhz)",
            "GPU use (%)": "0",
        }
        for n, used in enumerate(("11022336", "9000000000"))
    }
    machine.install("rocm-smi", ("", json.dumps({**cards, "system": {"Driver version": "5.6.0"}})))
    with machine.agent("rocm_smi"):
        unused, _ = machine.until("free", "busy")
        assert unused["facts"]["uuid"] == "GPU-21b5140d8a7d4d60"
        assert (unused["sample"]["memory_used_bytes"], unused["sample"]["fan_ratio"]) == (11022336, 0.2)


def b9_desktop(machine: Machine) -> None:
    """A desktop's own memory made its card busy, then held."""
    desktop = [
        {"pid": 1000 + n, "type": "graphics", "memory_used_bytes": used * MIB}
        for n, used in enumerate((200, 90))
    ]
    titan: dict[str, Any] = {
        "name": "NVIDIA TITAN V",
        "memory_total_bytes": 12288 * MIB,
        "memory_used_bytes": 290 * MIB,
    }
    machine.play(machine.card(processes=desktop, **titan), machine.card(1, **titan))
    with machine.agent():
        machine.until("free", "busy")


def b10_two_compute_instances(machine: Machine) -> None:
    """Memory that two compute instances share counted on both: the unused one was busy."""
    shared = {"memory_used_bytes": 17 * GIB}
    worker = [{"pid": 1000, "memory_used_bytes": 17 * GIB}]
    slices = [
        machine.slice(0, 1, 2, 0, processes=worker, **shared),
        machine.slice(0, 2, 2, 1, **shared),
    ]
    machine.play(machine.split_card() | {"mig_slices": slices})
    with machine.agent():
        _, used, unused = machine.until("busy", "busy", "free")
        assert pids(used) == [(1000, "compute")]
        assert pids(unused) == []


def b12_warnings_before_json(machine: Machine) -> None:
    """A bracket in a warning before the JSON made all GPUs faulty."""
    warning = "WARNING: [driver] {not loaded}: see [1]\n"
    memory = {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}}
    metric = [{"gpu": 0, "usage": {"gfx_activity": {"value": 0, "unit": "%"}}, "mem_usage": memory}]
    static = [{"gpu": 0, "asic": {"market_name": "MI300X", "asic_serial": "0x1F"}}]
    processes = [{"gpu": 0, "process_list": [{"process_info": "No running processes detected"}]}]
    machine.install(
        "amd-smi",
        *((what, warning + json.dumps(answer)) for what, answer in
          (("static", static), ("list", [{"gpu": 0}]), ("metric", metric), ("process", processes))),
    )  # fmt: skip
    with machine.agent("amd_smi"):
        machine.until("free")


def b12_more_than_4096_processes(machine: Machine) -> None:
    """GPUs behind the first 4,096 processes had none listed, and were free."""
    many = [{"pid": 100_000 + n, "memory_used_bytes": 1024} for n in range(4096)]
    one = [{"pid": 200_000, "memory_used_bytes": 1024}]
    machine.play(machine.card(processes=many), machine.card(1, processes=one), machine.card(2))
    with machine.agent():
        _, cut, _ = machine.until("busy", "unknown", "free")
        assert reason(cut) == "some values that decide this could not be read"
        assert "processes_failed" in machine.codes()


def b12_list_cut_by_the_driver(machine: Machine) -> None:
    """However much room the driver is given, it says that its list is longer."""
    fault = {"function": "nvmlDeviceGetComputeRunningProcesses*", "gpu": 0, "effect": 7}
    machine.play(machine.card(), machine.card(1), faults=[fault])
    with machine.agent():
        cut, _ = machine.until("unknown", "free")
        assert reason(cut) == "some values that decide this could not be read"
        assert "processes_failed" in machine.codes()
        machine.play(machine.card(), machine.card(1))
        machine.until("free", "free")


def b12_nothing_permitted(machine: Machine) -> None:
    """A GPU of which nothing may be asked was unknown without a word."""
    asked = ("Memory", "Util", "Temp", "Power", "Clock", "Current", "Total", "Compute", "Graphics", "Perf")
    faults = [{"function": f"nvmlDeviceGet{name}*", "gpu": 0, "effect": 4} for name in asked]
    machine.play(machine.card(), machine.card(1), faults=faults)
    with machine.agent():
        machine.until("unknown", "free")
        assert machine.codes() & {"no_permission", "processes_failed"}


def b12_corrupt_inforom(machine: Machine) -> None:
    """What nvidia-smi warns of was dropped."""
    fields = ("index", "uuid", "name", "pci.bus_id", "memory.total", "memory.used", "utilization.gpu")
    row = "0, GPU-b12, A100, 00000000:01:00.0, 81920, 1, 0\n"
    warning = "WARNING: infoROM is corrupted at gpu 0000:01:00.0\n"
    machine.install(
        "nvidia-smi",
        ("--help-query-gpu", "".join(f'"{field}"\nwhat it is\n\n' for field in fields)),
        ("--query-gpu", row + warning),
        ("--query-compute-apps", ""),
    )
    with machine.agent("nvidia_smi"):
        machine.until("free")
        assert "infoROM is corrupted" in str(machine.look()["problems"])


def b12_slow_driver(machine: Machine) -> None:
    """A driver of 60 ms a call left the node stale most of the time."""
    cards = [machine.card(n) for n in range(8)]
    machine.play(*cards, latencies=[{"function": "nvmlDeviceGet*", "seconds": 0.01}])
    with machine.agent():
        node = eventually(
            machine.look, lambda node: node["state"] == "live" and "slow_driver" in str(node["problems"])
        )
        assert node["interval_seconds"] > 0.2, "the hub waits longer for the next sample"
        machine.until(*["free"] * 8)


STORIES = [
    value for name, value in sorted(globals().items()) if name.startswith("b") and name[1:2].isdecimal()
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    process = HubProcess(tmp_path_factory.mktemp("hub"))
    process.start()
    yield process
    process.stop()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_what_was_misread_reads_right_at_the_hub(
    hub: HubProcess, tmp_path: Path, story: Callable[[Machine], None]
) -> None:
    story(Machine(tmp_path / story.__name__.replace("_", "-"), hub))
