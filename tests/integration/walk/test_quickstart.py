"""The quick start, typed on two new machines: from nothing to a herd behind nginx under /gpus/."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

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
    release = make_release(tmp_path / "release").wheel
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
            machine.copy_in(release, f"/root/{release.name}")
        yield {"hub": hub, "gpu02": node}


def _type(machine: Machine, step: Step) -> None:
    done = machine.run("sh", "-euc", f"cd /root\n{step.commands}", check=False, seconds=300)
    assert done.returncode == 0, f"line {step.line}: {step.commands}{done.stdout}{done.stderr}"


def test_from_nothing_to_a_herd_of_two_behind_nginx(machines: dict[str, Machine]) -> None:
    hub, node = machines["hub"], machines["gpu02"]
    steps = [step for step in steps_of(PAGE) if step.is_script]
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
    (console,) = (step for step in steps_of(PAGE) if "gpuherd login" in step.commands)
    _type(hub, console)
    address = "https://gpus.example.org/gpus"
    program = f"import urllib.request as u; print(u.urlopen('{address}%s', timeout=20).read().decode())"
    health = json.loads(node.tell("/opt/gpuherd/bin/python", "-c", program % "/api/v1/health"))
    assert health["status"] in ("ok", "degraded")
    assert "<title>gpuherd" in node.tell("/opt/gpuherd/bin/python", "-c", program % "/")
