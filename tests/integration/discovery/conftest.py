"""The real servers of these tests, started once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from support.authority import Authority
from support.consul import Consul, consul_program, running_consul

OWNER = "11111111-2222-3333-4444-555555555555"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority | None:
    """Whoever has signed Consul's certificate; none without openssl."""
    return Authority(tmp_path_factory.mktemp("ca") / "own") if shutil.which("openssl") else None


@pytest.fixture(scope="session")
def consul(tmp_path_factory: pytest.TempPathFactory, authority: Authority | None) -> Iterator[Consul]:
    """A Consul that denies everyone but its owner."""
    program = consul_program()
    if program is None:
        pytest.skip("Consul is not installed (make provision, as root)")
    folder = tmp_path_factory.mktemp("consul")
    certificate = authority.issue("DNS:consul.test,IP:127.0.0.1") if authority is not None else None
    with running_consul(program, folder, token=OWNER, certificate=certificate) as running:
        yield running
