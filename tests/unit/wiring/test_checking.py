"""What would stop a start is told with file and line, by ``config check``, by doctor and by the start itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuherd.fleet.fleet import Fleet
from gpuherd.model.errors import Misconfigured
from gpuherd.sources.push import NodeLinks
from gpuherd.wiring.checking import check_config
from gpuherd.wiring.config import load, read_config
from gpuherd.wiring.config_text import ConfigText
from gpuherd.wiring.doctor.examine import examine
from gpuherd.wiring.doctor.steps import Journal
from gpuherd.wiring.outfit import ConfiguredOutfit
from gpuherd.wiring.toml_lines import key_lines
from support.herd import ManualClock

WRONG = {
    '[[nodes]]\nhosts = ["a"]\nreach.by = "ssh"\n\n[[nodes]]\nreach.by = "ssh"\nhosts = [\n  "good",\n  "a b",\n]\n': (
        9, "nodes[1].hosts, entry 2:",
    ),
    '[[nodes]]\nreach = { by = "ssh" }\n[nodes.find]\nin = "consul"\nurl = "consul"\n': (
        5, 'nodes[0].find.url: "consul" is not an address',
    ),
    '[[nodes]]\nhosts = ["a"]\n[nodes.reach]\nby = "pull"\n\ntls_ca_file = "ca.pem"\n': (
        6, "nodes[0].reach.tls_ca_file: has no effect",
    ),
    '[[nodes]]\nhosts = ["a"]\nreach = { by = "pull", is_tls = true, tls_ca_file = "missing.pem" }\n': (
        3, "nodes[0].reach.tls_ca_file:",
    ),
    '[agent]\n# two\ncollectors = ["nvml", "nvvm"]\n': (3, 'agent.collectors: there is no collector "nvvm"'),
    '[agent]\nhub_url = "ftp://x"\n': (2, "agent.hub_url:"),
    '[display]\norder = []\naliases_file = "none.csv"\n': (3, "display.aliases_file:"),
    '[legacy.gpustat]\nlisten = "here"\nnetworks = ["10.0.0.0/8"]\n': (2, "legacy.gpustat.listen:"),
    '[legacy.get_status]\nlisten = "127.0.0.1:1"\nnetworks = [\n  "10.0.0.0/8",\n  "x",\n]\n': (
        3, "legacy.get_status.networks:",
    ),
    '[hub]\npublic = "off"\ntrusted_proxies = ["x"]\n': (3, "hub.trusted_proxies:"),
    '[hub]\n\ntls_key = "a"\n': (1, "hub.tls_certificate: is missing"),
}  # fmt: skip


def _complaint(file: Path) -> str:
    with pytest.raises(Misconfigured) as told:
        check_config(load(file))
    return str(told.value)


@pytest.mark.parametrize("text", WRONG)
def test_every_table_names_the_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "gpuherd.toml"
    file.write_text(text)
    line, words = WRONG[text]
    assert _complaint(file).startswith(f"{file}:{line}: {words}")


def test_doctor_and_the_command_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "gpuherd.toml"
    file.write_text(next(iter(WRONG)))
    complaint = _complaint(file)
    journal = Journal()
    asyncio.run(examine(None, journal, config_file=file))
    (step,) = journal.steps
    assert complaint in (step.remedy or "")
    command = subprocess.run(
        [sys.executable, "-m", "gpuherd", "config", "check", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (command.returncode, command.stderr) == (1, f"gpuherd: {complaint}\n")


def test_a_hub_that_is_built_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "gpuherd.toml"
    file.write_text(next(iter(WRONG)))
    clock = ManualClock()
    links = NodeLinks(Fleet(clock=clock), monotonic=clock.monotonic)
    with pytest.raises(Misconfigured) as told:
        ConfiguredOutfit(load(file)).groups(links)
    assert str(told.value) == _complaint(file)


def test_a_good_configuration_is_good_and_nothing_is_written(tmp_path: Path) -> None:
    text = (
        '[hub]\nstate_dir = "state"\n[[nodes]]\nhosts = ["a"]\nreach = { by = "pull" }\n'
        '[[nodes]]\nfind = { in = "hosts_file", file = "missing.txt" }\nreach = { by = "ssh" }\n'
    )
    check_config(read_config(text, "gpuherd.toml", folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_the_command_line_gave_is_not_blamed_on_the_file() -> None:
    with pytest.raises(Misconfigured, match=r"^the command line: hub.listen: "):
        read_config('[hub]\nlisten = "127.0.0.1:1"\n', "f.toml", {"hub": {"listen": "nowhere"}})


@pytest.mark.parametrize(
    "message", ["hosts.txt:3: bad", "agent: x", "the lock is taken", "f.toml:3: hub.listen: done"]
)
def test_messages_with_a_place_of_their_own_stay_as_they_are(message: str) -> None:
    assert ConfigText("f.toml", "[hub]\nlisten = 1\n").located(message) == message


def test_lines_of_all_that_toml_can_hold() -> None:
    text = (
        'a = 1 # a = 2\n"b.c" = "]"\n[t]\nlong = """\na = 1\n[no]\n"quoted" \\"""" # x\nraw = \'\'\'\n[\n\'\'\'\n'
        "d.e = 1979-05-27 07:32:00\narray = [[1, 2],\n  { x = [\n1] },\n]\n"
        '[["ta"]]\nn = 1\n[[ta.sub]]\n[[ta.sub]]\nm = 2\n[[ta]]\n[ta.x]\ny = 1.5'
    )
    expected = {
        ("a",): 1, ("b.c",): 2, ("t",): 3, ("t", "long"): 4, ("t", "raw"): 8, ("t", "d", "e"): 11,
        ("t", "array", 0, 1): 12, ("t", "array", 1, "x"): 13, ("t", "array", 1, "x", 0): 14, ("ta", 0, "n"): 17,
        ("ta", 0, "sub", 1, "m"): 20, ("ta", 1): 21, ("ta", 1, "x", "y"): 23,
    }  # fmt: skip
    tomllib.loads(text)
    lines = key_lines(text)
    assert {path: lines[path] for path in expected} == expected


@given(st.text(alphabet=st.sampled_from("ab=[]{}.,#\n '\"1"), max_size=60))
@example("a = [}")
def test_no_text_can_hang_the_scan(text: str) -> None:
    key_lines(text)
