"""Machines that Ansible can log in to, and Ansible itself: Debian's, on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from support.machine import Lan, Machine, booted, need_machines
from support.wheelhouse import pack_wheels

__all__ = ["Playbook", "build_wheel", "need_ansible", "packed_wheels", "reachable_machines"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/ansible"
RUN_SECONDS = 900.0
_PLAYBOOK = "/usr/bin/ansible-playbook"
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


def need_ansible() -> None:
    """Skip where it is not installed, saying why."""
    for program, package in ((_PLAYBOOK, "ansible-core"), ("ssh", "openssh-client")):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: install {package} (scripts/provision)")
    need_machines()


def build_wheel(folder: Path) -> Path:
    """Build this project's wheel of the sources as they are."""
    command = [
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        ".",
    ]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, timeout=300)
    (wheel,) = folder.glob("gpuherd-*.whl")
    return wheel


def packed_wheels(folder: Path, *extras: str) -> Path:
    """Pack what gpuherd needs, of what is installed here, into one .tar of wheels."""
    needed = [Requirement(text) for text in requires("gpuherd") or ()]
    chosen = [
        f"{one.name}[{','.join(one.extras)}]" if one.extras else one.name
        for one in needed
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]
    pack_wheels(chosen, folder)
    archive = folder.with_suffix(".tar")
    with tarfile.open(archive, "w") as tar:
        for wheel in sorted(folder.glob("*.whl")):
            tar.add(wheel, wheel.name)
    return archive


@contextmanager
def reachable_machines(folder: Path, names: list[str]) -> Iterator[tuple[dict[str, Machine], Path]]:
    """Boot machines whose root can be reached by SSH with the key that is given too."""
    need_ansible()
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    files = {"/root/.ssh/authorized_keys": key.with_suffix(".pub").read_text()}
    with ExitStack() as stack:
        lan = stack.enter_context(Lan())
        machines = {}
        for name in names:
            machine = stack.enter_context(booted(folder, lan, name=name, files=files))
            machine.run("chmod", "-R", "go=", "/root/.ssh")
            machine.run("ssh-keygen", "-A")
            machine.run("systemctl", "start", "ssh")
            machines[name] = machine
        yield machines, key


class Playbook:
    """deploy/ansible/site.yml, run for some machines."""

    def __init__(self, folder: Path, machines: Mapping[str, Machine], key: Path) -> None:
        self._folder = folder
        self._machines = machines
        self._key = key
        self._runs = 0
        self.output = ""
        """What the last run said."""

    def run(
        self,
        groups: Mapping[str, list[str]],
        variables: Mapping[str, Any],
        host_variables: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        is_check: bool = False,
        is_to_fail: bool = False,
        forks: int = 5,
        limit: str = "all",
    ) -> dict[str, int]:
        """Run it and give how much was changed on each host; what fails fails the test, unless it is to fail."""
        self._runs += 1
        inventory = self._folder / f"inventory-{self._runs}.json"
        inventory.write_text(json.dumps(self._inventory(groups, variables, host_variables or {})))
        arguments = [
            "-i",
            str(inventory),
            "site.yml",
            "-v",
            "--forks",
            str(forks),
            "--limit",
            limit,
            *(["--check"] if is_check else []),
        ]
        # Sockets have short names, and whoever holds a connection open goes soon after the run.
        with tempfile.TemporaryDirectory(prefix="ans") as sockets:
            done = subprocess.run(
                [_PLAYBOOK, *arguments],
                cwd=FOLDER,
                env={
                    "PATH": os.environ["PATH"],
                    "LANG": "C.UTF-8",
                    "HOME": str(self._folder),
                    "ANSIBLE_SSH_CONTROL_PATH_DIR": sockets,
                    "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=3s",
                    "ANSIBLE_NOCOLOR": "1",
                    "ANSIBLE_DEPRECATION_WARNINGS": "1",
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=RUN_SECONDS,
                check=False,
            )
        self.output = done.stdout + done.stderr
        assert (done.returncode != 0) == is_to_fail, self.output[-6000:]
        assert "[WARNING]" not in self.output, self.output
        assert "[DEPRECATION" not in self.output, self.output
        recap = {
            name: (int(changed), int(lost) + int(failed))
            for name, _, changed, lost, failed in _RECAP.findall(self.output)
        }
        assert recap, self.output
        assert any(failed for _, failed in recap.values()) == is_to_fail, self.output
        return {name: changed for name, (changed, _) in recap.items()}

    def _inventory(
        self,
        groups: Mapping[str, list[str]],
        variables: Mapping[str, Any],
        host_variables: Mapping[str, Mapping[str, Any]],
    ) -> dict[str, Any]:
        reaching = {
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(self._key),
            "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
        }
        return {
            "all": {
                "vars": {**reaching, **variables},
                "children": {
                    group: {
                        "hosts": {
                            name: {
                                "ansible_host": self._machines[name].address,
                                **host_variables.get(name, {}),
                            }
                            for name in names
                        }
                    }
                    for group, names in groups.items()
                },
            }
        }
