"""The YAML spelling of an inventory: groups with hosts, children and vars."""

from __future__ import annotations

from gpuherd.discovery.ansible.inventory import Group, Inventory, Variables
from gpuherd.discovery.ansible.patterns import expand, split_port
from gpuherd.discovery.complaints import quoted
from gpuherd.discovery.yaml_text import YamlNode, is_null, load_yaml, pairs, text_of

__all__ = ["read_yaml_inventory"]


def read_yaml_inventory(text: str, file: str) -> Inventory:
    """Read the groups; what is wrong with a line stands in the inventory's complaints."""
    inventory = Inventory(file)
    root = load_yaml(text, file)
    for name, _, node in [] if root is None else pairs(root, file, "the inventory"):
        _group(inventory.group(name), node, inventory)
    return inventory


def _group(group: Group, node: YamlNode, inventory: Inventory) -> None:
    for key, line, value in pairs(node, inventory.file, f"the group {quoted(group.name)}"):
        if key == "hosts":
            for pattern, host_line, settings in pairs(value, inventory.file, "hosts"):
                _hosts(pattern, host_line, group, _variables(settings, inventory), inventory)
        elif key == "children":
            for name, child_line, child in pairs(value, inventory.file, "children"):
                if group.name != "all":
                    group.children.setdefault(name, child_line)
                _group(inventory.group(name), child, inventory)
        elif key == "vars":
            group.variables.update(_variables(value, inventory))
        else:
            inventory.complaints.add(
                line, f"{quoted(key)} is an unknown key; a group has hosts, children and vars"
            )


def _hosts(pattern: str, line: int, group: Group, variables: Variables, inventory: Inventory) -> None:
    try:
        pattern, port = split_port(pattern)
        if port is not None:
            variables.setdefault("ansible_port", port)
        for name in expand(pattern):
            inventory.add_host(name, line, group, variables)
    except ValueError as error:
        inventory.complaints.add(line, f"{quoted(pattern)} cannot be read: {error}")


def _variables(node: YamlNode, inventory: Inventory) -> Variables:
    """Give the variables that are plain words; lists and the like say nothing about how to reach a host."""
    found = {}
    for key, _, value in pairs(node, inventory.file, "variables"):
        word = text_of(value)
        if word is not None and not is_null(value):
            found[key] = word
    return found
