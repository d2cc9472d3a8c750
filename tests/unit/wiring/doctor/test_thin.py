"""On a node there is no more than the agent's packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.running import PATIENCE_SECONDS

HUB_PACKAGES = ("aiohttp", "asyncssh", "granian", "litestar", "numpy", "sqlalchemy", "alembic", "yaml")


def examined(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys\nfor name in {HUB_PACKAGES!r}: sys.modules[name] = None\n"
        f"sys.argv = ['gpuherd', 'doctor', *{arguments!r}, '--state-dir', {str(folder)!r}]\n"
        "from gpuherd.cli import main\nmain()"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
    )


def test_a_node_is_examined_without_the_packages_of_the_hub(tmp_path: Path) -> None:
    done = examined(tmp_path, "--hub", "http://127.0.0.1:1")
    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ connect" in done.stdout
    assert "start the hub, or correct agent.hub_url" in done.stdout


def test_who_asks_a_node_for_another_is_sent_to_the_hub(tmp_path: Path) -> None:
    done = examined(tmp_path, "gpu02")
    assert (done.returncode, done.stderr) == (1, "")
    assert "gpu02: the connection to gpu02 is checked from the hub" in done.stdout
    assert "run this on the hub" in done.stdout
