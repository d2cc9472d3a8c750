"""The Debian package on a booted Debian: installed, used, installed again, removed, purged."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.machine import Lan, Machine, booted
from support.package import built_package, layer_with_gpuherd
from support.service_machine import give_gpus, is_page_there, main_pid, node_named

HUB, AGENT = "gpuherd-hub.service", "gpuherd-agent.service"
PACKAGE = "/root/gpuherd.deb"
CONFIG = "/etc/gpuherd/gpuherd.toml"


@pytest.fixture(scope="module")
def package() -> Path:
    return built_package()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, package: Path) -> Iterator[Machine]:
    with Lan() as lan, booted(tmp_path_factory.mktemp("debian"), lan, name="gpu02") as machine:
        machine.copy_in(package, PACKAGE)
        machine.run("dpkg", "--install", PACKAGE)
        yield machine


def answers(machine: Machine, *command: str) -> bool:
    return machine.run(*command, check=False).returncode == 0


def test_the_package_says_what_it_is(package: Path) -> None:
    facts = subprocess.run(
        ["dpkg-deb", "--field", str(package)], capture_output=True, text=True, check=True
    ).stdout
    assert "Package: gpuherd\n" in facts
    assert "Depends: python3 (>= 3.11~), python3 (<< 3.12~), " in facts
    listed = subprocess.run(
        ["dpkg-deb", "--contents", str(package)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {line.split()[1] for line in listed} == {"root/root"}
    assert not [line for line in listed if line[0] != "l" and "w" in (line[5], line[8])], "writable by others"


def test_nothing_of_the_building_machine_is_in_it() -> None:
    here = str(Path(__file__).parents[2]).encode()
    own = layer_with_gpuherd() / "opt/gpuherd/lib/python3.11/site-packages/gpuherd"
    assert any(file.suffix == ".pyc" for file in own.rglob("*"))
    assert not [file for file in own.rglob("*") if file.is_file() and here in file.read_bytes()]


def test_installing_it_starts_nothing(machine: Machine) -> None:
    assert machine.tell("gpuherd", "--version").startswith("gpuherd, version ")
    assert machine.tell("stat", "-c", "%U", "/usr/lib/gpuherd/bin/gpuherd") == "root"
    assert machine.tell("id", "-un", "gpuherd") == "gpuherd"
    assert machine.tell("stat", "--format=%U %a", "/run/lock/gpuherd") == "root 1777"
    assert "_GPUHERD_COMPLETE" in machine.read("/usr/share/bash-completion/completions/gpuherd")
    for unit in (HUB, AGENT):
        assert not answers(machine, "systemctl", "is-active", unit)
        assert not answers(machine, "systemctl", "is-enabled", unit)
        told = machine.run("systemd-analyze", "verify", "--man=no", f"/lib/systemd/system/{unit}")
        assert (told.stdout, told.stderr) == ("", "")


def test_hub_and_agent_run_by_the_units_of_the_package(machine: Machine) -> None:
    give_gpus(machine)
    machine.run("gpuherd", "install", "hub", "--listen", "0.0.0.0:8470")
    machine.write("/root/token", machine.tell("gpuherd", "token", "create"), mode="0600")
    machine.run(
        "gpuherd",
        "install",
        "agent",
        "--hub",
        f"http://{machine.address}:8470",
        "--join-token-file",
        "/root/token",
    )
    for unit in (HUB, AGENT):
        assert not answers(machine, "test", "-e", f"/etc/systemd/system/{unit}")
        assert machine.tell("systemctl", "is-enabled", unit) == "enabled"
    assert is_page_there(machine)
    machine.until(lambda: node_named(machine, "gpu02"), f"the node is live: {machine.journal(AGENT)}")
    again = machine.tell("gpuherd", "install", "hub", "--listen", "0.0.0.0:8470")
    assert again.startswith("nothing to change\n")


def test_installing_it_again_restarts_what_runs_and_keeps_what_was_edited(machine: Machine) -> None:
    edited = machine.read(CONFIG)
    before = main_pid(machine, HUB)
    machine.run("dpkg", "--install", "--force-confold", PACKAGE)
    assert machine.read(CONFIG) == edited
    machine.until(lambda: main_pid(machine, HUB) not in (0, before), "the hub was restarted")
    assert machine.tell("systemctl", "is-enabled", HUB) == "enabled"
    machine.until(lambda: is_page_there(machine), "the page is there")


def test_removing_it_leaves_the_data_but_no_unit(machine: Machine) -> None:
    machine.run("dpkg", "--remove", "gpuherd")
    assert "gpuherd" not in machine.tell("systemctl", "list-unit-files", "--no-legend")
    assert main_pid(machine, HUB) == 0
    assert not answers(machine, "test", "-e", f"/etc/systemd/system/multi-user.target.wants/{HUB}")
    assert not answers(machine, "test", "-e", "/usr/lib/gpuherd"), machine.tell("find", "/usr/lib/gpuherd")
    for kept in ("/var/lib/gpuherd/records.sqlite", "/var/lib/gpuherd-agent/credential", CONFIG):
        assert answers(machine, "test", "-s", kept), kept


def test_purging_it_leaves_nothing(machine: Machine) -> None:
    machine.run("dpkg", "--purge", "gpuherd")
    for gone in ("/var/lib/gpuherd", "/var/lib/gpuherd-agent", "/var/lib/private/gpuherd-agent", CONFIG):
        assert not answers(machine, "test", "-e", gone), gone
