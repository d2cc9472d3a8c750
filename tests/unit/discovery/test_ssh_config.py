"""Hosts of an SSH client configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.discovery.settings import SshConfigSettings
from gpuherd.discovery.ssh_config import SshConfigFinder, matches, parse_ssh_config
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from support.complaints import complaint_of
from support.running import PATIENCE_SECONDS

EXAMPLE = """\
# mine
Host gpu1 gpu2 bastion
    User me
Host=gpu3
  Port 2222
Host "gpu4" gpu* !gpu9 ?pu
    IdentityFile ~/.ssh/gpu
host github.com
Match host gpu7
    User other
    Include never
Host gpu5   # five
"""


def test_concrete_hosts_that_match_the_patterns() -> None:
    found = parse_ssh_config(EXAMPLE, "config", ("gpu*", "!gpu2"))
    assert [(target.name, target.address, target.place) for target in found] == [
        ("gpu1", "gpu1", "config:2"),
        ("gpu3", "gpu3", "config:4"),
        ("gpu4", "gpu4", "config:6"),
        ("gpu5", "gpu5", "config:12"),
    ]


@pytest.mark.parametrize(
    ("alias", "patterns", "is_match"),
    [
        ("gpu1", ("gpu?",), True),
        ("gpu10", ("gpu?",), False),
        ("gpu1", ("*", "!gpu1"), False),
        ("gpu1", ("!gpu2",), False),
        ("[a]", ("[a]",), True),
        ("a", ("[a]",), False),
        ("a.b", ("a?b",), True),
        ("axb", ("a.b",), False),
    ],
)
def test_patterns_as_in_ssh(alias: str, patterns: tuple[str, ...], is_match: bool) -> None:
    assert matches(alias, patterns) is is_match


def test_many_stars_stay_quick() -> None:
    assert not matches("a" * 120, ("*" * 100 + "b",))


def test_included_files_are_read_from_the_ssh_folder(tmp_path: Path) -> None:
    folder = tmp_path / ".ssh"
    (folder / "conf.d").mkdir(parents=True)
    (folder / "config").write_text("Include conf.d/*.conf ~/more absent\nHost gpu1\n")
    (folder / "conf.d/a.conf").write_text("Host gpu2\n")
    (folder / "conf.d/b.conf").write_text("Host x gpu3\n")
    (tmp_path / "more").write_text("Host gpu4\n")
    settings = SshConfigSettings(file=folder / "config", patterns=("gpu*",))
    finder = SshConfigFinder(settings, base=tmp_path, home=tmp_path)

    async def run() -> None:
        assert [target.name for target in await finder.find()] == ["gpu2", "gpu3", "gpu4", "gpu1"]
        waiting = asyncio.create_task(finder.wait())
        await asyncio.sleep(0)
        (folder / "conf.d/c.conf").write_text("Host gpu5\n")
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        assert [target.name for target in await finder.find()] == ["gpu2", "gpu3", "gpu5", "gpu4", "gpu1"]

    asyncio.run(run())


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    file = tmp_path / ".ssh/config"
    file.write_text("Host a\nInclude config\n")
    finder = SshConfigFinder(SshConfigSettings(file=file, patterns=("*",)), base=tmp_path, home=tmp_path)
    with pytest.raises(Misconfigured, match=r"config:2: files include each other"):
        asyncio.run(finder.find())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('Host a\nHost "b\n', "config:2: unclosed quotation mark"),
        ("Host -oProxyCommand=x\n", "config:1: "),
        ("Host a/b\n", 'config:1: "a/b" is not a usable host'),
    ],
)
def test_bad_lines_are_named(text: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        parse_ssh_config(text, "config", ("*",))
    assert complaint in str(caught.value)


@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_gives_targets_or_a_misconfiguration(text: str, pattern: str) -> None:
    found: list[Target] = []
    complaint = complaint_of(lambda: found.extend(parse_ssh_config(f"Host {text}", "config", (pattern, "*"))))
    assert complaint is None or complaint.startswith("config:")
    assert not any(target.address.startswith("-") for target in found)
