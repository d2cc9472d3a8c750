"""Where the secret lies that the listening nodes' secrets are made from."""

from __future__ import annotations

from pathlib import Path

from gpuherd.model.errors import Misconfigured
from gpuherd.sources.settings import PullSettings
from gpuherd.wiring.config import Config
from gpuherd.wiring.ways.surroundings import PULL_SECRET, located

__all__ = ["master_file"]


def master_file(config: Config) -> Path:
    """Give the file that all lists of listening nodes share; ``Misconfigured`` if they do not."""
    usual = config.hub.state_dir / PULL_SECRET
    files = {
        located(group.reach, config.folder).secret_file or usual: f"nodes[{number}]"
        for number, group in enumerate(config.nodes)
        if isinstance(group.reach, PullSettings)
    }
    if len(files) > 1:
        raise Misconfigured(
            f"{', '.join(files.values())}: have different files in reach.secret_file, so the secret of a "
            "node is ambiguous; use the same file in all of them"
        )
    return next(iter(files), usual)
