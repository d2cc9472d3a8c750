"""Where the secret lies that the listening nodes' secrets are made from."""

from __future__ import annotations

from pathlib import Path

from gpuherd.sources.settings import PullSettings
from gpuherd.wiring.config import Config
from gpuherd.wiring.ways.surroundings import PULL_SECRET, located

__all__ = ["master_file"]


def master_file(config: Config) -> Path:
    """Give the file of the first list of listening nodes; one hub needs no more than one."""
    reach = next((group.reach for group in config.nodes if isinstance(group.reach, PullSettings)), None)
    file = None if reach is None else located(reach, config.folder).secret_file
    return file or config.hub.state_dir / PULL_SECRET
