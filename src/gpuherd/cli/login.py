"""``gpuherd login``: get a token for this machine."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from gpuherd.cli.asking import NOT_ALLOWED, asked_hub, login_file, telling
from gpuherd.cli.saying import say

if TYPE_CHECKING:
    from gpuherd.client import HubClient, HubRefused
    from gpuherd.client.views import Session

__all__ = ["command"]


@click.command()
@click.option(
    "--hub", "hub_url", metavar="URL", envvar="GPUHERD_HUB", help="Hub to log in to. Default: GPUHERD_HUB."
)
@click.option("--name", help="Your account name. Asked for if not given.")
@click.option(
    "--password-file",
    type=click.File("r"),
    help="File with your password (- for standard input). Asked for if not given.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="Use the API token in this file instead of creating one.",
)
@click.option(
    "--days", type=click.IntRange(1, 366), default=90, show_default=True, help="How long the token is valid."
)
@click.option(
    "--ca-file", type=click.Path(path_type=Path, exists=True), help="PEM file with the certificates to trust."
)
@click.option("--forget", is_flag=True, help="Remove the token from this machine.")
@click.pass_context
def command(
    context: click.Context,
    hub_url: str | None,
    name: str | None,
    password_file: TextIO | None,
    token_file: Path | None,
    days: int,
    ca_file: Path | None,
    forget: bool,
) -> None:
    """Log in to a hub from this machine.

    Creates an API token that can read and book, and stores it in ~/.config/gpuherd/token, readable only by you. Your
    password is not stored. If your hub uses OpenID Connect or a proxy for logins, create a token on the hub's page,
    save it to a file, and use --token-file.
    """
    _check(context)
    from gpuherd.client import HubClient, HubLine, Login
    from gpuherd.client.line import HubUrl
    from gpuherd.client.login_file import read_token
    from gpuherd.model.errors import Misconfigured
    from gpuherd.model.text import clean

    kept = login_file()
    if forget:
        click.echo(
            "removed from this machine; also revoke the token on the hub's page"
            if kept.forget()
            else "you are not logged in on this machine"
        )
        return
    url = HubUrl.parse(asked_hub(hub_url))
    if url.is_exposed:
        raise Misconfigured(
            f"{url} is not encrypted: others on the network could read your password; use the hub's https address"
        )
    trusted = None if ca_file is None else str(ca_file.absolute())
    if token_file is not None:
        token = read_token(token_file)
        hub = HubClient(HubLine(url, token=token, ca_file=trusted))
        with telling():
            session = hub.session()
        if session.account is None:
            say(f"gpuherd: {url} does not accept this token; it may have expired or been revoked")
            sys.exit(NOT_ALLOWED)
        login = Login(hub=str(url), token=token, name=session.account.name, ca_file=trusted)
    else:
        hub = HubClient(HubLine(url, ca_file=trusted))
        name = name or click.prompt("Name")
        password = _password(password_file)
        with telling():
            session = _log_in(hub, name, password)
            is_member = session.account is not None and session.account.role != "viewer"
            title = f"gpuherd on {socket.gethostname()}"
            made = hub.create_token(title, ("read", "book") if is_member else ("read",), days)
            hub.log_out()
        login = Login(hub=str(url), token=made.token, name=name, expires_at=made.expires_at, ca_file=trusted)
    kept.save(login)
    click.echo(f"logged in to {url} as {clean(login.name)}; the token is in {kept.file}")
    if session.account is not None and session.account.role == "viewer":
        click.echo("your role is viewer: you can look, but not book")


def _check(context: click.Context) -> None:
    """Refuse options that would do nothing beside others."""
    given = click.core.ParameterSource.COMMANDLINE
    named = {
        option.opts[0]
        for option in context.command.params
        if context.get_parameter_source(option.name) is given
    }
    if "--forget" in named and len(named) > 1:
        raise click.UsageError("--forget cannot be combined with other options")
    idle = [word for word in ("--name", "--password-file", "--days") if word in named]
    if "--token-file" in named and idle:
        raise click.UsageError(f"{' and '.join(idle)} cannot be combined with --token-file")


def _log_in(hub: HubClient, name: str, password: str) -> Session:
    """Log in, with patience where many do at once; a wrong password is never tried again."""
    from gpuherd.client.patience import MOST_WAITING_SECONDS, patiently
    from gpuherd.model.text import clean

    def told(refused: HubRefused) -> None:
        say(f"gpuherd: {clean(refused.detail.message, 200)}")
        say(f"  retrying for up to {MOST_WAITING_SECONDS:.0f} s; press Ctrl-C to stop")

    return patiently(lambda: hub.log_in(name, password), tell=told)


def _password(file: TextIO | None) -> str:
    if file is not None:
        return file.read(2048).rstrip("\r\n")
    if not sys.stdin.isatty():
        raise click.UsageError("cannot ask for the password without a terminal; use --password-file")
    return str(click.prompt("Password", hide_input=True))
