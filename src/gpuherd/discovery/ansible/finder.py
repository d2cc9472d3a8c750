"""Finds the hosts of groups of an inventory file."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from gpuherd.discovery.ansible.ini_inventory import read_ini_inventory
from gpuherd.discovery.ansible.inventory import Inventory
from gpuherd.discovery.ansible.variable_files import VariableFolders
from gpuherd.discovery.ansible.yaml_inventory import read_yaml_inventory
from gpuherd.discovery.files import FileFinder, Stamp, located, read_text, stamp
from gpuherd.discovery.settings import AnsibleSettings
from gpuherd.model.targets import NodeWay, Target

__all__ = ["AnsibleFinder", "parse_ansible", "read_inventory"]

_YAML = re.compile(r"---|[^\s#;\[=]+:(\s|$)")


def read_inventory(text: str, file: str) -> Inventory:
    """Read an inventory in either spelling, told apart by its first line that is no comment."""
    first = next((line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;"), "")
    return read_yaml_inventory(text, file) if _YAML.match(first) else read_ini_inventory(text, file)


def parse_ansible(
    text: str,
    file: str,
    groups: tuple[str, ...] = ("rpcservers",),
    way: NodeWay = "ssh",
    folders: VariableFolders | None = None,
) -> tuple[Target, ...]:
    """Give the hosts of the groups; Ansible's port is theirs only if they are reached by SSH, as Ansible does."""
    return read_inventory(text, file).targets(groups, with_port=way == "ssh", folders=folders)


class AnsibleFinder(FileFinder):
    """The hosts of groups of an Ansible inventory."""

    def __init__(self, settings: AnsibleSettings, *, base: Path, way: NodeWay = "ssh") -> None:
        super().__init__(
            located(settings.file, base),
            partial(parse_ansible, groups=settings.groups, way=way),
            every_seconds=settings.every_seconds,
        )
        self._watched: tuple[Path, ...] = ()
        self._remarks: tuple[str, ...] = ()
        self._wanted = settings.groups, way

    @property
    def remarks(self) -> tuple[str, ...]:
        """See ``Remarking.remarks``."""
        return self._remarks

    def _read(self) -> tuple[Target, ...]:
        folders = VariableFolders(self._file.parent)
        try:
            return parse_ansible(read_text(self._file), self.name, *self._wanted, folders=folders)
        finally:
            self._watched, self._remarks = folders.looked_at, folders.remarks

    def _stamps(self) -> tuple[Stamp | None, ...]:
        return (*super()._stamps(), *(stamp(path) for path in self._watched))
