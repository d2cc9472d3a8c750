"""The real servers of these tests, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.consul import Consul, consul_program, running_consul

OWNER = "11111111-2222-3333-4444-555555555555"


@pytest.fixture(scope="session")
def consul(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consul]:
    """A Consul that denies everyone but its owner."""
    program = consul_program()
    if program is None:
        pytest.skip("Consul is not installed (make provision, as root)")
    with running_consul(program, tmp_path_factory.mktemp("consul"), token=OWNER) as running:
        yield running
