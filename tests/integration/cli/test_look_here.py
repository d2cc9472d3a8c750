"""This machine alone, without a hub: real commands on simulated cards."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from support.running import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[3]


def run(
    home: Path, *arguments: str, scenario: Path | None = None, code: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    if scenario is not None:
        if shutil.which(COMPILER) is None:
            pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
        environment = simulator_environment(build_library(REPOSITORY / "build/sim"), scenario, environment)
    command = ["-c", f"{code}\nfrom gpuherd.cli import main\nmain()"] if code else ["-m", "gpuherd"]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    """Eight A100; a process that runs is on the first, two are free."""
    scenario = json.loads((SCENARIOS / "healthy.json").read_text())
    scenario["gpus"][0]["processes"] = [{"pid": os.getpid(), "memory_used_bytes": 2**33, "sm_percent": 80}]
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario))
    return file


def test_this_machine(tmp_path: Path, healthy: Path) -> None:
    done = run(tmp_path, "status", "--here", scenario=healthy)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("○ 2 free of 8 GPUs on 1 node   ■ 6 busy\n")
    assert re.search(r"\n  0  ■ busy .*8G", done.stdout), "whose process it is"
    assert re.search(r"\n  7  ○ free ", done.stdout)
    done = run(tmp_path, "free", "--here", "-n", "3", scenario=healthy)
    assert (done.returncode, done.stdout.splitlines()[0].endswith("/6,7")) == (3, True)
    done = run(tmp_path, "gpu", "--here", "6", "--json", scenario=healthy)
    assert json.loads(done.stdout)["availability"]["state"] == "free"
    done = run(tmp_path, "node", "--here", scenario=healthy)
    assert (done.returncode, "CPU" in done.stdout) == (0, True), done


def test_rules_and_names_are_those_of_the_configuration(tmp_path: Path, healthy: Path) -> None:
    (tmp_path / "gpuherd").mkdir()
    config = tmp_path / "gpuherd/gpuherd.toml"
    config.write_text('[agent]\nnode_name = "mine"\n[display.gpus]\n"NVIDIA A100-SXM4-80GB" = "big"\n')
    done = run(tmp_path, "status", "--here", scenario=healthy)
    assert "\nmine  big ×8  " in done.stdout
    config.write_text("[agent]\nnode_nam = 1\n")
    done = run(tmp_path, "status", "--here", scenario=healthy)
    assert (done.returncode, done.stdout) == (1, "")
    assert "gpuherd.toml:2: agent.node_nam: unknown key" in done.stderr


def test_a_driver_that_hangs_does_not_hang_us(tmp_path: Path) -> None:
    (tmp_path / "gpuherd").mkdir()
    (tmp_path / "gpuherd/gpuherd.toml").write_text("[agent]\ncollect_deadline_seconds = 0.5\n")

    done = run(tmp_path, "status", "--here", scenario=SCENARIOS / "hung_gpu.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "the driver hangs in nvml" in done.stdout


def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    for command in (("status",), ("free",), ("gpu", "0")):
        done = run(tmp_path, *command, "--here")
        assert (done.returncode, done.stdout) == (3, ""), done
        assert done.stderr.startswith("gpuherd: on this machine no GPU can be read (nvml: "), done.stderr
        assert done.stderr.count("\n") == 1


def test_a_missing_package_is_one_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "status", "--here", code="import sys; sys.modules['numpy'] = None")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "gpuherd: this command needs the Python package numpy; "
        "install the hub's parts with: pip install 'gpuherd[hub]'\n"
    )
