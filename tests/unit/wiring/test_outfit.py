"""What the configuration makes of a hub."""

from __future__ import annotations

from pathlib import Path

from gpuherd.fleet.fleet import Fleet
from gpuherd.sources.push import NodeLinks
from gpuherd.wiring.config import read_config
from gpuherd.wiring.outfit import ConfiguredOutfit
from support.herd import ManualClock


def test_lists_of_one_file_have_names_of_their_own(tmp_path: Path) -> None:
    table = '[[nodes]]\nfind = {{ in = "ansible", file = "hosts", groups = ["{}"] }}\nreach = {{ by = "xmlrpc" }}\n'
    config = read_config("".join(map(table.format, "abc")), "gpuherd.toml", folder=tmp_path)
    clock = ManualClock()
    links = NodeLinks(Fleet(clock=clock), monotonic=clock.monotonic)
    names = [group.name for group in ConfiguredOutfit(config).groups(links)]
    assert names == [f"{tmp_path}/hosts", f"{tmp_path}/hosts (nodes[1])", f"{tmp_path}/hosts (nodes[2])"]
