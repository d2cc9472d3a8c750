"""pick and run on this machine alone, without a hub, on simulated cards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

REPOSITORY = Path(__file__).parents[3]


def gpuherd(home: Path, scenario: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GPUHERD_LOCK_DIR": str(home / "locks"),
    }
    library = build_library(REPOSITORY / "build/sim")
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", *arguments],
        env=simulator_environment(library, SCENARIOS / scenario, environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_this_machine_without_a_hub(tmp_path: Path) -> None:
    picked = gpuherd(tmp_path, "healthy.json", "pick", "--here", "-n", "2", "--type", "a100", "--mem", "80G")
    assert (picked.returncode, picked.stderr) == (0, "")
    uuids = picked.stdout.removeprefix("CUDA_VISIBLE_DEVICES=").strip().split(",")
    assert len(set(uuids)) == 2
    ran = gpuherd(
        tmp_path,
        "healthy.json",
        "run",
        "--here",
        "-n",
        "2",
        "--",
        "sh",
        "-c",
        "echo $CUDA_VISIBLE_DEVICES; exit 3",
    )
    assert (ran.returncode, sorted(ran.stdout.strip().split(","))) == (3, sorted(uuids))
    none = gpuherd(tmp_path, "healthy.json", "pick", "--here", "-n", "9")
    assert (none.returncode, none.stdout) == (3, "")
    assert "9 GPUs wanted on this machine, and 2 can be had; 6 busy" in none.stderr


def test_slices_of_this_machine(tmp_path: Path) -> None:
    picked = gpuherd(tmp_path, "mig.json", "pick", "--here", "--type", "mig")
    assert (picked.returncode, picked.stdout[:25]) == (0, "CUDA_VISIBLE_DEVICES=MIG-")
    ran = gpuherd(
        tmp_path, "mig.json", "run", "--here", "-n", "2", "--type", "mig", "--", "sh", "-c", "exit 3"
    )
    assert (ran.returncode, "2 MIG slices, and CUDA uses no more than one per process" in ran.stderr) == (
        3,
        True,
    )


def test_a_machine_without_a_driver(tmp_path: Path) -> None:
    done = gpuherd(tmp_path, "driver_not_loaded.json", "run", "--here", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("gpuherd: ")
