"""On a node there is no more than the agent's packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HUB_PACKAGES = ("aiohttp", "asyncssh", "granian", "litestar", "numpy", "sqlalchemy", "alembic", "yaml")


def test_a_node_is_examined_without_the_packages_of_the_hub(tmp_path: Path) -> None:
    code = (
        f"import sys\nfor name in {HUB_PACKAGES!r}: sys.modules[name] = None\n"
        f"sys.argv = ['gpuherd', 'doctor', '--hub', 'http://127.0.0.1:1', '--state-dir', {str(tmp_path)!r}]\n"
        "from gpuherd.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ connect" in done.stdout
    assert "start the hub, or correct agent.hub_url" in done.stdout
