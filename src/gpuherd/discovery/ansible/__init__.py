"""Ansible inventories, INI and YAML: groups with their children, the few variables that say how to reach a host."""

from gpuherd.discovery.ansible.finder import AnsibleFinder

__all__ = ["AnsibleFinder"]
