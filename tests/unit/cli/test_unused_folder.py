"""Commands on a folder in which no hub has run: each one that works on the hub's folder refuses and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuherd.auth.local_key import make_local_key
from gpuherd.cli import hub
from gpuherd.cli.token import command as token
from gpuherd.cli.user import command as user
from gpuherd.model.errors import Refused
from gpuherd.records.backup import write_backup
from gpuherd.records.database import open_records, records_file
from support.command_tree import Leaf, leaves

MADE_FOR_NEW_FOLDERS = {
    ("hub", "run"): "a hub makes its folder",
    ("hub", "init"): "prepares the folder",
    ("hub", "restore"): "records come back on a new machine",
    ("restore",): "records come back on a new machine",
    ("hub", "accept-key"): "gpuherd export needs host keys, but no hub",
    ("hub", "node-script"): "prints what is the same everywhere",
    ("agent",): "an agent's own folder",
    ("up",): "starts a hub",
    ("demo",): "starts a hub",
    ("doctor",): "looks only, and says what is missing",
}
ARGUMENTS = {
    "account": ["ada"],
    "user": ["ada"],
    "create": ["ada", "--generate"],
    "role": ["ada", "admin"],
    "password": ["ada", "--generate"],
    "token": [],
    "list": [],
    "revoke": ["123456789abc"],
    "remove": ["ada"],
    "secret": ["gpu01"],
    "setup-link": [],
    "start-afresh": [],
    "backup": ["FILE"],
    "import-comments": ["COMMENTS"],
    "export-comments": ["FILE"],
}


def works_on_the_hubs_folder(leaf: Leaf) -> bool:
    words, chain = leaf
    takes_folder = any(parameter.name == "state_dir" for command in chain for parameter in command.params)
    return takes_folder and words not in MADE_FOR_NEW_FOLDERS


LEAVES = sorted(filter(works_on_the_hubs_folder, leaves()), key=lambda leaf: leaf[0])


def arguments_of(words: tuple[str, ...], folder: Path) -> list[str]:
    if words[-2:] == ("token", "create"):
        return []
    for word in reversed(words):
        if word in ARGUMENTS:
            paths = {"FILE": folder / "file", "COMMENTS": folder / "comments.json"}
            return [str(paths.get(argument, argument)) for argument in ARGUMENTS[word]]
    raise AssertionError(
        f"gpuherd {' '.join(words)} takes --state-dir: say here how it is called, or why it may make a folder"
    )


def run(leaf: Leaf, state_dir: Path, folder: Path) -> object:
    """Call a command as its group does, with the folder where the chain takes it."""
    words, chain = leaf
    given = [*words[1:], *arguments_of(words, folder)]
    depth = next(
        number
        for number, command in enumerate(chain)
        if any(one.name == "state_dir" for one in command.params)
    )
    given[depth:depth] = ["--state-dir", str(state_dir)]
    return CliRunner().invoke(chain[0], given).exception


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: " ".join(leaf[0]))
@pytest.mark.parametrize("before", ["nothing", "empty folder", "empty records"])
def test_it_refuses_and_leaves_nothing(
    leaf: Leaf, before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "comments.json").write_text("{}")
    state = tmp_path / "state"
    if before != "nothing":
        state.mkdir()
    if before == "empty records":  # as commands of older versions left them
        open_records(records_file(state)).dispose()
    found = sorted(tmp_path.rglob("*"))
    refused = run(leaf, state, tmp_path)
    assert isinstance(refused, Refused), refused
    assert refused.code == "no_hub_here"
    assert f"no hub has run with {state} yet" in str(refused)
    assert sorted(tmp_path.rglob("*")) == found


def test_all_of_them_are_found() -> None:
    words = {leaf[0] for leaf in LEAVES}
    assert {("hub", "token", "create"), ("user", "create"), ("node", "remove"), ("backup",)} <= words
    assert len(words) >= 25


def test_a_folder_can_be_prepared_or_filled_before_the_first_start(tmp_path: Path) -> None:
    prepared = ["--state-dir", str(tmp_path / "prepared")]
    assert CliRunner().invoke(hub.command, [*prepared, "init"]).exit_code == 0
    assert CliRunner().invoke(user, [*prepared, "create", "mira", "--generate"]).exit_code == 0
    again = CliRunner().invoke(hub.command, [*prepared, "init"])
    assert (again.exit_code, again.stdout) == (0, f"{tmp_path}/prepared is already set up\n")
    assert "mira" in CliRunner().invoke(user, [*prepared, "list"]).stdout

    write_backup(records_file(tmp_path / "prepared"), tmp_path / "file")
    restored = ["--state-dir", str(tmp_path / "restored")]
    assert CliRunner().invoke(hub.command, [*restored, "restore", str(tmp_path / "file")]).exit_code == 0
    assert "mira" in CliRunner().invoke(user, [*restored, "list"]).stdout

    (tmp_path / "used").mkdir()
    make_local_key(tmp_path / "used")  # as a hub does
    assert CliRunner().invoke(token, ["--state-dir", str(tmp_path / "used"), "create"]).exit_code == 0
