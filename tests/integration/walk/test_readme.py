"""Every command of the README, run: tasks of make, a hub with its nodes, and a member of a herd in the terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpuherd import __version__
from support.own_network import own_network
from support.walkthrough import Step, Walk, steps_of

ROOT = Path(__file__).parents[3]
STEPS = steps_of(ROOT / "README.md")
ADDRESS = re.compile(r"→ (http://127\.0\.0\.1:\d+)")
HOST = "gpu-of-the-readme"
HUB = "http://127.0.0.1:8470"
PICKED_NODE = re.compile(r'"node(?:_id)?": *"([^"]+)"')
DEMO_DAYS = 4
PASSWORD = "a long enough password"


def _is_make(step: Step) -> bool:
    return step.commands.startswith("make ")


def _is_of_operators(step: Step) -> bool:
    return step.where in ("hub", "node")


def _is_install(step: Step) -> bool:
    return step.commands.startswith(("pipx ", "uv "))


def _is_of_people(step: Step) -> bool:
    return not _is_make(step) and not _is_of_operators(step) and not _is_install(step)


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    with ExitStack() as stack:
        prefix = stack.enter_context(own_network(tmp_path, HOST))
        made = Walk(tmp_path, stack, prefix=prefix)
        made.environment |= {"TMPDIR": str(tmp_path), "TERM": "xterm-256color"}
        # What is made is taken from the environment that runs the tests, and written to the folder of the test.
        environment = Path(sys.executable).parents[1]
        ready = f"VENV={environment} BIN={_quicker(tmp_path / 'bin')} --assume-old {environment}/.ready-all"
        made.replaced["make "] = f"make --file {ROOT / 'Makefile'} {ready} "
        yield made


def _quicker(folder: Path) -> Path:
    """Let `make demo` make up days instead of months, which takes a minute where others are at work."""
    folder.mkdir()
    program = folder / "gpuherd"
    demo = f'[ "$1" = demo ] && set -- "$@" --days {DEMO_DAYS}'
    program.write_text(f'#!/bin/sh\n{demo}\nexec {Path(sys.executable).parent}/gpuherd "$@"\n')
    program.chmod(0o755)
    return folder


def _answers(walk: Walk, address: str) -> bool:
    asked = Step(f"curl --silent --fail {address}/api/v1/health || true", 0)
    return '"status"' in walk.run(asked)


def _start(walk: Walk, commands: str, address: str) -> None:
    walk.leave_running(Step(commands, 0))
    walk.wait_until(lambda: _answers(walk, address))


def test_every_command_belongs_to_one_of_these_walks() -> None:
    assert sum(map(_is_make, STEPS)) >= 3
    assert sum(map(_is_of_operators, STEPS)) >= 5
    assert sum(map(_is_of_people, STEPS)) >= 7
    assert all(step.commands.startswith("gpuherd ") for step in STEPS if _is_of_people(step))


def test_the_wheel_is_the_one_that_make_dist_builds() -> None:
    """``tests/packaging/test_installing.py`` installs it in the same ways."""
    installs = [step.commands for step in STEPS if _is_install(step)]
    assert [command.split(" './", 1)[0] for command in installs] == ["pipx install", "uv tool install"]
    wheel = f"'./gpuherd-{__version__}-py3-none-any.whl["
    assert all(wheel in command for command in installs)


def test_make_test_is_a_task() -> None:
    (test,) = [step.commands.partition("#")[0] for step in STEPS if step.commands.startswith("make test")]
    done = subprocess.run([*test.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "-m pytest" in done.stdout  # it runs this very test, so here it is only asked what it would do


def test_this_machine(walk: Walk) -> None:
    (run,) = [step for step in STEPS if step.commands.startswith("make run")]
    _start(walk, run.commands, ADDRESS.findall(run.commands)[0])
    (node,) = walk.run(Step("gpuherd node list", 0)).splitlines()
    assert node.startswith(f"{HOST}\t"), "whoever administers it need not say where it keeps its records"


def test_a_hub_and_its_nodes(walk: Walk) -> None:
    walk.replaced["https://gpus.example.org"] = HUB
    steps = [step for step in STEPS if _is_of_operators(step)]
    with walk.apart() as first:
        _start(first, "gpuherd hub run", HUB)
        for step in steps:
            if "gpuherd.toml" not in step.commands:
                (first.leave_running if step.where == "node" else first.run)(step)
        first.wait_until(lambda: HOST in first.run(Step("gpuherd node list", 0)))
    for step in steps:
        if "gpuherd.toml" not in step.commands:
            continue
        if step.commands.startswith("cat "):
            (walk.folder / "gpuherd.toml").write_text(step.printed)
        elif step.commands.endswith(" run"):
            _start(walk, step.commands, HUB)
        else:
            said = walk.run(step, may_end_with=(1,))
            assert "gpu01: the name gpu01 cannot be looked up" in said, (
                "there is no such host in this network"
            )


def test_a_member_in_the_terminal(walk: Walk) -> None:
    (demo,) = [step for step in STEPS if step.commands.startswith("make demo")]
    address = ADDRESS.findall(demo.commands)[0]
    _start(walk, demo.commands, address)
    (records,) = walk.folder.glob("gpuherd-demo-*/**/records.sqlite")
    free = Step(f"gpuherd pick -n 2 --type a100 --anywhere --json --hub {address} || true", 0)
    walk.wait_until(lambda: '"node' in walk.run(free))
    # `gpuherd run` takes GPUs of the machine that it is on: let this one be called as one of the demo's.
    walk.run(Step(f"hostname {re.findall(PICKED_NODE, walk.run(free))[0]}", 0))
    (walk.folder / "password").write_text(PASSWORD)
    (walk.folder / "train.py").write_text("import os; print('on', os.environ['CUDA_VISIBLE_DEVICES'])\n")
    account = "gpuherd user --state-dir {} create ada --password-file password"
    walk.run(Step(account.format(records.parent), 0))
    log_in = f"gpuherd login --hub {address} --name ada --password-file password"
    walk.run(Step(log_in, 0))
    walk.replaced |= {
        "gpuherd login --hub https://gpus.example.org": log_in,
        "gpuherd top": "echo q | timeout 60 script --quiet --return --command 'gpuherd top' /dev/null",
    }
    for step in STEPS:
        if not _is_of_people(step):
            continue
        if " release " in step.commands:
            (booking, *_) = json.loads(walk.run(Step("gpuherd bookings --json", 0)))
            number = re.findall(r"release (\d+)", step.commands)[0]
            walk.replaced[f"release {number}"] = f"release {booking['id']}"
        said = walk.run(step)
        if step.commands.startswith("gpuherd run "):
            assert "on GPU-" in said
        if step.commands.startswith("gpuherd book "):
            assert "booked 2 GPUs" in said
    assert json.loads(walk.run(Step("gpuherd bookings --json", 0))) == []
