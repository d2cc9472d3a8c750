"""``gpuherd user`` and ``gpuherd hub setup-link`` on real records."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpuherd.auth.local_key import make_local_key
from gpuherd.auth.passwords import Passwords
from gpuherd.auth.setup import setup_digest
from gpuherd.cli.hub import command
from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.records.audit import AuditRecords
from gpuherd.records.database import open_records, records_file
from gpuherd.records.people import PeopleRecords

PASSWORD = "correct horse battery"
Hub = Callable[..., Result]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "state").mkdir()
    make_local_key(tmp_path / "state")  # as a hub does that has run there

    def run(*words: str, typed: str = "") -> Result:
        arguments = ["--state-dir", str(tmp_path / "state"), *words]
        return CliRunner().invoke(command, arguments, input=typed)

    return run


@pytest.fixture
def people(hub: Hub, tmp_path: Path) -> Iterator[PeopleRecords]:
    with contextlib.closing(PeopleRecords(open_records(records_file(tmp_path / "state")))) as records:
        yield records


def matches(people: PeopleRecords, name: str, password: str) -> bool:
    account = people.account_by_name(name)
    return account is not None and Passwords().matches(password, people.password_hash(account.id))


def test_an_account_is_created_with_a_password_that_is_asked_for(hub: Hub, people: PeopleRecords) -> None:
    done = hub(
        "account", "create", "ada", "--role", "admin", "--group", "vision", "--linux-name", "alovelace",
        typed=f"{PASSWORD}\n{PASSWORD}\n",
    )  # fmt: skip
    assert done.exit_code == 0
    assert PASSWORD not in done.output
    account = people.account_by_name("ADA")
    assert account is not None
    assert (account.role, account.groups, account.linux_names) == ("admin", ("vision",), ("ada", "alovelace"))
    assert matches(people, "ada", PASSWORD)
    assert "ada\tadmin\tlocal\tnever logged in\tvision" in hub("account", "list").output


def test_a_password_comes_from_a_file_or_standard_input(
    hub: Hub, people: PeopleRecords, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    assert hub("account", "create", "ada", "--password-file", str(tmp_path / "secret")).exit_code == 0
    assert matches(people, "ada", PASSWORD)
    assert hub("account", "password", "ada", "--password-file", "-", typed="another one\n").exit_code == 0
    assert matches(people, "ada", "another one")
    missing = hub("account", "password", "ada", "--password-file", str(tmp_path / "none"))
    assert isinstance(missing.exception, Misconfigured)


def test_a_password_can_be_made_up(hub: Hub, people: PeopleRecords) -> None:
    done = hub("account", "create", "ada", "--generate")
    made = re.search(r"^password: (\S+)$", done.output, flags=re.MULTILINE)
    assert made is not None
    assert matches(people, "ada", made[1])


@pytest.mark.parametrize(("name", "typed"), [("ada", "short\n"), ("not a name", PASSWORD), ("", PASSWORD)])
def test_what_will_not_do_is_refused(hub: Hub, people: PeopleRecords, name: str, typed: str) -> None:
    done = hub("account", "create", name, "--password-file", "-", typed=typed)
    assert isinstance(done.exception, Refused)
    assert people.load().accounts == ()


def test_roles_are_changed_and_people_kept_out_and_forgotten(hub: Hub, people: PeopleRecords) -> None:
    for name in ("ada", "bob"):
        hub("account", "create", name, "--role", "admin", "--generate")
    assert hub("account", "role", "bob", "viewer").output == "bob is viewer\n"
    assert hub("account", "disable", "bob").output == "disabled bob\n"
    bob = people.account_by_name("bob")
    assert bob is not None
    assert (bob.role, bob.is_disabled) == ("viewer", True)
    assert "disabled" in hub("account", "list").output
    assert hub("account", "enable", "bob").output == "enabled bob\n"
    assert hub("account", "remove", "bob", typed="n\n").exit_code == 1
    assert people.account_by_name("bob") is not None
    assert hub("account", "remove", "bob", "--yes").output == "removed bob\n"
    assert people.account_by_name("bob") is None
    for words in (("role", "ada", "member"), ("disable", "ada"), ("remove", "ada", "--yes")):
        refused = hub("account", *words).exception
        assert isinstance(refused, Refused)
        assert refused.code == "last_admin"
    unknown = hub("account", "disable", "bob").exception
    assert isinstance(unknown, Refused)
    assert "user list" in str(unknown)
    with contextlib.closing(people):
        who = {entry.who for entry in AuditRecords(people._engine).search()}
    assert who == {"command line"}


def test_a_set_up_link_is_printed_until_there_is_an_admin(hub: Hub, people: PeopleRecords) -> None:
    link = hub("setup-link").output.strip()
    address, _, code = link.partition("#")
    assert address == "http://127.0.0.1:8470/?setup"
    assert setup_digest(code)
    hub("account", "create", "ada", "--role", "admin", "--generate")
    assert isinstance(hub("setup-link").exception, Refused)
