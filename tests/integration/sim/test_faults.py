"""Each kind of fault is observed by a real program: errors, hangs with and without the lock, crashes, latency."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import msgspec
import pynvml
import pytest

from gpuherd.collect.scenario import Fault, Latency, Scenario, SimulatedGpu
from support.running import PATIENCE_SECONDS

from .conftest import Stage, StageFor

GPUS = tuple(SimulatedGpu(uuid=f"GPU-{i}", name=f"Card {i}", power_watts=100 + i) for i in range(3))
HEALTHY = Scenario(driver_version="1.0", frozen_time=0, gpus=GPUS)
POWER = "nvmlDeviceGetPowerUsage"

# Reads commands from stdin, so that the test decides when: "<thread> <gpu>" asks for the power of a GPU in the thread
# of that name and prints "<thread> <milliwatts or error>" once there is an answer.
ASKER = """
import sys, threading, pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(3)]
print("ready", flush=True)
def ask(thread, gpu):
    try:
        answer = pynvml.nvmlDeviceGetPowerUsage(handles[gpu])
    except pynvml.NVMLError as error:
        answer = f"error {error.value}"
    sys.stdout.write(f"{thread} {answer}\\n")  # in one piece: another thread may answer too
    sys.stdout.flush()
for line in sys.stdin:
    thread, gpu = line.split()
    threading.Thread(target=ask, args=(thread, int(gpu)), daemon=True).start()
"""


def with_fault(**fault: object) -> Scenario:
    return msgspec.structs.replace(HEALTHY, faults=(msgspec.convert(fault, Fault),))


@contextmanager
def asker(stage: Stage) -> Iterator[tuple[IO[str], IO[str]]]:
    """Its stdin and stdout; killed at the end, since a hanging thread would hold it for ever."""
    with subprocess.Popen(
        [sys.executable, "-c", ASKER],
        env=stage.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "ready\n"
            yield child.stdin, child.stdout
        finally:
            child.kill()


def powers(stage: Stage) -> list[object]:
    return [gpu if isinstance(gpu, str) else gpu["power"] for gpu in stage.read()["gpus"]]


def test_an_error_of_one_function_on_one_gpu(stage: StageFor) -> None:
    assert powers(stage(with_fault(function=POWER, gpu=1, effect=999))) == [100_000, "error 999", 102_000]


def test_an_error_of_every_function_on_one_gpu(stage: StageFor) -> None:
    report = stage(with_fault(function="*", gpu=2, effect=pynvml.NVML_ERROR_GPU_IS_LOST)).read()
    assert [isinstance(gpu, str) and gpu for gpu in report["gpus"]] == [False, False, "error 15"]


def test_a_pattern_names_all_versions_of_a_function(stage: StageFor) -> None:
    report = stage(with_fault(function="nvmlDeviceGetMemoryInfo*", effect=pynvml.NVML_ERROR_UNKNOWN)).read()
    assert {gpu[key] for gpu in report["gpus"] for key in ("memory", "memory_v2")} == {"error 999"}


@pytest.mark.parametrize(
    ("moment", "expected"), [(4.9, 100_000), (5, "error 15"), (7.9, "error 15"), (8, 100_000)]
)
def test_a_fault_has_a_time(stage: StageFor, moment: float, expected: object) -> None:
    faulty = with_fault(**{"function": POWER, "gpu": 0, "effect": 15, "from": 5, "until": 8})
    assert powers(stage(msgspec.structs.replace(faulty, frozen_time=moment)))[0] == expected


@pytest.mark.parametrize("code", [4, 9, 18])
def test_errors_at_start(stage: StageFor, code: int) -> None:
    done = stage(with_fault(function="nvmlInit*", effect=code)).python(
        "import pynvml\n"
        "try: pynvml.nvmlInit()\n"
        "except pynvml.NVMLError as error: print(error.value)\n"
        "else: print('started')"
    )
    assert done.stdout == f"{code}\n"


def test_a_hang_blocks_one_call_until_the_fault_is_gone(stage: StageFor) -> None:
    play = stage(with_fault(function=POWER, gpu=1, effect="hang"))
    with asker(play) as (questions, answers):
        questions.write("stuck 1\n")
        questions.write("free 0\n")
        assert answers.readline() == "free 100000\n"
        play.play(HEALTHY)
        assert answers.readline() == "stuck 101000\n"


def test_a_locked_hang_blocks_every_call(stage: StageFor) -> None:
    play = stage(HEALTHY)
    with asker(play) as (questions, answers):
        questions.write("before 0\n")
        assert answers.readline() == "before 100000\n"
        # While GPU 1 hangs with the lock held, a question about GPU 0 must not overtake it: the answers to both come
        # only after the scenario has changed, and then GPU 0's power is already the new one.
        play.play(with_fault(function=POWER, gpu=1, effect="hang_locked"))
        wait_until_hung(questions, answers)
        questions.write("other 0\n")
        healed = [msgspec.structs.replace(gpu, power_watts=7) for gpu in GPUS]
        play.play(msgspec.structs.replace(HEALTHY, gpus=tuple(healed)))
        assert sorted([answers.readline(), answers.readline()]) == ["other 7000\n", "stuck 7000\n"]


def wait_until_hung(questions: IO[str], answers: IO[str]) -> None:
    """Asks about GPU 1 until the scenario with the hang is in force (after some 50 ms) and one call hangs."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        questions.write("stuck 1\n")
        ready, _, _ = select.select([answers], [], [], 0.3)
        if not ready:
            return
        assert answers.readline() == "stuck 101000\n"
    pytest.fail("the scenario with the hang was never read")


def test_a_crash_kills_the_process(stage: StageFor) -> None:
    done = stage(with_fault(function=POWER, gpu=0, effect="crash")).python(
        "import pynvml; pynvml.nvmlInit(); pynvml.nvmlDeviceGetPowerUsage(pynvml.nvmlDeviceGetHandleByIndex(0))"
    )
    assert done.returncode == -signal.SIGSEGV


def test_latency_delays_the_calls_it_names(stage: StageFor) -> None:
    slow = msgspec.structs.replace(
        HEALTHY,
        latencies=(
            Latency(function=POWER, gpu=1, seconds=0.2),
            Latency(function="nvmlDeviceGetPower*", seconds=0.05),
        ),
    )
    done = stage(slow).python(
        "import pynvml, time; pynvml.nvmlInit()\n"
        "def cost(h): t = time.monotonic(); pynvml.nvmlDeviceGetPowerUsage(h); return time.monotonic() - t\n"
        "for i in (0, 1):\n"
        "    h = pynvml.nvmlDeviceGetHandleByIndex(i); print(min(cost(h) for _ in range(5)))"
    )
    first, second = map(float, done.stdout.split())
    assert 0.05 <= first < 0.2
    assert second >= 0.25
