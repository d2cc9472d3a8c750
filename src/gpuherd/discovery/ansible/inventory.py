"""An inventory as both of its spellings give it: hosts, groups, children, variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpuherd.discovery.complaints import Complaints, quoted
from gpuherd.discovery.hosts import gather, is_host, is_name, is_port, is_user
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target

__all__ = ["MOST_HOSTS", "Group", "Inventory"]

MOST_HOSTS = 20_000
Variables = dict[str, str]

_ADDRESS = ("ansible_host", "ansible_ssh_host")
_PORT = ("ansible_port", "ansible_ssh_port")
_USER = ("ansible_user", "ansible_ssh_user")
_KEY = ("ansible_ssh_private_key_file", "ansible_private_key_file")
_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_OWN_NAME = re.compile(r"\{\{\s*inventory_hostname\s*\}\}")
_JUMP = re.compile(r"""(?:^|[\s"'])(?:-J\s*|-o\s*["']?ProxyJump[=\s]\s*)(?P<jump>[^\s"']+)""")


class Group:
    """A group: what it lists itself, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hosts: dict[str, None] = {}  # in order
        self.children: dict[str, int] = {}  # name → line
        self.variables: Variables = {}


class Inventory:
    """Gathers what a file says; then gives the targets of groups."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.complaints = Complaints(file)
        self.groups: dict[str, Group] = {"all": Group("all"), "ungrouped": Group("ungrouped")}
        self._variables: dict[str, Variables] = {}
        self._lines: dict[str, int] = {}

    def group(self, name: str) -> Group:
        """Give the group of that name, made at its first mention."""
        if name not in self.groups:
            self.groups[name] = Group(name)
        return self.groups[name]

    def add_host(self, name: str, line: int, group: Group, variables: Variables) -> None:
        """Put a host into a group; it may be in several, and its variables add up."""
        if len(self._lines) >= MOST_HOSTS and name not in self._lines:
            raise Misconfigured(f"{self.file}:{line}: more than {MOST_HOSTS} hosts; check the ranges")
        self._lines.setdefault(name, line)
        self._variables.setdefault(name, {}).update(variables)
        group.hosts[name] = None

    def targets(self, wanted: Iterable[str], *, with_port: bool) -> tuple[Target, ...]:
        """Give the hosts of the wanted groups and of all below them, in the order of the file.

        ``with_port``: take Ansible's port, which is the one of SSH. ``Misconfigured`` for a group that is not there.
        """
        self._check_children()
        self.complaints.raise_if_any()
        chosen: dict[str, None] = {}
        for name in wanted:
            if name in self.groups:
                chosen.update(dict.fromkeys(self._members(name)))
                continue
            there = ", ".join(sorted(set(self.groups) - {"all", "ungrouped"})[:20]) or "none"
            self.complaints.add(None, f"there is no group {quoted(name)}; the groups are {there}")
        over = self._groups_over_hosts()
        built = {host: self._target(host, over.get(host, []), with_port) for host in chosen}
        found = [(self._lines[host], target) for host, target in built.items() if target is not None]
        found.sort(key=lambda pair: pair[0])
        return gather(found, self.complaints)

    def _members(self, name: str) -> Iterable[str]:
        if name == "all":
            return self._lines
        if name == "ungrouped":
            grouped = {host for group in self._real_groups() for host in group.hosts}
            return [host for host in self._lines if host not in grouped]
        return [host for below in self._below(name) for host in self.groups[below].hosts]

    def _below(self, name: str) -> dict[str, None]:
        """Give the group and every group below it."""
        seen: dict[str, None] = {}
        waiting = [name]
        while waiting:
            current = waiting.pop(0)
            if current not in seen:
                seen[current] = None
                waiting += self.groups[current].children
        return seen

    def _check_children(self) -> None:
        links = [
            (group.name, child, line)
            for group in self.groups.values()
            for child, line in group.children.items()
        ]
        for _, child, line in links:
            if child not in self.groups:
                self.complaints.add(line, f"there is no group {quoted(child)}; add it or take the line away")
        self.complaints.raise_if_any()
        for name, child, line in links:
            if name in self._below(child):
                self.complaints.add(
                    line, f"the groups {name} and {child} contain each other; break the circle"
                )

    def _real_groups(self) -> list[Group]:
        return [group for name, group in self.groups.items() if name not in {"all", "ungrouped"}]

    def _depths(self) -> dict[str, int]:
        """Tell how far below the top each group is: what stands deeper wins."""
        depths = dict.fromkeys(self.groups, 1)
        depths["all"] = 0
        changed = True
        while changed:  # ends, as there is no circle
            changed = False
            for group in self._real_groups():
                for child in group.children:
                    if depths[child] <= depths[group.name]:
                        depths[child] = depths[group.name] + 1
                        changed = True
        return depths

    def _groups_over_hosts(self) -> dict[str, list[Group]]:
        """Give the groups that each host is in, directly or not; later ones win."""
        depths = self._depths()
        over: dict[str, list[Group]] = {}
        for group in sorted(self._real_groups(), key=lambda group: (depths[group.name], group.name)):
            for host in dict.fromkeys(self._members(group.name)):
                over.setdefault(host, []).append(group)
        return over

    def _target(self, host: str, over: list[Group], with_port: bool) -> Target | None:
        line = self._lines[host]
        variables: Variables = {}
        for group in (self.groups["all"], *over):
            variables.update(group.variables)
        variables.update(self._variables[host])
        variables = {key: _OWN_NAME.sub(host, value) for key, value in variables.items()}
        address = _first(variables, _ADDRESS) or host
        port = _first(variables, _PORT)
        user = _first(variables, _USER)
        key_file = _first(variables, _KEY)
        if not is_name(host):
            self.complaints.add(
                line, f"{quoted(host)} is no name for a host; use letters, digits, '-' and '.'"
            )
        elif not is_host(address):
            self.complaints.add(
                line, f"ansible_host={quoted(address)} of {host} is no host; {_remedy(address)}"
            )
        elif with_port and port and not is_port(port):
            self.complaints.add(line, f"ansible_port={quoted(port)} of {host} is no port; {_remedy(port)}")
        elif user and not is_user(user):
            self.complaints.add(line, f"ansible_user={quoted(user)} of {host} is no user; {_remedy(user)}")
        elif key_file and "{{" in key_file:
            self.complaints.add(
                line, f"the key file {quoted(key_file)} of {host} cannot be used; {_remedy(key_file)}"
            )
        else:
            jump = _JUMP.search(" ".join(variables.get(key, "") for key in _ARGUMENTS))
            return Target(
                name=host,
                address=address,
                port=int(port) if with_port and port else None,
                user=user,
                key_file=str(Path(self.file).parent / Path(key_file).expanduser()) if key_file else None,
                proxy_jump=jump["jump"] if jump else None,
                place=self.complaints.place(line),
            )
        return None


def _first(variables: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((variables[key] for key in keys if variables.get(key)), None)


def _remedy(value: str) -> str:
    if "{{" in value:
        return "templates other than inventory_hostname are not filled in: write it out"
    return "correct it"
