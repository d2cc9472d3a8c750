"""The same hosts and the same ways to reach them as Ansible itself sees."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuherd.discovery.ansible.finder import parse_ansible

pytestmark = pytest.mark.skipif(
    shutil.which("ansible-inventory") is None, reason="ansible-inventory is not installed (make provision)"
)

INI = """\
# a cluster
loose ansible_host=10.9.9.9

[rpcservers]
host1 ansible_host=192.168.0.2 ansible_user=me ansible_remote_tmp=/tmp/.ansible/tmp
host2:2222 ansible_ssh_user="someone" # the slow one
node[01:03].x   ansible_port=23

[six]
[2001:db8::1]:24

[racks:children]
rpcservers
more

[more]
n[a:c] ansible_user='quoted'
n[8:10:2]
host1

; variables
[more:vars]
ansible_port=2022 # not 22
ansible_user=more
[racks:vars]
ansible_user = racks
ansible_host = "{{ inventory_hostname }}.example.org"
[all:vars]
ansible_user=everyone
ansible_ssh_private_key_file=/keys/gpu
"""

YAML = """\
---
all:
  vars: {ansible_user: everyone}
  hosts:
    loose:
  children:
    rpcservers:
      hosts:
        host1: {ansible_host: 192.168.0.2}
        "node[01:02].x:2222": {ansible_user: node}
      vars:
        ansible_port: 23
      children:
        inner:
          hosts:
            deep:
          vars: {ansible_user: inner, ansible_port: 24}
    other:
      hosts:
        host1:
        only:
"""


def _as_ansible_sees(file: Path, group: str) -> dict[str, dict[str, Any]]:
    """Give each host of a group with its variables."""
    listed = subprocess.run(
        ["ansible-inventory", "-i", str(file), "--list"],
        capture_output=True,
        check=True,
        text=True,
        cwd=file.parent,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(file.parent),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_INVENTORY_ENABLED": "yaml,ini",
        },
    ).stdout
    inventory = json.loads(listed)
    hosts: list[str] = []
    waiting = [group]
    while waiting:
        entry = inventory.get(waiting.pop(), {})
        hosts += entry.get("hosts", [])
        waiting += entry.get("children", [])
    return {host: inventory["_meta"]["hostvars"].get(host, {}) for host in hosts}


@pytest.mark.parametrize("group", ["rpcservers", "more", "racks", "six", "all", "ungrouped"])
def test_an_ini_inventory(tmp_path: Path, group: str) -> None:
    text = INI.replace("rack-[a]\n", "").replace('"someone"', "someone")
    _compare(tmp_path / "hosts", text, group)


@pytest.mark.parametrize("group", ["rpcservers", "inner", "other", "all"])
def test_a_yaml_inventory(tmp_path: Path, group: str) -> None:
    _compare(tmp_path / "hosts.yml", YAML, group)


def _compare(file: Path, text: str, group: str) -> None:
    file.write_text(text)
    seen = _as_ansible_sees(file, group)
    found = {target.name: target for target in parse_ansible(text, str(file), (group,), way="ssh")}
    assert set(found) == set(seen)
    assert found
    for name, variables in seen.items():
        target = found[name]
        address = variables.get("ansible_host", name).replace("{{ inventory_hostname }}", name)
        user = variables.get("ansible_user", variables.get("ansible_ssh_user"))
        assert target.address == address, name
        assert target.port == variables.get("ansible_port"), name
        assert target.user == user, name
        assert target.key_file == variables.get("ansible_ssh_private_key_file"), name
