"""pick and run on this machine alone, without a hub, on simulated cards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from support.running import PATIENCE_SECONDS

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
        timeout=PATIENCE_SECONDS,
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
    assert "9 GPUs requested on this machine, 2 available; 6 busy" in none.stderr


THREADS = """
import os, signal
from pathlib import Path
parent = Path(f"/proc/{os.getppid()}")
def lets_in(thread):
    (mask,) = (line.split()[1] for line in (thread / "status").open() if line.startswith("SigBlk"))
    return [n.name for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1) if not int(mask, 16) >> (n - 1) & 1]
threads = [thread for thread in (parent / "task").iterdir() if thread.name != parent.name]
print(len(threads), *(name for thread in threads for name in lets_in(thread)))
"""


def test_no_thread_of_run_takes_the_signals_of_its_command(tmp_path: Path) -> None:
    # Between two looks of the main thread they would be lost there, or end gpuherd while its command goes on.
    done = gpuherd(tmp_path, "healthy.json", "run", "--here", "--", sys.executable, "-c", THREADS)
    assert done.returncode == 0, done.stderr
    count, *let_in = done.stdout.split()
    assert int(count) > 0 or os.cpu_count() == 1, "numpy starts a thread for each further core"
    assert let_in == []


def test_slices_of_this_machine(tmp_path: Path) -> None:
    picked = gpuherd(tmp_path, "mig.json", "pick", "--here", "--type", "mig")
    assert (picked.returncode, picked.stdout[:25]) == (0, "CUDA_VISIBLE_DEVICES=MIG-")
    ran = gpuherd(
        tmp_path, "mig.json", "run", "--here", "-n", "2", "--type", "mig", "--", "sh", "-c", "exit 3"
    )
    assert (ran.returncode, "2 MIG slices, but a CUDA process can use only one" in ran.stderr) == (
        3,
        True,
    )


def test_a_machine_without_a_driver(tmp_path: Path) -> None:
    done = gpuherd(tmp_path, "driver_not_loaded.json", "run", "--here", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("gpuherd: ")
