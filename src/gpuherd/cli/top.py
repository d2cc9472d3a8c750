"""``gpuherd top``: the herd on a full terminal, live."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.asking import client, hub_options, telling
from gpuherd.model.errors import Misconfigured

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Herd
    from gpuherd.client.live import Feed

__all__ = ["command"]

HERE_SECONDS = 2.0
INSTEAD = "use gpuherd status instead"


@click.command()
@click.option("--here", is_flag=True, help="Watch only this machine; needs no hub.")
@click.option(
    "--theme",
    type=click.Choice(["auto", "dark", "light"]),
    default="auto",
    show_default=True,
    help="Colour theme; auto follows the terminal.",
)
@click.option(
    "--json", "as_json", is_flag=True, hidden=True, help="Not available here; use gpuherd status --json."
)
@hub_options
def command(here: bool, theme: str, as_json: bool, hub_url: str | None, token_file: Path | None) -> None:
    """Watch the herd live, full screen.

    Shows nodes, GPUs, processes, users and bookings. Press ? for the keys.

    Exit status: 0 done, 2 not a suitable terminal, 4 not logged in or not allowed, 1 any other error.
    """
    if as_json:
        raise click.UsageError("top has no JSON output; use gpuherd status --json")
    if here and (hub_url is not None or token_file is not None) and _is_named("hub_url", "token_file"):
        raise click.UsageError("--here uses no hub; leave out --hub and --token-file")
    _check_terminal()
    try:
        from gpuherd.tui import TopApp, looks_light
    except ModuleNotFoundError as error:
        if error.name not in ("textual", "rich"):
            raise
        raise Misconfigured(
            "top needs another package; install it with: pip install 'gpuherd[terminal]'"
        ) from None

    look = theme if theme != "auto" else "light" if looks_light(os.environ) else "dark"
    app = TopApp(_here() if here else _hub(hub_url, token_file), me=_me(), look=look)
    why = app.run()
    with telling():
        if why is not None:
            raise why
    sys.exit(app.return_code or 0)


def _is_named(*options: str) -> bool:
    from click.core import ParameterSource

    context = click.get_current_context()
    return any(context.get_parameter_source(option) is ParameterSource.COMMANDLINE for option in options)


def _check_terminal() -> None:
    """Leave with a sentence where a full screen cannot be drawn; it is drawn on stderr, as the toolkit has it."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise click.UsageError(f"top needs a terminal for its input and output; {INSTEAD}")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise click.UsageError(f"top needs a terminal other than TERM=dumb; {INSTEAD}")


def _hub(hub_url: str | None, token_file: Path | None) -> Feed:
    from gpuherd.client.live import HerdFeed

    return HerdFeed(client(hub_url, token_file))


def _here() -> Feed:
    from gpuherd.client.live import PictureFeed

    return PictureFeed("this machine", _looking_here, every_seconds=HERE_SECONDS)


@contextmanager
def _looking_here() -> Iterator[Callable[[], Herd]]:
    """Look at this machine with one probe that goes on, instead of one for each look."""
    import asyncio

    from gpuherd.wiring.here import Here

    with asyncio.Runner() as runner:
        here = Here.configured(interval_seconds=HERE_SECONDS)
        try:
            yield lambda: runner.run(here.look())
        finally:
            runner.run(here.__aexit__(None, None, None))


def _me() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # an account without a name, as in some containers
