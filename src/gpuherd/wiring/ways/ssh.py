"""Nodes over SSH: the link of ``sources/ssh``, the script and the reading of its output of ``collect/remote``."""

from __future__ import annotations

from gpuherd.collect.remote import RemoteNode, node_script
from gpuherd.sources.following import Way
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.way import SshWay
from gpuherd.wiring.ways.surroundings import ACCEPTED_KEYS, Surroundings, located

__all__ = ["ssh_way"]


def ssh_way(settings: SshSettings, surroundings: Surroundings) -> Way:
    """Reach nodes with nothing installed on them."""
    return SshWay(
        located(settings, surroundings.folder),
        make_reader=lambda: RemoteNode(command_lines=settings.command_lines),
        script=node_script(),
        accepted_keys_file=surroundings.state_dir / ACCEPTED_KEYS,
    )
