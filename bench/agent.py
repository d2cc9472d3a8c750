"""P1: what a sample of eight GPUs costs the node, against bare nvidia-ml-py and against gpustat, on simulated cards."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from sim.build import SCENARIOS, build_library, simulator_environment

from bench.measure import Figure, alternate, cpu_seconds, memory_bytes
from bench.servers import enrol_many, serving_hub

__all__ = ["measure_p1"]

SAMPLES = 2000
PACED_SAMPLES = 40
AGENT_INTERVAL_SECONDS = 0.2
US = 1e6
MIB = 2**20


@contextmanager
def eight_busy_gpus(folder: Path) -> Iterator[dict[str, str]]:
    """Simulate eight GPUs with one real process each; gives the environment in which NVML sees them."""
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(8)]
    try:
        scenario = json.loads((SCENARIOS / "healthy.json").read_text())
        for gpu, sleeper in zip(scenario["gpus"], sleepers, strict=True):
            gpu["processes"] = [{"pid": sleeper.pid, "memory_used_bytes": 2**33, "sm_percent": 80}]
        file = folder / "scenario.json"
        file.write_text(json.dumps(scenario))
        yield simulator_environment(build_library(Path("build/sim")), file)
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def _told_by(module: str, environment: dict[str, str], *arguments: object) -> float:
    output = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments or (SAMPLES,))],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(output.stdout)


def _gpustat(environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [str(Path(sys.executable).with_name("gpustat")), "--json"],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def _whole_agent(environment: dict[str, str], folder: Path, seconds: float) -> tuple[float, int, int]:
    """Run a real agent against a real hub; gives CPU seconds per accepted sample, and RSS and PSS of both processes."""
    state_dir = folder / "hub"
    (credential,) = enrol_many(state_dir, 1)
    agent_dir = folder / "agent"
    agent_dir.mkdir()
    (agent_dir / "credential").write_text(credential)
    (agent_dir / "credential").chmod(0o600)
    with serving_hub(state_dir) as hub:
        agent = subprocess.Popen(
            [sys.executable, "-m", "gpuherd", "agent", "--hub", f"http://127.0.0.1:{hub.port}",
             "--state-dir", str(agent_dir), "--interval", str(AGENT_INTERVAL_SECONDS)],
            env=environment,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 30
            while _accepted(hub.port) < 10:
                if time.monotonic() > deadline:
                    raise SystemExit("the agent does not report")
                time.sleep(0.2)
            pids = [agent.pid, *_children(agent.pid)]
            taken, before = _accepted(hub.port), cpu_seconds(*pids)
            time.sleep(seconds)
            cost = (cpu_seconds(*pids) - before) / (_accepted(hub.port) - taken)
            memory = [memory_bytes(pid) for pid in pids]
        finally:
            agent.terminate()
            agent.wait(10)
    return cost, sum(rss for rss, _ in memory), sum(pss for _, pss in memory)


def _accepted(port: int) -> int:
    with urlopen(f"http://127.0.0.1:{port}/api/v1/health", timeout=10) as answer:
        return sum(int(node["accepted"]) for node in json.load(answer)["nodes"])


def measure_p1(rounds: int = 5) -> list[Figure]:
    """Measure reading, then the agent as a whole."""
    with tempfile.TemporaryDirectory() as name, eight_busy_gpus(Path(name)) as extra:
        environment = {**os.environ, **extra}
        # As on a user's machine, where modules are compiled once: compiling at each start leaves memory behind.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        ours, bare, paced, gpustat = alternate(
            rounds,
            lambda: _told_by("bench.collecting", environment),
            lambda: _told_by("bench.bare_nvml", environment),
            lambda: _told_by("bench.bare_nvml", environment, PACED_SAMPLES, AGENT_INTERVAL_SECONDS),
            lambda: _gpustat(environment),
        )
        whole, rss, pss = _whole_agent(environment, Path(name), 15)
    return [
        Figure(
            id="P1",
            what="CPU to read, pack and encode a sample of 8 GPUs with 8 processes",
            value=round(ours * US),
            unit="µs",
            against="bare nvidia-ml-py asking the same",
            baseline=round(bare * US),
            ratio=round(ours / bare, 2),
            goal="≤ 2×",
            met=ours <= 2 * bare,
        ),
        Figure(
            id="P1",
            what="the same",
            value=round(ours * US),
            unit="µs",
            against="one `gpustat --json`",
            baseline=round(gpustat * US),
            ratio=round(ours / gpustat, 4),
        ),
        Figure(
            id="P1",
            what=f"CPU of the whole agent per sample (two processes, WebSocket, every {AGENT_INTERVAL_SECONDS} s)",
            value=round(whole * US),
            unit="µs",
            against="bare nvidia-ml-py asking the same",
            baseline=round(bare * US),
            ratio=round(whole / bare, 2),
            goal="≤ 2×",
            met=whole <= 2 * bare,
            note="wake-ups of two processes and the socket included, which the yardstick has not",
        ),
        Figure(
            id="P1",
            what="the same",
            value=round(whole * US),
            unit="µs",
            against=f"bare nvidia-ml-py asking every {AGENT_INTERVAL_SECONDS} s, caches as cold",
            baseline=round(paced * US),
            ratio=round(whole / paced, 2),
        ),
        Figure(
            id="P1",
            what="memory of the whole agent, both processes",
            value=round(rss / MIB, 1),
            unit="MiB RSS",
            goal="≤ 40 MB",
            met=rss <= 40e6,
            note=f"{pss / MIB:.1f} MiB PSS: pages that both share counted once",
        ),
    ]
