"""A configuration to examine, and what the doctor finds with it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.wiring.doctor.examine import examine
from gpuherd.wiring.doctor.steps import Journal, Step
from gpuherd.wiring.doctor.wording import closing
from support.authority import Authority
from support.remote_node import FakeNode
from support.running import free_port
from support.sshd import Sshd, make_key, need_sshd, running_sshd


class Findings:
    """What was found."""

    def __init__(self, steps: list[Step], host: str | None) -> None:
        self.steps = steps
        self.sentences = closing(steps, host)

    @property
    def states(self) -> dict[str, str]:
        return {step.name: step.state for step in self.steps}

    @property
    def broken(self) -> list[str]:
        return [step.name for step in self.steps if step.state == "failed"]

    def fact(self, name: str) -> str:
        return next(step.fact for step in self.steps if step.name == name)


class Doctor:
    """Examines with a configuration of the test's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state_dir = folder / "state"
        self.config_file = folder / "gpuherd.toml"
        self.port = free_port()

    def configure(self, text: str, **hub: str) -> Path:
        """Write the configuration; the hub listens where nobody else does."""
        keys = "".join(f'{key} = "{value}"\n' for key, value in hub.items())
        self.config_file.write_text(
            f'[hub]\nlisten = "127.0.0.1:{self.port}"\nstate_dir = "{self.state_dir}"\n{keys}\n{text}'
        )
        return self.config_file

    async def look(self, host: str | None = None, hub_url: str | None = None) -> Findings:
        """Examine."""
        journal = Journal()
        await examine(host, journal, config_file=self.config_file, hub_url=hub_url)
        return Findings(journal.steps, host)

    def __call__(self, host: str | None = None, text: str | None = None) -> Findings:
        if text is not None:
            self.configure(text)
        return asyncio.run(self.look(host))


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    return Doctor(tmp_path)


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_sshd()
    return make_key(tmp_path_factory.mktemp("key") / "id", comment="monitor")


class SshNode:
    """A real sshd whose logins find a made-up nvidia-smi."""

    def __init__(self, server: Sshd, fake: FakeNode, key: Path, folder: Path) -> None:
        self.server = server
        self.fake = fake
        self.key = key
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(server.known_hosts_line + "\n")
        self.ssh_config = folder / "ssh_config"
        self.ssh_config.write_text("")

    def table(self, host: str = "", **reach: str) -> str:
        """Give a [[nodes]] table that reaches it; ``reach`` are keys as TOML."""
        keys = {
            "interval_seconds": "0.5",
            "connect_deadline_seconds": "60",
            "key_files": f'["{self.key}"]',
            "known_hosts_file": f'"{self.known_hosts}"',
            "config_file": f'"{self.ssh_config}"',
            **reach,
        }
        joined = ", ".join(f"{name} = {value}" for name, value in keys.items())
        host = host or f"gpu01=root@127.0.0.1:{self.server.port}"
        return f'[[nodes]]\nhosts = ["{host}"]\nreach = {{ by = "ssh", {joined} }}\n'


@pytest.fixture
def ssh_node(tmp_path: Path, key: Path) -> Iterator[SshNode]:
    """A node with two GPUs that can be logged in to."""
    (tmp_path / "node").mkdir()
    fake = FakeNode(tmp_path / "node")
    fake.install_nvidia_smi()
    fake.gpus(2)
    with running_sshd(tmp_path / "sshd", SetEnv=f"PATH={fake.programs}:/usr/bin:/bin") as server:
        server.authorize(key)
        yield SshNode(server, fake, key, tmp_path)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    return Authority(tmp_path / "authority")
