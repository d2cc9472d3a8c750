"""Every kind of list in the configuration has its finder, and importing the settings brings in nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuherd.wiring.catalog import FINDERS
from gpuherd.wiring.config import read_config
from gpuherd.wiring.finders import make_finder

FINDS = {
    "hosts_file": 'file = "hosts.txt"',
    "ini": 'file = "config.ini"',
    "yaml": 'file = "config.yml"',
    "consul": 'url = "http://127.0.0.1:8500", service = "gpu"',
    "slurm": 'partition = "big"',
    "ssh_config": 'patterns = ["gpu*"]',
    "ansible": 'file = "hosts"',
}


def test_every_finder_is_tried_here() -> None:
    assert set(FINDS) == set(FINDERS)


@pytest.mark.parametrize("kind", FINDS)
def test_the_finder_is_made_from_the_configuration(kind: str, tmp_path: Path) -> None:
    text = f'[[nodes]]\nfind = {{ in = "{kind}", {FINDS[kind]} }}\nreach = {{ by = "ssh" }}\n'
    config = read_config(text, "gpuherd.toml", folder=tmp_path)
    finder, fixed = make_finder(config.nodes[0], "nodes[0]", config.folder)
    assert fixed is None
    assert finder.name


def test_settings_are_light() -> None:
    code = (
        "import sys, gpuherd.discovery.settings, gpuherd.cli.import_;"
        "print(sorted({'aiohttp', 'yaml', 'asyncssh', 'litestar', 'numpy'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
