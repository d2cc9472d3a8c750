"""What every finder that reads a file has in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuherd.discovery.ansible import AnsibleFinder
from gpuherd.discovery.finding import Finder
from gpuherd.discovery.hosts_file import HostsFileFinder
from gpuherd.discovery.ini import IniFinder
from gpuherd.discovery.settings import (
    AnsibleSettings,
    HostsFileSettings,
    IniSettings,
    SshConfigSettings,
    YamlSettings,
)
from gpuherd.discovery.ssh_config import SshConfigFinder
from gpuherd.discovery.yaml_file import YamlFinder
from gpuherd.model.errors import Misconfigured

FILE = Path("list")
KINDS: dict[str, tuple[Callable[[Path], Finder], str, str]] = {
    "hosts_file": (lambda base: HostsFileFinder(HostsFileSettings(file=FILE), base=base), "a\nb\n", "a b\n"),
    "ini": (
        lambda base: IniFinder(IniSettings(file=FILE), base=base),
        "[common]\nhosts = a,b\n",
        "[common]\nhost = a\n",
    ),
    "yaml": (lambda base: YamlFinder(YamlSettings(file=FILE), base=base), "hosts: [a, b]\n", "hosts: [a\n"),
    "ansible": (
        lambda base: AnsibleFinder(AnsibleSettings(file=FILE), base=base),
        "[rpcservers]\na\nb\n",
        "[rpcservers]\na b\n",
    ),
    "ssh_config": (
        lambda base: SshConfigFinder(SshConfigSettings(file=FILE, patterns=("*",)), base=base, home=base),
        "Host a b\n",
        'Host "a\n',
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_absent_good_bad_and_good_again(kind: str, tmp_path: Path) -> None:
    make, good, bad = KINDS[kind]
    finder = make(tmp_path)
    file = tmp_path / FILE

    def write(content: bytes) -> None:
        file.write_bytes(content)

    async def run() -> None:
        with pytest.raises(Misconfigured, match="there is no such file"):
            await finder.find()
        write(good.encode())
        found = await finder.find()
        assert [target.name for target in found] == ["a", "b"]
        assert all(str(file) in target.place for target in found)
        for content in (bad.encode(), b"\xff\xfe\x00", good.encode() + b"\xe9"):
            write(content)
            with pytest.raises(Misconfigured) as caught:
                await finder.find()
            assert str(file) in str(caught.value)
        write(b"\xef\xbb\xbf" + good.replace("\n", "\r\n").encode())
        assert [target.name for target in await finder.find()] == ["a", "b"]
        assert finder.name == str(file)
        await finder.close()
        await finder.close()

    asyncio.run(run())
