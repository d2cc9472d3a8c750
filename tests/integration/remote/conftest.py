from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.remote_node import SHELLS, FakeNode

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture(params=sorted(SHELLS))
def node(request: pytest.FixtureRequest, tmp_path: Path) -> FakeNode:
    """A node with a made-up nvidia-smi, once with each shell."""
    return make_node(tmp_path, request.param)


@pytest.fixture
def dash_node(tmp_path: Path) -> FakeNode:
    """For what does not depend on the shell."""
    return make_node(tmp_path, "dash")


def make_node(folder: Path, shell: str) -> FakeNode:
    if shutil.which(SHELLS[shell][0]) is None:
        pytest.skip(f"{shell} is not installed: scripts/provision installs it")
    node = FakeNode(folder, shell)
    node.install_nvidia_smi()
    return node


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a secret in its command line."""
    code = "import sys; held = bytearray(30_000_000); print(1, flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--lr", "0.1", "--token", SECRET, f"https://bob:{SECRET}@host/x"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
