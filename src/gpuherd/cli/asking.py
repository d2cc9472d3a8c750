"""What the commands share that ask a hub: which hub, as whom, and how its answers are shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpuherd.cli.saying import say
from gpuherd.cli.showing import Cell, Screen
from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client import HubClient, HubRefused, LoginFile

__all__ = [
    "asked_hub",
    "client",
    "hub_options",
    "login_file",
    "moment",
    "own_zone",
    "span",
    "table",
    "tell",
    "telling",
]

REFUSED = 3
NOT_ALLOWED = 4
_EXIT_CODES = {400: REFUSED, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: REFUSED, 409: REFUSED, 422: REFUSED}
DEFAULT_HUB = "http://127.0.0.1:8470"
F = TypeVar("F", bound=Callable[..., Any])


def hub_options(function: F) -> F:
    """Add the options by which a hub and a token are chosen."""
    for option in (
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            help="File with an API token. Default: the token from 'gpuherd login'.",
        ),
        click.option(
            "--hub",
            "hub_url",
            metavar="URL",
            envvar="GPUHERD_HUB",
            help="Address of the hub. Default: GPUHERD_HUB, else the hub you are logged in to.",
        ),
    ):
        function = option(function)
    return function


def _config_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "gpuherd"


def login_file() -> LoginFile:
    """Give the file that keeps the login."""
    from gpuherd.client import LoginFile

    return LoginFile(_config_folder() / "token")


def asked_hub(hub_url: str | None) -> str:
    """Give the hub's address: the one named, that of the login, that of this machine's agent, or the local one."""
    if hub_url is not None:
        return hub_url
    login = login_file().load()
    if login is not None:
        return login.hub
    import tomllib

    for file in (_config_folder() / "gpuherd.toml", Path("/etc/gpuherd/gpuherd.toml")):
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8")).get("agent", {}).get("hub_url")
        except (OSError, ValueError, AttributeError):
            continue  # not there, or for the hub's own commands to complain about
        if isinstance(found, str):
            return found
    return DEFAULT_HUB


def client(hub_url: str | None, token_file: Path | None) -> HubClient:
    """Give a client of the hub with the token that belongs to it, if there is one."""
    from gpuherd.client import HubClient, HubLine
    from gpuherd.client.line import HubUrl
    from gpuherd.client.login_file import read_token

    url = HubUrl.parse(asked_hub(hub_url))
    ca_file = os.environ.get("GPUHERD_CA_FILE")
    login = login_file().load() if token_file is None else None
    token = None if token_file is None else read_token(token_file)
    if login is not None and HubUrl.parse(login.hub) == url:  # a token is shown to no other hub
        token, ca_file = login.token, ca_file or login.ca_file
    if token is not None and url.is_exposed:
        raise Misconfigured(
            f"{url} is not encrypted: others on the network could read your token; use the hub's https address"
        )
    return HubClient(HubLine(url, token=token, ca_file=ca_file))


@contextmanager
def telling() -> Iterator[None]:
    """Turn what a hub refuses into words on stderr and an exit code: 3 against the rules or taken, 4 not allowed."""
    from gpuherd.client import HubRefused

    try:
        yield
    except HubRefused as error:
        sys.exit(tell(error))
    except Refused as error:
        say(f"gpuherd: {error}")
        sys.exit(REFUSED)


def tell(error: HubRefused, about: str = "") -> int:
    """Say on stderr what the hub refuses, and give the exit code for it; ``about`` goes before it."""
    for line in _words(error, about):
        say(line)
    from gpuherd.client.errors import NOT_A_HUB

    return 1 if error.detail.code == NOT_A_HUB else _EXIT_CODES.get(error.status, 1)


def own_zone(zone: str | None) -> str | None:
    """Give the zone that is named, or this machine's; a machine whose zone has no name is told what is done then."""
    from gpuherd.client.zone import machine_zone, zone_hint

    if zone is None and (hint := zone_hint()) is not None:
        say(f"gpuherd: {hint}")
    return zone or machine_zone()


def _words(error: HubRefused, about: str) -> list[str]:
    detail = error.detail
    lines = [f"gpuherd: {about}{detail.message}"]
    if error.status == 401 and detail.code != "login_failed":  # who was just asked for a password knows
        is_asked_anyway = error.hub is None or error.hub == asked_hub(os.environ.get("GPUHERD_HUB")).rstrip(
            "/"
        )
        lines.append(f"  log in with: gpuherd login{'' if is_asked_anyway else f' --hub {error.hub}'}")
    for conflict in detail.conflicts:
        place, holder = clean(conflict.device.place, 60), clean(conflict.holder, 60)
        when = span(conflict.starts_at, conflict.ends_at)
        lines.append(f"  {place} is {holder}'s {when} (booking {conflict.booking_id})")
    lines += [f"  write {clean(choice.text, 60)}" for choice in detail.choices]
    if detail.next_free is not None:
        lines.append(f"  all of them are free for that long from {moment(detail.next_free)}")
    return lines


def moment(at: int) -> str:
    """Show a time by the clock on this machine's wall."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime("%a %Y-%m-%d %H:%M %Z")
    except (OverflowError, ValueError, OSError):
        return "never"


def span(starts_at: int, ends_at: int) -> str:
    """Show from when to when, without saying the same day twice."""
    first, last = moment(starts_at), moment(ends_at)
    if first[:14] == last[:14]:
        return f"{first[:20]}–{last[15:]}"
    return f"{first[:20]} – {last}"


def table(
    rows: Sequence[Sequence[str]],
    header: Sequence[str],
    screen: Screen = Screen(),  # noqa: B008 - a tuple
    *,
    numbers: Collection[int] = (),
    drop: Sequence[int] = (),
) -> str:
    """Lay rows out in columns, those of ``numbers`` to the right; nothing in them can act on the terminal.

    What the screen has no room for is left out as ``Screen.lay_out`` does it; without a width nothing is.
    """
    cells = [
        [
            Cell(clean(text, len(text) + 1), None if line else "dim", is_right=column in numbers)
            for column, text in enumerate(row)
        ]
        for line, row in enumerate((header, *rows))
    ]
    return "\n".join(screen.lay_out(cells, drop=drop))
