"""Which file the secrets of listening nodes are made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.config import Config, read_config
from gpuherd.wiring.pull_secrets import master_file


def config(folder: Path, *reaches: str) -> Config:
    tables = "".join(
        f'[[nodes]]\nhosts = ["gpu{n}"]\nreach = {{ {reach} }}\n' for n, reach in enumerate(reaches)
    )
    return read_config(f'[hub]\nstate_dir = "{folder}/state"\n{tables}', "gpuherd.toml", folder=folder)


def test_lists_share_one_file(tmp_path: Path) -> None:
    usual = tmp_path / "state/pull.secret"
    assert master_file(config(tmp_path)) == usual
    assert master_file(config(tmp_path, 'by = "ssh"', 'by = "pull"')) == usual
    named = 'by = "pull", secret_file = "master"'
    assert master_file(config(tmp_path, named, named)) == tmp_path / "master"
    with pytest.raises(
        Misconfigured, match=r"nodes\[0\], nodes\[2\]: have different files .* use the same file"
    ):
        master_file(config(tmp_path, named, 'by = "ssh"', 'by = "pull"'))
