"""An inventory as both of its spellings give it: hosts, groups, children, variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpuherd.discovery.ansible.variable_files import VariableFolders, Word
from gpuherd.discovery.complaints import Complaints, quoted
from gpuherd.discovery.hosts import gather, is_host, is_name, is_port, is_user
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target

__all__ = ["MOST_HOSTS", "Group", "Inventory"]

MOST_HOSTS = 20_000
Variables = dict[str, str]

# Ours come first: the hub may have another way to a host than Ansible.
_OWN_ADDRESS, _OWN_PORT, _OWN_USER, _OWN_GPUS = "gpuherd_host", "gpuherd_port", "gpuherd_user", "gpuherd_gpus"
_OWN = (_OWN_ADDRESS, _OWN_PORT, _OWN_USER, _OWN_GPUS)
_ADDRESS = (_OWN_ADDRESS, "ansible_host", "ansible_ssh_host")
_PORT = ("ansible_port", "ansible_ssh_port")
_USER = (_OWN_USER, "ansible_user", "ansible_ssh_user")
_KEY = ("ansible_ssh_private_key_file", "ansible_private_key_file")
_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_OWN_NAME = re.compile(r"\{\{\s*inventory_hostname\s*\}\}")
_COUNT = re.compile(r"[0-9]|[1-9][0-9]|[1-4][0-9]{2}|50[0-9]|51[0-2]")
_JUMP = re.compile(r"""(?:^|[\s"'])(?:-J\s*|-o\s*["']?ProxyJump[=\s]\s*)(?P<jump>[^\s"']+)""")


class Group:
    """A group: what it lists itself, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hosts: dict[str, None] = {}  # in order
        self.children: dict[str, int] = {}  # name → line
        self.variables: Variables = {}
        self.folder_variables: Mapping[str, str] = {}


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

    def targets(
        self, wanted: Iterable[str], *, with_port: bool, folders: VariableFolders | None = None
    ) -> tuple[Target, ...]:
        """Give the hosts of the wanted groups and of all below them, in the order of the file.

        ``with_port``: take Ansible's port, which is the one of SSH. ``folders``: more variables, by Ansible's
        precedence. ``Misconfigured`` for a group that is not there.
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
        self.complaints.raise_if_any()
        over = self._groups_over_hosts()
        if folders is not None:
            for group in self.groups.values():
                group.folder_variables = folders.group(group.name)
        built = {
            host: self._target(
                host,
                self._variables_of(host, over.get(host) or [self.groups["ungrouped"]], folders),
                with_port,
            )
            for host in chosen
        }
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
                self.complaints.add(line, f"there is no group {quoted(child)}; add it or remove the line")
        self.complaints.raise_if_any()
        for name, child, line in links:
            if name in self._below(child):
                self.complaints.add(
                    line, f"the groups {name} and {child} contain each other; remove one of the references"
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

    def _variables_of(self, host: str, over: list[Group], folders: VariableFolders | None) -> Variables:
        """Put the variables of a host together, in Ansible's order: what comes later wins."""
        variables: Variables = {}
        groups = (self.groups["all"], *over)
        for group in groups:
            variables.update(group.variables)
        for group in groups:
            variables.update(group.folder_variables)
        variables.update(self._variables[host])
        if folders is not None:
            variables.update(folders.host(host))
        return {
            key: _OWN_NAME.sub(host, value) if "{{" in value else value for key, value in variables.items()
        }

    def _target(self, host: str, variables: Variables, with_port: bool) -> Target | None:
        line = self._lines[host]
        address = _first(variables, _ADDRESS) or host
        port = variables.get(_OWN_PORT) or (_first(variables, _PORT) if with_port else None)
        user = _first(variables, _USER)
        key_file = _first(variables, _KEY)
        gpus = variables.get(_OWN_GPUS) or None

        def told(keys: tuple[str, ...]) -> str:
            key = next((key for key in keys if variables.get(key)), None)
            return quoted(host) if key is None else f"{key}={quoted(variables[key])} of {host}"

        unknown = [key for key in variables if key.startswith("gpuherd_") and key not in _OWN]
        if not is_name(host):
            self._complain(host, f"{quoted(host)} is not a host name; use letters, digits, '-' and '.'")
        elif unknown:
            self._complain(
                host,
                f"{quoted(unknown[0])} is not a gpuherd variable; known: {', '.join(_OWN)}",
                variables[unknown[0]],
            )
        elif not is_host(address):
            self._complain(host, f"{told(_ADDRESS)} is not a host; {_remedy(address)}", address)
        elif port and not is_port(port):
            self._complain(host, f"{told((_OWN_PORT, *_PORT))} is not a port; {_remedy(port)}", port)
        elif user and not is_user(user):
            self._complain(host, f"{told(_USER)} is not a user; {_remedy(user)}", user)
        elif key_file and "{{" in key_file:
            self._complain(
                host,
                f"the key file {quoted(key_file)} of {host} cannot be used; {_remedy(key_file)}",
                key_file,
            )
        elif gpus and not _COUNT.fullmatch(gpus):
            self._complain(host, f"{told((_OWN_GPUS,))} is not a number from 0 to 512", gpus)
        else:
            jump = _JUMP.search(" ".join(variables.get(key, "") for key in _ARGUMENTS))
            return Target(
                name=host,
                address=str(address),
                port=int(port) if port else None,
                user=str(user) if user else None,
                key_file=str(Path(self.file).parent / Path(key_file).expanduser()) if key_file else None,
                proxy_jump=jump["jump"] if jump else None,
                expected_gpus=int(gpus) if gpus else None,
                place=self.complaints.place(line),
            )
        return None

    def _complain(self, host: str, sentence: str, value: str = "") -> None:
        """Complain about a host at its line, or where a file of variables says what is wrong."""
        if isinstance(value, Word):
            self.complaints.add_error(Misconfigured(f"{value.place}: {sentence}"))
        else:
            self.complaints.add(self._lines[host], sentence)


def _first(variables: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((variables[key] for key in keys if variables.get(key)), None)


def _remedy(value: str) -> str:
    if "{{" in value:
        return "templates other than inventory_hostname are not supported: write the value out"
    return "correct it"
