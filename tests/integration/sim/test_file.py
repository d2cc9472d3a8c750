"""The scenario file: read again when it changes, last good one kept, the same rules in C and in Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, BuildError, build_library

from gpuherd.collect.scenario import Scenario, SimulatedGpu, load_scenario, parse_scenario
from gpuherd.model.errors import Misconfigured
from support.running import PATIENCE_SECONDS

from .conftest import REPOSITORY, StageFor

INIT = """
import pynvml
try:
    pynvml.nvmlInit()
except pynvml.NVMLError as error:
    print(error.value)
else:
    print("started")
"""

# For every line on stdin: the count of GPUs, the power of the first handle ever got, and what a new nvmlInit says.
WATCHER = """
import sys, pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
def ask(function, *arguments):
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        return f"error {error.value}"
for line in sys.stdin:
    print(ask(pynvml.nvmlDeviceGetCount), ask(pynvml.nvmlDeviceGetPowerUsage, handle),
          ask(pynvml.nvmlInit), sep=", ", flush=True)
"""


def node(*powers: int, first_uuid: str = "GPU-0") -> Scenario:
    names = [first_uuid, *(f"GPU-{i}" for i in range(1, len(powers)))]
    gpus = (
        SimulatedGpu(uuid=uuid, name="Card", power_watts=p) for uuid, p in zip(names, powers, strict=True)
    )
    return Scenario(driver_version="1.0", gpus=tuple(gpus))


def test_changes_are_seen_and_handles_stay_with_their_card(stage: StageFor) -> None:
    play = stage(node(10))
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER],
        env=play.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def answer() -> str:
            child.stdin.write("\n")  # type: ignore[union-attr]
            return child.stdout.readline().strip()  # type: ignore[union-attr]

        def answers_become(expected: str) -> None:
            for _ in range(60_000):  # nvmlInit, asked last, looks at the file every time
                if answer() == expected:
                    return
            pytest.fail(f"never answered {expected}, but {answer()}")

        assert answer() == "1, 10000, None"
        play.play(node(20, 30))
        answers_become("2, 20000, None")
        play.play(b'{"driver_version": "1.0", "gpus": [{"uuid": "GPU-0"')
        answers_become("2, 20000, error 999")  # broken: the last good scenario stays, starting anew fails
        play.scenario.unlink()
        answers_become("2, 20000, error 9")
        play.play(node(40, first_uuid="GPU-another"))
        answers_become("1, error 15, None")  # the handle's card is gone; no other takes its place
        play.play(node(50))
        answers_become("1, 50000, None")
        child.stdin.close()
        assert child.stderr is not None
        complaints = child.stderr.read().splitlines()
    assert len(complaints) == 2  # each told once
    assert "line 1" in complaints[0]
    assert "No such file" in complaints[1]


def test_without_a_scenario_there_is_no_driver(stage: StageFor) -> None:
    play = stage(node(1))
    del play.environment["GPUHERD_SIM_SCENARIO"]
    assert play.python(INIT).stdout == "9\n"


GPU: dict[str, Any] = {"uuid": "GPU-0", "name": "Card"}
PROCESS: dict[str, Any] = {"pid": 1}
SLICE: dict[str, Any] = {"uuid": "MIG-0", "profile": "1g.5gb", "gpu_instance": 1, "compute_instance": 0}


def gpu_with(**keys: Any) -> dict[str, Any]:
    return {"driver_version": "1.0", "gpus": [{**GPU, **keys}]}


WRONG: dict[str, Any] = {
    "not JSON": b"driver_version = 1",
    "cut off": b'{"driver_version": "1.0"',
    "trailing text": b'{"driver_version": "1.0"} x',
    "NaN": b'{"driver_version": "1.0", "epoch": NaN}',
    "leading zero": b'{"driver_version": "1.0", "epoch": 01}',
    "huge number": b'{"driver_version": "1.0", "epoch": 1e400}',
    "lone surrogate": b'{"driver_version": "\\ud800"}',
    "control character": b'{"driver_version": "a\nb"}',
    "too deep": b'{"driver_version": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "empty": b"",
    "a list": [],
    "no driver version": {"gpus": []},
    "null driver version": {"driver_version": None},
    "unknown key": {"driver_version": "1.0", "drivr": 1},
    "unknown GPU key": gpu_with(powr_watts=1),
    "no name": {"driver_version": "1.0", "gpus": [{"uuid": "GPU-0"}]},
    "null GPUs": {"driver_version": "1.0", "gpus": None},
    "GPUs not a list": {"driver_version": "1.0", "gpus": {}},
    "too many GPUs": {"driver_version": "1.0", "gpus": [GPU] * 65},
    "text for a metric": gpu_with(power_watts="100"),
    "true for a metric": gpu_with(power_watts=True),
    "number for a switch": gpu_with(ecc_mode=1),
    "unknown brand": gpu_with(brand="acme"),
    "unknown architecture": gpu_with(architecture="acme"),
    "bad bus id": gpu_with(pci_bus_id="7"),
    "bad capability": gpu_with(compute_capability="new"),
    "unknown wave": gpu_with(power_watts={"wave": "saw"}),
    "wave without a name": gpu_with(power_watts={"mean": 1}),
    "incomplete wave": gpu_with(power_watts={"wave": "sine", "mean": 1, "amplitude": 1}),
    "unknown wave key": gpu_with(power_watts={"wave": "ramp", "per_second": 1, "faster": 1}),
    "zero period": gpu_with(power_watts={"wave": "noise", "mean": 1, "amplitude": 1, "period": 0}),
    "tiny period": gpu_with(power_watts={"wave": "noise", "mean": 1, "amplitude": 1, "period": 1e-9}),
    "tiny repeat": gpu_with(power_watts={"wave": "steps", "steps": [[0, 1]], "repeat": 1e-9}),
    "huge metric": gpu_with(power_watts=1e19),
    "time far away": {"driver_version": "1.0", "frozen_time": 1e12},
    "null phase": gpu_with(
        power_watts={"wave": "sine", "mean": 1, "amplitude": 1, "period": 1, "phase": None}
    ),
    "negative seed": gpu_with(power_watts={"wave": "noise", "mean": 1, "amplitude": 1, "seed": -1}),
    "no steps": gpu_with(power_watts={"wave": "steps", "steps": []}),
    "step of three": gpu_with(power_watts={"wave": "steps", "steps": [[1, 2, 3]]}),
    "steps out of order": gpu_with(power_watts={"wave": "steps", "steps": [[2, 1], [1, 1]]}),
    "empty sum": gpu_with(power_watts={"wave": "sum", "parts": []}),
    "bad part": gpu_with(power_watts={"wave": "sum", "parts": ["x"]}),
    "no pid": gpu_with(processes=[{"user": "user01"}]),
    "pid zero": gpu_with(processes=[{"pid": 0}]),
    "half a pid": gpu_with(processes=[{"pid": 1.5}]),
    "unknown type": gpu_with(processes=[{**PROCESS, "type": "game"}]),
    "bad profile": gpu_with(mig_slices=[{**SLICE, "profile": "small"}]),
    "slice without instance": gpu_with(mig_slices=[{"uuid": "MIG-0", "profile": "1g.5gb"}]),
    "fault without effect": {"driver_version": "1.0", "faults": [{"function": "*"}]},
    "fault with a wrong effect": {
        "driver_version": "1.0",
        "faults": [{"function": "*", "effect": "explode"}],
    },
    "fault with error 0": {"driver_version": "1.0", "faults": [{"function": "*", "effect": 0}]},
    "fault of GPU 64": {"driver_version": "1.0", "faults": [{"function": "*", "effect": 9, "gpu": 64}]},
    "latency without seconds": {"driver_version": "1.0", "latencies": [{"function": "*"}]},
    "negative latency": {"driver_version": "1.0", "latencies": [{"function": "*", "seconds": -1}]},
    "Xid of GPU 64": {"driver_version": "1.0", "xids": [{"gpu": 64, "at": 0, "xid": 79}]},
    "Xid without a time": {"driver_version": "1.0", "xids": [{"gpu": 0, "xid": 79}]},
}


@pytest.mark.parametrize("name", WRONG)
def test_both_readers_refuse_a_wrong_file(stage: StageFor, name: str) -> None:
    content = WRONG[name] if isinstance(WRONG[name], bytes) else json.dumps(WRONG[name]).encode()
    play = stage(content)
    done = play.python(INIT)
    assert (done.returncode, done.stdout) == (0, "999\n")
    assert str(play.scenario) in done.stderr  # says which file, and below: where in it
    with pytest.raises(Misconfigured, match=r"scenario\.json: .+"):
        load_scenario(play.scenario)


def test_the_c_reader_survives_damaged_files(library: Path, tmp_path: Path) -> None:
    """Under AddressSanitizer and UndefinedBehaviorSanitizer, which abort at the first false step."""
    assert library.exists()  # skips without a compiler
    program = tmp_path / "mutate_scenarios"
    sources = [REPOSITORY / "sim" / name for name in ("arena.c", "json.c", "wave.c", "scenario.c")]
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    harness = Path(__file__).with_name("mutate_scenarios.c")
    built = subprocess.run(
        [COMPILER, *flags, "-I", str(REPOSITORY / "sim"), "-o", str(program), harness, *sources, "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0 and "asan" in built.stderr:
        pytest.skip("gcc's sanitizers are not installed (Debian: apt install libgcc-12-dev)")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [program, "7", "300", *sorted(SCENARIOS.glob("*.json"))],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


def test_the_c_reader_names_the_key(stage: StageFor) -> None:
    done = stage(json.dumps(WRONG["unknown GPU key"]).encode()).python(INIT)
    assert done.stderr.endswith(": gpus[0].powr_watts: unknown key\n")


def test_escapes_and_foreign_letters_come_through(stage: StageFor) -> None:
    name = b'"\\u00fc \\ud83d\\ude00 \xe2\x82\xac \\"q\\" \\\\"'
    content = b'{"driver_version": "1.0", "gpus": [{"uuid": "GPU-0", "name": ' + name + b"}]}"
    expected = 'ü 😀 € "q" \\'
    assert parse_scenario(content, "test").gpus[0].name == expected
    assert stage(content).read()["gpus"][0]["name"] == expected


def test_a_decimal_comma_of_the_program_changes_nothing(stage: StageFor, tmp_path: Path) -> None:
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("localedef cannot make a German locale here (Debian: apt install locales)")
    play = stage(Scenario(driver_version="1", gpus=(SimulatedGpu(uuid="G", name="C", power_watts=1.5),)))
    play.environment["LOCPATH"] = str(tmp_path)
    done = play.python(
        "import locale, pynvml\n"
        "locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\n"
        "assert locale.localeconv()['decimal_point'] == ','\n"
        "pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetPowerUsage(pynvml.nvmlDeviceGetHandleByIndex(0)))"
    )
    assert done.stdout == "1500\n", done.stderr


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.json")), ids=lambda path: path.stem)
def test_ready_scenarios_load_in_both_readers(stage: StageFor, path: Path) -> None:
    scenario = load_scenario(path)
    assert scenario.description
    fails = next((fault.effect for fault in scenario.faults if fault.function.startswith("nvmlInit")), None)
    done = stage(name=path.stem).python(INIT)
    assert done.stdout == ("started\n" if fails is None else f"{fails}\n")
    assert done.stderr == ""


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"gcc is not installed: install it"):
        build_library(tmp_path)
