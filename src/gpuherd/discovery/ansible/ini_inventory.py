"""The INI spelling of an inventory."""

from __future__ import annotations

import ast
import re
import shlex

from gpuherd.discovery.ansible.inventory import Group, Inventory
from gpuherd.discovery.ansible.patterns import expand, split_port
from gpuherd.discovery.complaints import numbered_lines, quoted

__all__ = ["read_ini_inventory"]

_HEADER = re.compile(r"\[(?P<name>[^\s:\]]+)(:(?P<kind>\w+))?\]\s*([#;].*)?")


def read_ini_inventory(text: str, file: str) -> Inventory:
    """Read groups, ``[group:children]`` and ``[group:vars]``; what is wrong stands in the inventory's complaints."""
    inventory = Inventory(file)
    group, kind = inventory.group("ungrouped"), "hosts"
    for number, line in numbered_lines(text):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if bare.startswith("[") and (header := _HEADER.fullmatch(bare)):
            kind = header["kind"] or "hosts"
            if kind not in {"hosts", "children", "vars"}:
                inventory.complaints.add(
                    number,
                    f"[{header['name']}:{kind}] is unknown; write [group], [group:children] or [group:vars]",
                )
                kind = "skip"
            group = inventory.group(header["name"])
        elif kind == "vars":
            _variable(bare, number, group, inventory)
        elif kind == "children":
            child = bare.split("#")[0].strip()
            group.children.setdefault(child, number)
        elif kind == "hosts":
            _hosts(bare, number, group, inventory)
    return inventory


def _variable(bare: str, number: int, group: Group, inventory: Inventory) -> None:
    key, equals, value = bare.partition("=")
    if not equals:
        inventory.complaints.add(number, f"{quoted(bare)} is not a variable; write key=value")
        return
    group.variables[key.strip()] = _plain(value.strip())


def _hosts(bare: str, number: int, group: Group, inventory: Inventory) -> None:
    try:
        words = shlex.split(bare, comments=True)
        if not words:
            return
        pattern, *settings = words
        variables = {}
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                raise ValueError(f"{quoted(setting)} is not a variable; write key=value")  # noqa: TRY301 - told below
            variables[key] = _plain(value)
        pattern, port = split_port(pattern)
        if port is not None:
            variables.setdefault("ansible_port", port)
        for name in expand(pattern):
            inventory.add_host(name, number, group, variables)
    except ValueError as error:
        inventory.complaints.add(number, f"{quoted(bare)} cannot be read: {error}")


def _plain(value: str) -> str:
    """Take quotation marks and comments off a value as Ansible does, which reads it as a Python literal."""
    if len(value) > 1000:
        return value
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    # A value that is not text is kept as written: 0700 or 1e3 would come back changed.
    return literal if isinstance(literal, str) else value.split("#", maxsplit=1)[0].strip()
