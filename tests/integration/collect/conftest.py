"""Our collector and its peers, each in a process of its own, on the simulated library."""

from __future__ import annotations

import json
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from gpuherd.collect.scenario import Scenario, dump_scenario, load_scenario
from support.running import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[3]
READER = Path(__file__).with_name("nvml_reader.py")


def library_or_skip(*, old_driver: bool = False) -> Path:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    return build_library(REPOSITORY / "build" / "sim", old_driver=old_driver)


class Reader:
    """The NVML collector in another process; answers are plain JSON."""

    def __init__(self, environment: dict[str, str], options: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(READER), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def ask(self, command: str, deadline_seconds: float = PATIENCE_SECONDS) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            assert selector.select(deadline_seconds), f"no answer to {command!r} within {deadline_seconds} s"
        line = self.process.stdout.readline()
        assert line, f"the reader ended with status {self.process.wait()} at {command!r}"
        return json.loads(line)

    def read(self) -> Any:
        return self.ask("read")

    def until(self, condition: Callable[[Any], bool], what: str, command: str = "read") -> Any:
        """Ask again and again until the answer fits."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition(answer := self.ask(command)):
            assert time.monotonic() < deadline, f"waited in vain for: {what}; last answer: {answer}"
            time.sleep(0.02)
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class Bench:
    """A scenario file, the library that plays it, and programs that look at it."""

    def __init__(self, folder: Path) -> None:
        self.scenario = folder / "scenario.json"
        self.readers: list[Reader] = []
        self.environment: dict[str, str] = {}

    def play(self, scenario: Scenario | str, *, library: Path | None = None) -> None:
        """Set the scene; a name means one of the ready scenarios."""
        if isinstance(scenario, str):
            scenario = load_scenario(SCENARIOS / f"{scenario}.json")
        fresh = self.scenario.with_suffix(".new")
        fresh.write_bytes(dump_scenario(scenario))
        fresh.replace(self.scenario)
        if not self.environment:
            self.environment = simulator_environment(library or library_or_skip(), self.scenario)

    def reader(self, **options: Any) -> Reader:
        made = Reader(self.environment, options)
        self.readers.append(made)
        return made

    def run(self, *command: str, timeout: float = PATIENCE_SECONDS) -> subprocess.CompletedProcess[bytes]:
        tool = Path(sys.executable).with_name(command[0])
        return subprocess.run(
            [str(tool if tool.exists() else command[0]), *command[1:]],
            env=self.environment,
            capture_output=True,
            timeout=timeout,
            check=False,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for reader in made.readers:
        reader.close()
