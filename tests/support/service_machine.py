"""gpuherd's services on a booted machine: simulated GPUs for its agent, and its hub as the machine's root sees it."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, build_library

from support.machine import Machine
from support.running import PATIENCE_SECONDS

__all__ = ["fleet", "give_gpus", "is_page_there", "main_pid", "node_named", "take_for_real"]

PORT = 8470
_BUILT = Path(__file__).parents[2] / "build" / "sim"


def give_gpus(machine: Machine, *, pids: Sequence[int] = ()) -> None:
    """Put a simulated driver with eight GPUs in place; these processes of the machine use the first one."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    scenario = json.loads((SCENARIOS / "healthy.json").read_bytes())
    for gpu in scenario["gpus"]:
        gpu["processes"] = []
    scenario["gpus"][0]["processes"] = [
        {"pid": pid, "type": "compute", "memory_used_bytes": 2**30} for pid in pids
    ]
    machine.copy_in(build_library(_BUILT), "/opt/sim/libnvidia-ml.so.1")
    machine.write("/opt/sim/scenario.json", json.dumps(scenario))
    machine.write(
        "/etc/systemd/system/gpuherd-agent.service.d/simulated.conf",
        "[Service]\nEnvironment=LD_LIBRARY_PATH=/opt/sim GPUHERD_SIM_SCENARIO=/opt/sim/scenario.json\n",
    )
    machine.run("systemctl", "daemon-reload")


def take_for_real(machine: Machine, home: str) -> None:
    """Let the gpuherd installed in ``home`` take the machine for a real one.

    In a pid namespace of its own an agent does not believe that the driver's pids are those it sees, and rightly so:
    here they are, and what its walls let it see of them is the question.
    """
    inode = machine.tell("stat", "-L", "-c", "%i", "/proc/1/ns/pid")
    folder = f"{home}/lib/python3.11/site-packages/gpuherd/collect"
    edit = f"s/^HOST_PID_NAMESPACE = .*/HOST_PID_NAMESPACE = {inode}/"
    machine.run("sed", "-i", edit, f"{folder}/processes.py")
    machine.run("sh", "-c", f"rm {folder}/__pycache__/processes.*")


_ASK_FOR_FLEET = f"""
import pathlib, urllib.request
key = pathlib.Path("/var/lib/gpuherd/local.key").read_text().strip()
headers = {{"Authorization": f"Bearer {{key}}"}}
request = urllib.request.Request("http://127.0.0.1:{PORT}/api/v1/fleet", headers=headers)
print(urllib.request.urlopen(request).read().decode())
"""


def fleet(machine: Machine) -> dict[str, Any]:
    """Give the herd as the hub tells it to its own machine's root; empty while it does not answer."""
    answer = machine.run("python3", "-c", _ASK_FOR_FLEET, check=False, seconds=PATIENCE_SECONDS).stdout
    found: dict[str, Any] = json.loads(answer or '{"nodes": []}')
    return found


def is_page_there(machine: Machine) -> bool:
    """Tell whether the hub serves the page."""
    try:
        with urllib.request.urlopen(f"http://{machine.address}:{PORT}/", timeout=PATIENCE_SECONDS) as answer:
            return b"<title>" in answer.read()
    except (urllib.error.URLError, OSError):
        return False


def node_named(machine: Machine, name: str, state: str = "live") -> dict[str, Any] | None:
    """Find a node in this state."""
    nodes: list[dict[str, Any]] = fleet(machine)["nodes"]
    return next((node for node in nodes if node["name"] == name and node["state"] == state), None)


def main_pid(machine: Machine, unit: str) -> int:
    """Give the process id of a service; 0 if it does not run."""
    return int(machine.tell("systemctl", "show", "--property=MainPID", "--value", unit))
