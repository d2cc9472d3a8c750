"""Agents that listen: the hub's secret and the links that pushing nodes use as well."""

from __future__ import annotations

from gpuherd.auth.node_secrets import load_or_create_master, node_secret
from gpuherd.sources.following import Way
from gpuherd.sources.pull import PullWay
from gpuherd.sources.settings import PullSettings
from gpuherd.wiring.ways.surroundings import PULL_SECRET, Surroundings, located

__all__ = ["pull_way"]


def pull_way(settings: PullSettings, surroundings: Surroundings) -> Way:
    """Dial agents."""
    settings = located(settings, surroundings.folder)
    master = load_or_create_master(settings.secret_file or surroundings.state_dir / PULL_SECRET)
    return PullWay(settings, links=surroundings.links, secret_of=lambda node_id: node_secret(master, node_id))
