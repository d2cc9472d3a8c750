"""``gpuherd hub account`` and ``gpuherd hub setup-link``: people, from the hub's own machine."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.as_owner import acting_as_owner, acting_as_root, check_used
from gpuherd.cli.lists import print_list
from gpuherd.model.people import COMMAND_LINE, ROLES

if TYPE_CHECKING:
    from gpuherd.api.open_records import OpenRecords
    from gpuherd.model.people import Account, Role
    from gpuherd.records.people import PeopleRecords
    from gpuherd.wiring.config import Config

__all__ = ["account", "setup_link"]


def _config(context: click.Context) -> Config:
    from gpuherd.wiring.config import load

    config_file, state_dir = context.obj  # of ``gpuherd hub``
    return load(config_file, {"hub": {"state_dir": None if state_dir is None else str(state_dir)}})


@contextlib.contextmanager
def _records(context: click.Context) -> Iterator[OpenRecords]:
    from gpuherd.api.open_records import open_hub_records

    settings = _config(context).hub
    with acting_as_owner(settings.state_dir):
        check_used(settings)
        with contextlib.closing(open_hub_records(settings)) as records:
            yield records


@contextlib.contextmanager
def _people(context: click.Context) -> Iterator[PeopleRecords]:
    with _records(context) as records:
        yield records.people


def _find(people: PeopleRecords, name: str) -> Account:
    from gpuherd.model.errors import Refused
    from gpuherd.model.text import clean

    found = people.account_by_name(name)
    if found is None:
        raise Refused("unknown_account", f"there is no account {clean(name)}; `gpuherd user list` shows all")
    return found


def _new_password(name: str, file: Path | None, is_made_up: bool) -> str:
    """Get a password that nobody sees in the list of processes: asked for, read from a file, or made up and printed."""
    from gpuherd.auth.passwords import check_new_password, random_password
    from gpuherd.model.errors import Misconfigured

    if is_made_up:
        password = random_password()
        click.echo(f"password: {password}")
        return password
    if file is None:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    elif str(file) == "-":
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        try:
            with acting_as_root():
                password = file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise Misconfigured(f"{file}: not a text file; give a file that contains the password") from error
    check_new_password(password, name)
    return str(password)


def _password_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--generate", "is_made_up", is_flag=True, help="Generate a password and print it."
    )(command)
    return click.option(
        "--password-file",
        type=click.Path(path_type=Path),
        help="Read the password from this file (- for standard input) instead of asking for it.",
    )(command)


@click.group()
def account() -> None:
    """Create, list and change accounts.

    Run this on the hub's machine. A running hub applies changes within a second.
    """


@account.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_accounts(context: click.Context, as_json: bool) -> None:
    """List all accounts."""
    import json

    with _people(context) as people:
        accounts = people.load().accounts
    if as_json:
        told = (
            "name",
            "display_name",
            "role",
            "source",
            "is_disabled",
            "last_login_at",
            "groups",
            "linux_names",
        )
        click.echo(json.dumps([{key: getattr(each, key) for key in told} for each in accounts], indent=2))
        return
    rows = []
    for found in accounts:
        seen = "never logged in"
        if found.last_login_at is not None:
            moment = datetime.fromtimestamp(found.last_login_at, UTC)
            seen = f"last login {moment:%Y-%m-%d %H:%M} UTC"
        state = "disabled, " if found.is_disabled else ""
        groups = [", ".join(found.groups)] if found.groups else []
        rows.append([found.name, found.role, found.source, f"{state}{seen}", *groups])
    print_list(("name", "role", "source", "login", "groups"), rows)


@account.command("create")
@click.argument("name")
@click.option(
    "--role", type=click.Choice(ROLES), default="member", show_default=True, help="What the account may do."
)
@click.option("--display-name", default="", help="Name that others see. Default: NAME.")
@click.option("--group", "groups", multiple=True, help="Group of the account. Repeat for several.")
@click.option(
    "--linux-name", "linux_names", multiple=True, help="Linux user on the nodes. Repeat for several."
)
@_password_options
@click.pass_context
def create_account(
    context: click.Context,
    name: str,
    role: Role,
    display_name: str,
    groups: tuple[str, ...],
    linux_names: tuple[str, ...],
    password_file: Path | None,
    is_made_up: bool,
) -> None:
    """Create a local account NAME."""
    from gpuherd.auth.names import account_name
    from gpuherd.auth.passwords import Passwords
    from gpuherd.model.text import clean

    name = account_name(name)
    with _people(context) as people:
        password = _new_password(name, password_file, is_made_up)
        people.create_account(
            name=name,
            display_name=clean(display_name) or name,
            role=role,
            password_hash=Passwords().hash(password),
            groups=groups,
            linux_names=linux_names,
            now=time.time(),
            by=COMMAND_LINE,
        )
    click.echo(f"created {name}, {role}")


@account.command("password")
@click.argument("name")
@_password_options
@click.pass_context
def set_password(context: click.Context, name: str, password_file: Path | None, is_made_up: bool) -> None:
    """Set a new password for NAME.

    Ends all login sessions of the account and revokes its API tokens.
    """
    from gpuherd.auth.passwords import Passwords
    from gpuherd.model.errors import Refused

    with _people(context) as people:
        found = _find(people, name)
        if found.source != "local":
            raise Refused(
                "password_elsewhere",
                f"the password of this account is managed by {found.source}; change it there",
            )
        password = _new_password(found.name, password_file, is_made_up)
        people.set_password(found.id, Passwords().hash(password), now=time.time(), by=COMMAND_LINE)
    click.echo(f"changed the password of {found.name}")


@account.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
@click.pass_context
def set_role(context: click.Context, name: str, role: Role) -> None:
    """Change the role of NAME.

    Viewers can look, members can also book, admins can do everything.
    """
    with _people(context) as people:
        found = _find(people, name)
        people.change_account(found.id, role=role, now=time.time(), by=COMMAND_LINE)
    click.echo(f"{found.name} is {role}")


@account.command("disable")
@click.argument("name")
@click.pass_context
def disable_account(context: click.Context, name: str) -> None:
    """Disable the account NAME; nothing is deleted."""
    with _people(context) as people:
        found = _find(people, name)
        people.change_account(found.id, is_disabled=True, now=time.time(), by=COMMAND_LINE)
    click.echo(f"disabled {found.name}")


@account.command("enable")
@click.argument("name")
@click.pass_context
def enable_account(context: click.Context, name: str) -> None:
    """Enable the account NAME again."""
    with _people(context) as people:
        found = _find(people, name)
        people.change_account(found.id, is_disabled=False, now=time.time(), by=COMMAND_LINE)
    click.echo(f"enabled {found.name}")


@account.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def remove_account(context: click.Context, name: str, yes: bool) -> None:
    """Delete the account NAME and its API tokens.

    Cancels upcoming bookings and removes the name from past ones.
    """
    with _people(context) as people:
        found = _find(people, name)
        if not yes:
            click.confirm(f"Delete the account {found.name}? This cannot be undone.", abort=True)
        people.erase_account(found.id, now=time.time(), by=COMMAND_LINE)
    click.echo(f"removed {found.name}")


@click.command("setup-link")
@click.pass_context
def setup_link(context: click.Context) -> None:
    """Print a link to create the first admin.

    The link is valid for a day. Earlier links stop working.
    """
    from gpuherd.api.records_care import refuse_missing
    from gpuherd.auth.setup import new_setup_code
    from gpuherd.auth.setup import setup_link as link
    from gpuherd.model.errors import Refused

    settings = _config(context).hub
    with _records(context) as records:
        refuse_missing(records.engine, settings.state_dir)
        code = new_setup_code(records.people, time.time(), COMMAND_LINE)
    if code is None:
        raise Refused("setup_done", "there is an admin already; see `gpuherd user list`")
    click.echo(link(settings.url_at(settings.address), code))
