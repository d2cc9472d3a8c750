"""Commands of the hub that stand alone do what they do below ``gpuherd hub``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gpuherd.cli import config, hub, import_
from gpuherd.cli.backup_ import command as backup
from gpuherd.cli.restore import command as restore
from gpuherd.cli.token import command as token
from gpuherd.cli.user import command as user
from gpuherd.model.errors import Refused


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    """Name the folder of a hub that is yet to start."""
    place = ["--state-dir", str(tmp_path / "state")]
    assert CliRunner().invoke(hub.command, [*place, "init"]).stdout == f"prepared {tmp_path}/state\n"
    return place


def test_accounts_are_the_hubs_own(place: list[str]) -> None:
    made = CliRunner().invoke(user, [*place, "create", "mira", "--generate"])
    assert made.exit_code == 0, made.stdout

    assert "mira\tmember" in CliRunner().invoke(hub.command, [*place, "account", "list"]).stdout


def test_a_backup_comes_back(tmp_path: Path, place: list[str]) -> None:
    file = str(tmp_path / "records")
    CliRunner().invoke(user, [*place, "create", "mira", "--generate"])

    assert CliRunner().invoke(backup, [*place, file]).exit_code == 0
    CliRunner().invoke(user, [*place, "create", "later", "--generate"])
    restored = CliRunner().invoke(restore, [*place, file, "--replace"])

    assert restored.exit_code == 0, restored.stdout
    listed = CliRunner().invoke(user, [*place, "list"]).stdout
    assert "mira" in listed
    assert "later" not in listed


@pytest.mark.parametrize("command", [token, user, backup, restore])
def test_all_say_where_the_hub_keeps_what_they_change(command: object) -> None:
    names = {option for parameter in command.params for option in parameter.opts}  # type: ignore[attr-defined]
    assert {"--config", "--state-dir"} <= names


def test_a_join_token_is_made(place: list[str]) -> None:
    made = CliRunner().invoke(token, [*place, "create", "--uses", "3"])
    assert made.stdout.startswith("ghj_")


def test_join_tokens_are_listed_and_revoked_without_being_told(place: list[str]) -> None:
    made = CliRunner().invoke(token, [*place, "create", "--uses", "3"]).stdout.strip()
    other = CliRunner().invoke(token, [*place, "create"]).stdout.strip()
    listed = CliRunner().invoke(token, [*place, "list"]).stdout
    assert "for 3 nodes" in listed
    assert "for 1 node\t" in listed
    found = json.loads(CliRunner().invoke(token, [*place, "list", "--json"]).stdout)
    assert [each["uses_left"] for each in found] == [3, 1]
    for each, secret in zip(found, (made, other), strict=True):
        assert secret[4:] not in listed
        assert each["id"] not in secret

    assert (
        CliRunner().invoke(token, [*place, "revoke", found[0]["id"]]).stdout == f"revoked {found[0]['id']}\n"
    )
    left = json.loads(CliRunner().invoke(token, [*place, "list", "--json"]).stdout)
    assert left == found[1:]
    again = CliRunner().invoke(token, [*place, "revoke", found[0]["id"]])
    assert isinstance(again.exception, Refused)
    assert "gpuherd token list" in str(again.exception)


def test_what_they_tell_can_be_had_as_json(tmp_path: Path, place: list[str]) -> None:
    file = str(tmp_path / "records")
    CliRunner().invoke(user, [*place, "create", "mira", "--generate"])

    def told(command: click.Command, *arguments: str) -> Any:
        return json.loads(CliRunner().invoke(command, [*place, *arguments, "--json"]).stdout)

    assert [(each["name"], each["role"]) for each in told(user, "list")] == [("mira", "member")]
    made = told(token, "create", "--uses", "3")
    assert (made["token"][:4], made["uses"]) == ("ghj_", 3)
    assert told(hub.command, "node", "list") == []
    written = told(backup, file)
    assert written["rows"] > 0
    assert told(restore, file, "--replace")["rows"] == written["rows"]


def test_what_is_imported_and_checked_can_be_had_as_json(tmp_path: Path) -> None:
    hosts, output = tmp_path / "hosts.txt", tmp_path / "gpuherd.toml"
    hosts.write_text("gpu01\ngpu02\n")

    taken = CliRunner().invoke(
        import_.command, [str(hosts), "--by", "ssh", "--output", str(output), "--json"]
    )
    checked = CliRunner().invoke(config.command, ["check", str(output), "--json"])

    assert [note["sentence"] for note in json.loads(taken.stdout)["files"][0]["notes"]] == [
        "host gpu01",
        "host gpu02",
    ]
    assert json.loads(checked.stdout) == {"file": str(output), "is_good": True}
