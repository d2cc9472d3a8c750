"""Real agents on simulated cards report to a real hub; what breaks on one node or GPU stays there."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from e2e.hub_process import HubProcess, ask
from support.running import GPUHERD, PATIENCE_SECONDS, eventually, free_port, running

ROOT = Path(__file__).parents[3]


class SimulatedMachine:
    """A machine with four simulated cards, and an agent of its own."""

    def __init__(self, folder: Path, hub: HubProcess, name: str) -> None:
        folder.mkdir()
        self.folder, self.name, self._hub = folder, name, hub
        self._scenario = json.loads((SCENARIOS / "hung_gpu.json").read_bytes())
        for number, card in enumerate(self._scenario["gpus"]):
            # No card is in two machines.
            card["uuid"] = f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}-{number}')}"
        self.break_with()

    def break_with(self, *faults: dict[str, Any]) -> None:
        fresh = self.folder / "scenario.new"
        fresh.write_text(json.dumps({**self._scenario, "epoch": 0, "faults": faults}))
        fresh.replace(self.folder / "scenario.json")

    def agent(self) -> Any:
        node = self._hub.join(self.name)
        state_dir = self.folder / "state"
        state_dir.mkdir(mode=0o700)
        (state_dir / "credential").write_text(node.credential)
        (state_dir / "credential").chmod(0o600)
        (self.folder / "gpuherd.toml").write_text(
            '[agent]\ncollectors = ["nvml"]\ninterval_seconds = 0.5\ncollect_deadline_seconds = 2\n'
        )
        library = build_library(ROOT / "build" / "sim")
        return running(
            "agent", "--config", str(self.folder / "gpuherd.toml"), "--hub", self._hub.url,
            "--state-dir", str(state_dir),
            environment=simulator_environment(library, self.folder / "scenario.json"),
            log=self.folder / "agent.log",
        )  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    process = HubProcess(tmp_path / "hub")
    process.start()
    yield process
    process.stop()


def states(hub: HubProcess) -> dict[str, list[str]]:
    nodes = ask(f"{hub.url}api/v1/fleet")["nodes"]
    return {
        node["name"]: [node["state"], *(device["availability"]["state"] for device in node["devices"])]
        for node in nodes
    }


def faults(node_states: list[str]) -> int:
    return node_states.count("fault")


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed: no simulated NVML")
@pytest.mark.parametrize("effect", ["hang", "crash", 15])
def test_one_bad_gpu_leaves_its_neighbours_and_other_nodes_live(
    hub: HubProcess, tmp_path: Path, effect: str | int
) -> None:
    machines = [SimulatedMachine(tmp_path / name, hub, name) for name in ("good", "bad")]
    with ExitStack() as stack:
        for machine in machines:
            stack.enter_context(machine.agent())
        healthy = eventually(
            lambda: states(hub),
            lambda seen: all(
                len(seen.get(name, [])) == 5 and seen[name][0] == "live" for name in ("good", "bad")
            ),
        )
        assert faults(healthy["good"]) == faults(healthy["bad"]) == 0

        machines[1].break_with({"function": "nvmlDeviceGet*", "gpu": 2, "effect": effect})
        broken = eventually(
            lambda: states(hub), lambda seen: faults(seen["bad"]) == 1 and seen["bad"][0] == "live"
        )
        assert broken["bad"][3] == "fault"
        assert not {"fault", "stale", "offline", "unknown"} & {*broken["bad"][1:3], broken["bad"][4]}
        assert broken["good"] == healthy["good"]

        before = ask(f"{hub.url}api/v1/nodes/bad")["received_at"]
        after = eventually(
            lambda: ask(f"{hub.url}api/v1/nodes/bad"), lambda node: node["received_at"] > before + 1
        )
        others = [device["sample"] for place, device in enumerate(after["devices"]) if place != 2]
        assert all("temperature_celsius" in sample for sample in others)
        assert after["devices"][2]["availability"]["reason"]


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed: no simulated NVML")
def test_a_driver_that_hangs_with_its_lock_held_leaves_the_host_live(hub: HubProcess, tmp_path: Path) -> None:
    machine = SimulatedMachine(tmp_path / "node", hub, "node")
    with machine.agent():
        eventually(
            lambda: states(hub), lambda seen: len(seen.get("node", [])) == 5 and seen["node"][0] == "live"
        )
        machine.break_with({"function": "nvml*", "effect": "hang_locked"})
        eventually(lambda: states(hub), lambda seen: seen["node"] == ["live"] + ["fault"] * 4)
        node = ask(f"{hub.url}api/v1/nodes/node")
        assert any(problem["code"] == "driver_hung" for problem in node["problems"])
        assert node["host_sample"]["memory_used_bytes"] > 0


def test_up_shows_this_machine_and_stops_when_told(tmp_path: Path) -> None:
    port = free_port()
    with running(
        "up", "--state-dir", str(tmp_path / "state"), "--listen", f"127.0.0.1:{port}", log=tmp_path / "log"
    ) as process:

        def look() -> Any:
            try:
                return ask(f"http://127.0.0.1:{port}/api/v1/fleet")["nodes"]
            except OSError:
                assert process.poll() is None, (tmp_path / "log").read_text()
                return []

        (node,) = eventually(look, lambda nodes: bool(nodes) and nodes[0]["state"] == "live")
        assert node["host"]["memory_total_bytes"] > 0
        if not node["devices"]:
            assert "no GPU can be read" in node["problems"][0]["message"]
    assert process.returncode == 0
    assert f"http://127.0.0.1:{port}/" in (tmp_path / "log").read_text()
    (tmp_path / "state" / "agent" / "credential").stat()


def test_a_bad_folder_and_a_foreign_address_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments, words in (
        (["--state-dir", str(tmp_path / "file" / "below"), "--listen", "127.0.0.1:0"], "state_dir"),
        (["--state-dir", str(tmp_path / "state"), "--listen", "192.0.2.1:8470"], "no address 192.0.2.1"),
    ):
        result = subprocess.run(
            [*GPUHERD, "up", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert result.returncode == 1
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_two_hubs_on_one_port(hub: HubProcess, tmp_path: Path) -> None:
    listen = hub.url.split("/")[2]
    result = subprocess.run(
        [*GPUHERD, "up", "--state-dir", str(tmp_path / "other"), "--listen", listen],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert f"port {listen.rpartition(chr(58))[2]}" in result.stderr
    assert "is in use" in result.stderr
    assert len(result.stderr.splitlines()) == 1
