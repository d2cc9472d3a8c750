"""The Ansible role, with Debian's Ansible and whole machines: a hub behind nginx below a path, and a node."""

from __future__ import annotations

import json
import re
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ansible_nodes import (
    FOLDER,
    Playbook,
    build_wheel,
    need_ansible,
    packed_wheels,
    reachable_machines,
)
from support.authority import Authority
from support.machine import Machine
from support.running import PATIENCE_SECONDS, eventually

OLD_GROUPS = {"webserver": ["main"], "rpcservers": ["gpu01"]}
GROUPS = {"hub": ["main"], "agents": ["gpu01"]}
AUTHORITY_FILE = "/etc/ssl/lab.pem"


class Scene:
    """Two machines and what Ansible is told of them."""

    def __init__(self, folder: Path, machines: dict[str, Machine], key: Path) -> None:
        self.machines = machines
        self.playbook = Playbook(folder, machines, key)
        main = machines["main"]
        self.url = f"https://{main.address}/gpus/"
        authority = Authority(folder / "authority")
        certificate = authority.issue(f"IP:{main.address}")
        main.copy_in(certificate.file, "/etc/ssl/main.pem")
        main.copy_in(certificate.key, "/etc/ssl/private/main.key", "0600")
        for machine in machines.values():
            machine.copy_in(authority.file, AUTHORITY_FILE)
        self._tls = ssl.create_default_context(cafile=str(authority.file))
        self.variables: dict[str, Any] = {
            "gpuherd_package": str(build_wheel(folder / "dist")),
            "gpuherd_wheelhouse": str(packed_wheels(folder / "agent-wheels")),
            "gpuherd_pip_arguments": ["--no-compile"],  # saves half a minute on two cores
            "gpuherd_base_path": "/gpus/",
            "gpuherd_proxy": "nginx",
            "gpuherd_server_name": main.address,
            "gpuherd_tls_certificate": "/etc/ssl/main.pem",
            "gpuherd_tls_key": "/etc/ssl/private/main.key",
            "gpuherd_hub_settings": {"public": "read"},
            "gpuherd_hub_tables": "[history]\nenabled = false\n",
            "gpuherd_agent_settings": {"tls_ca_file": AUTHORITY_FILE},
        }
        self.host_variables = {
            "main": {"gpuherd_wheelhouse": str(packed_wheels(folder / "hub-wheels", "hub"))}
        }

    def run(
        self,
        groups: dict[str, list[str]],
        *,
        is_check: bool = False,
        is_to_fail: bool = False,
        **changed: Any,
    ) -> dict[str, int]:
        """Run the playbook."""
        variables = {**self.variables, **changed}
        return self.playbook.run(
            groups, variables, self.host_variables, is_check=is_check, is_to_fail=is_to_fail
        )

    def states(self) -> dict[str, str]:
        """Ask the hub, through nginx, how its nodes are."""
        with urllib.request.urlopen(  # noqa: S310
            f"{self.url}api/v1/nodes", context=self._tls, timeout=PATIENCE_SECONDS
        ) as answer:
            return {node["name"]: node["state"] for node in json.loads(answer.read())}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    need_ansible()
    folder = tmp_path_factory.mktemp("ansible")
    with reachable_machines(folder, ["main", "gpu01"]) as (machines, key):
        yield Scene(folder, machines, key)


def test_a_herd_comes_up_after_a_mistake_and_another_run_changes_nothing(scene: Scene) -> None:
    main, node = scene.machines["main"], scene.machines["gpu01"]
    # First only asked what it would do: nothing is done.
    assert all(count > 0 for count in scene.run(OLD_GROUPS, is_check=True).values())
    for path in ("/opt/gpuherd", "/etc/gpuherd"):
        assert main.run("test", "-e", path, check=False).returncode == 1
        assert node.run("test", "-e", path, check=False).returncode == 1
    # nginx cannot take the site: its files are as before, and the run says why.
    scene.run(OLD_GROUPS, is_to_fail=True, gpuherd_tls_key="/etc/ssl/private/none.key")
    assert "cannot load certificate key" in scene.playbook.output
    assert main.run("ls", "/etc/nginx/conf.d").stdout == ""
    main.run("nginx", "-t")
    # What was written without a restart, as by a run that broke off, is read in the next run.
    started = main.tell("systemctl", "show", "--property=InvocationID", "gpuherd-hub")
    main.run("touch", "/etc/gpuherd/gpuherd.toml")
    scene.run(OLD_GROUPS)
    assert main.tell("systemctl", "show", "--property=InvocationID", "gpuherd-hub") != started
    eventually(scene.states, lambda states: states == {"gpu01": "live"})
    assert not re.search(r"gh[a-z]_[A-Za-z0-9_-]{10}", scene.playbook.output), "a secret was shown"
    assert node.run("test", "-e", "/etc/gpuherd/join-token", check=False).returncode == 1
    assert node.tell("systemctl", "is-enabled", "gpuherd-agent") == "enabled"
    assert main.tell("systemctl", "is-enabled", "gpuherd-hub", "nginx") == "enabled\nenabled"
    assert "Traceback" not in node.journal("gpuherd-agent") + main.journal("gpuherd-hub")
    # Now there is nothing to do, also under the other names of the groups.
    assert scene.run(GROUPS) == {"main": 0, "gpu01": 0}


def test_what_others_wrote_is_left_alone(scene: Scene) -> None:
    main = scene.machines["main"]
    main.write("/etc/gpuherd/gpuherd.toml", "[hub]\n")
    scene.run({"hub": ["main"]}, is_check=True, is_to_fail=True)
    assert "was not written by this role" in scene.playbook.output


def _tasks(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give all tasks, also those in blocks."""
    for task in tasks:
        if "block" in task:
            assert task["name"]
            yield from _tasks(task["block"] + task["rescue"])
        else:
            yield task


def test_every_variable_is_documented_and_every_task_has_a_name() -> None:
    page = (FOLDER.parents[1] / "docs/deploy/ansible.md").read_text(encoding="utf-8")
    defaults = yaml.safe_load((FOLDER / "roles/gpuherd/defaults/main.yml").read_text())
    assert [name for name in defaults if f"`{name}`" not in page] == []
    for file in (FOLDER / "roles/gpuherd/tasks").glob("*.yml"):
        for task in _tasks(yaml.safe_load(file.read_text())):
            assert task["name"]
            (module,) = (key for key in task if "." in key)
            assert module.startswith("ansible.builtin."), f"{file.name}: {module}"
