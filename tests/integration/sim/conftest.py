"""The simulated library, compiled once, and real programs run against it in processes of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from gpuherd.collect.scenario import Scenario, dump_scenario
from support.running import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[3]
READER = Path(__file__).with_name("read_everything.py")


@pytest.fixture(scope="session")
def library() -> Path:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    return build_library(REPOSITORY / "build" / "sim")


@pytest.fixture(scope="session")
def old_library() -> Path:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    return build_library(REPOSITORY / "build" / "sim", old_driver=True)


class Stage:
    """A library and a scenario file; programs started here see the simulated cards."""

    def __init__(self, library: Path, scenario: Path) -> None:
        self.scenario = scenario
        self.environment = simulator_environment(library, scenario)

    def play(self, scenario: Scenario | bytes) -> None:
        """Replaces the scenario in one step, as an editor or a test of ours must."""
        fresh = self.scenario.with_suffix(".new")
        fresh.write_bytes(scenario if isinstance(scenario, bytes) else dump_scenario(scenario))
        fresh.replace(self.scenario)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, command)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-c", code)

    def json(self, *command: str | Path) -> Any:
        done = self.run(*command)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def read(self) -> Any:
        """Everything nvidia-ml-py can ask, see read_everything.py."""
        return self.json(sys.executable, READER)

    def tool(self, name: str) -> Path:
        """A program of the environment the tests run in."""
        return Path(sys.executable).with_name(name)


StageFor = Callable[..., Stage]


@pytest.fixture
def stage(library: Path, tmp_path: Path) -> StageFor:
    """``stage(scenario)``: a scenario of our own; ``stage(name="healthy")``: a ready one."""

    def build(
        scenario: Scenario | bytes | None = None, *, name: str = "", using: Path | None = None
    ) -> Stage:
        built = Stage(using or library, tmp_path / "scenario.json")
        built.play((SCENARIOS / f"{name}.json").read_bytes() if scenario is None else scenario)
        return built

    return build
