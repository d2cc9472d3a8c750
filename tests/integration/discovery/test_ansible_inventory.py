"""The same hosts and the same ways to reach them as Ansible itself sees."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuherd.discovery.ansible.finder import parse_ansible
from gpuherd.discovery.ansible.variable_files import VariableFolders

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


FOLDERS = {
    "group_vars/all.yml": "ansible_user: from-all\nansible_port: 2000\nlist: &list [1, 2]\nother: *list\n",
    "group_vars/racks": "---\nansible_host: '{{ inventory_hostname }}.racks'\nname: &name racks\nansible_user: *name\n",
    "group_vars/more/10-first.yml": "ansible_user: first\nansible_port: 3001\n",
    "group_vars/more/20-second.yaml": "ansible_user: second # wins\n",
    "group_vars/more/sub/deep.json": '{"ansible_port": 3002}',
    "group_vars/more/old.yml~": "ansible_port: 1\n",
    "group_vars/more/.hidden": "ansible_port: 2\n",
    "group_vars/more/notes.txt": "not YAML: [",
    "group_vars/rpcservers.yml": "",
    "group_vars/rpcservers.yaml": "ansible_port: 4\n",
    "group_vars/six.yaml": "ansible_user:\n",
    "group_vars/ungrouped.yml": 'ansible_user: "ungrouped"\n',
    "host_vars/host1": "ansible_host: 10.1.1.1\nansible_port: 2201\nsecrets: {deep: {deeper: [1]}}\n",
    "host_vars/na.yml": "ansible_user: 'na'\n",
    "host_vars/nb/main.yml": "ansible_port: 22\nansible_user: !unsafe nb\n",
    "host_vars/node01.x.yml": "ansible_host: node01.other\n",
    "host_vars/nobody.yml": "ansible_host: nowhere\n",
}


@pytest.mark.parametrize("group", ["racks", "six", "ungrouped"])
def test_folders_of_variables(tmp_path: Path, group: str) -> None:
    for name, content in FOLDERS.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    _compare(tmp_path / "hosts", INI, group, VariableFolders(tmp_path))


def _compare(file: Path, text: str, group: str, folders: VariableFolders | None = None) -> None:
    file.write_text(text)
    seen = _as_ansible_sees(file, group)
    found = {target.name: target for target in parse_ansible(text, str(file), (group,), "ssh", folders)}
    assert set(found) == set(seen)
    assert found
    for name, variables in seen.items():
        target = found[name]
        address = str(variables.get("ansible_host", name)).replace("{{ inventory_hostname }}", name)
        user = variables.get("ansible_user", variables.get("ansible_ssh_user"))
        if isinstance(user, dict):  # how it shows a word that is not to be taken for a template
            user = user["__ansible_unsafe"]
        assert target.address == address, name
        assert target.port == variables.get("ansible_port"), name
        assert target.user == user, name
        assert target.key_file == variables.get("ansible_ssh_private_key_file"), name
