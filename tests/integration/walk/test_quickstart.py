"""The quick start, typed on two new machines: from nothing to a herd behind nginx under /gpus/."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpuherd.api.reception import CROWDED
from support.machine import Lan, Machine, booted, need_machines
from support.release import make_release
from support.walkthrough import Step, steps_of
from support.wheelhouse import pack_wheels

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/quickstart.md"
WHEELS = "/srv/wheels"
OFFLINE = f"[global]\nno-index = true\nfind-links = {WHEELS}\nno-compile = true\n"
"""These machines reach nothing: pip finds its packages in a folder instead."""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[dict[str, Machine]]:
    need_machines()
    house = tmp_path / "wheels"
    pack_wheels(["gpuherd[hub]"], house)
    for wheel in house.glob("gpuherd-*.whl"):
        wheel.unlink()
    shutil.copy(make_release(tmp_path / "release").wheel, house)
    with ExitStack() as stack:
        lan = stack.enter_context(Lan())
        hub = stack.enter_context(booted(tmp_path, lan, name="hub", files={"/etc/pip.conf": OFFLINE}))
        known = f"127.0.0.1 localhost\n{hub.address} hub gpus.example.org\n"
        node = stack.enter_context(
            booted(tmp_path, lan, name="gpu02", files={"/etc/pip.conf": OFFLINE, "/etc/hosts": known})
        )
        hub.write("/etc/hosts", known)
        for machine in (hub, node):
            for wheel in house.iterdir():
                machine.copy_in(wheel, f"{WHEELS}/{wheel.name}")
        yield {"hub": hub, "gpu02": node}


def _type(machine: Machine, step: Step) -> None:
    def is_done() -> bool:
        done = machine.run("sh", "-euc", f"cd /root\n{step.commands}", check=False, seconds=300)
        # On a machine that is busy with other tests a password takes longer to be checked than one may wait.
        if CROWDED in done.stderr:
            return False
        assert done.returncode == 0, f"line {step.line}: {step.commands}{done.stdout}{done.stderr}"
        return True

    machine.until(is_done, step.commands)


def test_from_nothing_to_a_herd_of_two_behind_nginx(machines: dict[str, Machine]) -> None:
    hub, node = machines["hub"], machines["gpu02"]
    steps = steps_of(PAGE)
    assert len(steps) >= 8
    for step in steps:
        where = step.title.removeprefix("on ")
        for name in machines if where == "both" else (where,):
            _type(machines[name], step)
        for file in re.findall(r"scp (\S+) gpu02:", step.following):
            node.write(f"/root/{file}", hub.read(f"/root/{file}"), mode="0600")

    def fleet() -> set[str]:
        listed = hub.run("gpuherd", "node", "list", check=False).stdout
        return {name for name in machines if name in listed}

    hub.until(lambda: fleet() == set(machines), "both nodes are listed")
    health = "https://gpus.example.org/gpus/api/v1/health"
    program = f"import urllib.request as u; print(u.urlopen('{health}', timeout=10).read().decode())"
    answer = json.loads(node.tell("/opt/gpuherd/bin/python", "-c", program))
    assert answer["status"] == "ok"
