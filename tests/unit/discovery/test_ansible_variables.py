"""``group_vars`` and ``host_vars``: hostile, huge, encrypted, and changing while the hub runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gpuherd.discovery.ansible import AnsibleFinder
from gpuherd.discovery.ansible import variable_files as module
from gpuherd.discovery.ansible.finder import parse_ansible
from gpuherd.discovery.ansible.variable_files import VariableFolders, parse_variables
from gpuherd.discovery.settings import AnsibleSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from support.running import PATIENCE_SECONDS

HOSTS = "[gpu]\na\nb\n[other]\nc\n"
VAULT = "$ANSIBLE_VAULT;1.1;AES256\n62313365396662343061393464336163\n"


def write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def targets(folder: Path, way: str = "ssh") -> dict[str, Target]:
    found = parse_ansible(HOSTS, str(folder / "hosts"), ("gpu",), way, VariableFolders(folder))  # type: ignore[arg-type]
    return {target.name: target for target in found}


def test_our_own_variables_win_and_hold_for_every_way(tmp_path: Path) -> None:
    write(
        tmp_path,
        group_vars__gpu="gpuherd_port: 8472\ngpuherd_gpus: 8\nansible_port: 22\nansible_user: ansible\n",
        host_vars__b="gpuherd_host: b-mgmt\nansible_host: b-ansible\ngpuherd_user: monitor\ngpuherd_gpus: 0\n",
    )
    for way in ("ssh", "pull"):
        found = targets(tmp_path, way)
        assert (found["a"].address, found["a"].port, found["a"].user, found["a"].expected_gpus) == (
            "a", 8472, "ansible", 8,
        )  # fmt: skip
        assert (found["b"].address, found["b"].user, found["b"].expected_gpus) == ("b-mgmt", "monitor", 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("gpuherd_prot: 1\n", 'host_vars/a:1: "gpuherd_prot" is not a gpuherd variable'),
        ("x: 1\nansible_port: none\n", 'host_vars/a:2: ansible_port="none" of a is not a port'),
        ("gpuherd_gpus: 513\n", "not a number from 0 to 512"),
        ("ansible_host: '{{ lookup(1) }}'\n", "templates other than inventory_hostname are not supported"),
        ("a: [1\nb: 2\n", "host_vars/a:2: is not valid YAML"),
        ("- a\n- b\n", "host_vars/a:1: variables must be keys with values"),
        ("just words\n", "host_vars/a:1: variables must be keys with values"),
        ("a: \x00\n", "characters that YAML forbids"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, content: str, words: str) -> None:
    write(tmp_path, host_vars__a=content)
    with pytest.raises(Misconfigured) as told:
        targets(tmp_path)
    assert words in str(told.value)


def test_what_is_encrypted_is_passed_over_and_told(tmp_path: Path) -> None:
    write(
        tmp_path,
        group_vars__gpu__clear="ansible_user: clear\n",
        group_vars__gpu__vault=VAULT,
        host_vars__a="password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6231\nansible_port: 23\n",
    )
    folders = VariableFolders(tmp_path)
    found = parse_ansible(HOSTS, str(tmp_path / "hosts"), ("gpu",), "ssh", folders)
    assert [(target.user, target.port) for target in found] == [("clear", 23), ("clear", None)]
    assert len(folders.remarks) == 2
    assert "group_vars/gpu/vault: is encrypted (ansible-vault) and not read" in folders.remarks[0]
    assert 'host_vars/a:1, "password": is encrypted' in folders.remarks[1]
    assert "6231" not in "".join(folders.remarks)


def test_only_what_belongs_to_the_inventory_is_opened(tmp_path: Path) -> None:
    write(tmp_path, group_vars__gpu="ansible_user: me\n", host_vars__stranger="{{{{ no YAML", secret="x: y")
    os.mkfifo(tmp_path / "group_vars" / "unrelated")
    assert targets(tmp_path)["a"].user == "me"
    evil = "[../secret]\na\n[gpu]\na\n"
    found = parse_ansible(evil, str(tmp_path / "hosts"), ("gpu",), "ssh", VariableFolders(tmp_path))
    assert found[0].user == "me"


def test_pipes_and_floods_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "host_vars").mkdir()
    os.mkfifo(tmp_path / "host_vars" / "a")
    with pytest.raises(Misconfigured, match="is not a file"):
        targets(tmp_path)
    (tmp_path / "host_vars" / "a").unlink()
    (tmp_path / "host_vars" / "a").symlink_to("/dev/zero")
    with pytest.raises(Misconfigured, match="is not a file"):
        targets(tmp_path)
    (tmp_path / "host_vars" / "a").unlink()
    write(tmp_path, host_vars__a__b__c="x: 1\n")
    (tmp_path / "host_vars" / "a" / "b" / "loop").symlink_to(tmp_path / "host_vars" / "a")
    with pytest.raises(Misconfigured, match="folders deep"):
        targets(tmp_path)
    write(tmp_path, host_vars__b=f"x: {'y' * 2000}\n")
    (tmp_path / "host_vars" / "a" / "b" / "loop").unlink()
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with pytest.raises(Misconfigured, match="not a list of hosts"):
        targets(tmp_path)
    monkeypatch.setattr(module, "MOST_FILES", 1)
    with pytest.raises(Misconfigured, match="more than 1 variable files"):
        targets(tmp_path)


def test_depth_and_aliases_cost_nothing() -> None:
    deep = "a: " + "[" * 2000 + "]" * 2000 + "\nansible_user: deep\n"
    assert parse_variables(deep, "f")[0]["ansible_user"] == "deep"
    laughs = "a: &a [x, x]\n" + "".join(
        f"{n}: &{n} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, n in zip("abcdefgh", "bcdefghi", strict=True)
    )
    words, _ = parse_variables(laughs + "ansible_user: &u me\nalso: *u\nansible_host: *nobody\n", "f")
    assert words == {"ansible_user": "me", "also": "me"}


@pytest.mark.parametrize("empty", ["", "---\n", "# nothing\n", "~\n", "{}"])
def test_empty_files_say_nothing(empty: str) -> None:
    assert parse_variables(empty, "f") == ({}, [])


def test_a_change_of_a_variable_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, hosts=HOSTS, group_vars__gpu=VAULT)

    async def main() -> None:
        settings = AnsibleSettings(file=Path("hosts"), groups=("gpu",), every_seconds=3600)
        finder = AnsibleFinder(settings, base=tmp_path)
        finder._sleep = lambda _: asyncio.sleep(0.001)
        assert [target.user for target in await finder.find()] == [None, None]
        assert "is encrypted" in finder.remarks[0]
        await finder.wait()  # it has learned what to watch
        await finder.find()
        for change in ({"host_vars__b": "ansible_user: b\n"}, {"group_vars__gpu": "ansible_user: g\n"}):
            waiting = asyncio.create_task(finder.wait())
            await asyncio.sleep(0.02)
            assert not waiting.done()
            write(tmp_path, **change)
            await asyncio.wait_for(waiting, PATIENCE_SECONDS)
            await finder.find()
            await finder.find()  # once more, as a new file is watched from now on
        assert [target.user for target in await finder.find()] == ["g", "b"]
        assert finder.remarks == ()

    asyncio.run(main())
