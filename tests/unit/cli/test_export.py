"""A command line that does not say what to do is refused before anything is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuherd.cli.export import command


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "nothing to write"),
        (["--here"], "nothing to write"),
        (["--here", "--ssh", "config.ini", "--csv", "a"], "--here and --ssh are different sources"),
        (
            ["--hub", "http://x", "--config", "a.toml", "--csv", "a"],
            "--config and --hub are different sources",
        ),
        (["--csv", "a", "--full-csv", "a"], "the same file name"),
        (["--csv", "-", "--json", "-"], "the same file name"),
        (["--hub", "http://x", "--privacy", "public", "--csv", "a"], "a hub decides by your login"),
        (["--csv", "a", "--reload", "1"], "--reload"),
        (["--csv", "a", "--deadline", "0"], "--deadline"),
        (["--csv", "a", "--reload", "60"], "--reload needs --html"),
        (["--csv", "a", "--deadline", "5"], "--deadline needs --config or --ssh"),
        (["--here", "--csv", "a", "--deadline", "60"], "--deadline needs --config or --ssh"),
        (
            ["--ssh", "config.ini", "--csv", "a", "--token-file", "t"],
            "--token-file needs a hub; --ssh uses none",
        ),
    ],
)
def test_refused(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    done = CliRunner(env={"HOME": str(tmp_path)}).invoke(command, arguments)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_a_hub_of_the_environment_does_not_stand_against_another_source(tmp_path: Path) -> None:
    done = CliRunner(env={"GPUHERD_HUB": "http://127.0.0.1:1"}).invoke(
        command, ["--ssh", str(tmp_path / "config.ini"), "--csv", str(tmp_path / "a.csv")]
    )
    assert "there is no such file" in str(done.exception)


def test_to_ask_a_hub_takes_nothing_that_only_a_hub_needs() -> None:
    loads = (
        "import sys, gpuherd.cli.export, gpuherd.wiring.exporting.targets, gpuherd.wiring.exporting.writing;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert not {"numpy", "litestar", "granian", "sqlalchemy", "aiohttp", "asyncssh", "duckdb", "yaml"} & set(
        done.stdout.split()
    )
