"""Commands of the hub that stand alone do what they do below ``gpuherd hub``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuherd.cli import hub
from gpuherd.cli.backup_ import command as backup
from gpuherd.cli.restore import command as restore
from gpuherd.cli.token import command as token
from gpuherd.cli.user import command as user


def test_accounts_are_the_hubs_own(tmp_path: Path) -> None:
    place = ["--state-dir", str(tmp_path / "state")]
    made = CliRunner().invoke(user, [*place, "create", "mira", "--generate"])
    assert made.exit_code == 0, made.output

    assert "mira\tmember" in CliRunner().invoke(hub.command, [*place, "account", "list"]).output


def test_a_backup_comes_back(tmp_path: Path) -> None:
    place, file = ["--state-dir", str(tmp_path / "state")], str(tmp_path / "records")
    CliRunner().invoke(user, [*place, "create", "mira", "--generate"])

    assert CliRunner().invoke(backup, [*place, file]).exit_code == 0
    CliRunner().invoke(user, [*place, "create", "later", "--generate"])
    restored = CliRunner().invoke(restore, [*place, file, "--replace"])

    assert restored.exit_code == 0, restored.output
    listed = CliRunner().invoke(user, [*place, "list"]).output
    assert "mira" in listed
    assert "later" not in listed


@pytest.mark.parametrize("command", [token, user, backup, restore])
def test_all_say_where_the_hub_keeps_what_they_change(command: object) -> None:
    names = {option for parameter in command.params for option in parameter.opts}  # type: ignore[attr-defined]
    assert {"--config", "--state-dir"} <= names


def test_a_join_token_is_made(tmp_path: Path) -> None:
    made = CliRunner().invoke(token, ["--state-dir", str(tmp_path), "create", "--uses", "3"])
    assert made.output.startswith("ghj_")
