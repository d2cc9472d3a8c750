"""``gpuherd install``: run hub or agent as a service of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gpuherd.wiring.installing.plan import Installation, Outcome

__all__ = ["command"]


def _common(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON."),
        click.option(
            "--check", "is_only_check", is_flag=True, help="Change nothing; show what would change."
        ),
        click.option(
            "--no-start",
            is_flag=True,
            help="Install everything, but start the service only at the next boot.",
        ),
        click.option(
            "--root",
            type=click.Path(path_type=Path, file_okay=False, exists=True),
            default=Path("/"),
            show_default=True,
            help="Write below this folder, to prepare a disk image; starts nothing.",
        ),
    ):
        function = option(function)
    return function


@click.group()
def command() -> None:
    """Install the hub or the agent as a systemd service.

    Writes a unit, and /etc/gpuherd/gpuherd.toml unless you have edited it. A second run changes nothing.
    """


@command.command()
@click.option(
    "--listen", metavar="ADDRESS:PORT", help="Address and port to listen on. Default: 127.0.0.1:8470."
)
@click.option("--base-path", help="Path prefix of the hub, e.g. /gpus/.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Initial configuration; copied to /etc/gpuherd/gpuherd.toml.",
)
@_common
def hub(listen: str | None, base_path: str | None, config_file: Path | None, **options: Any) -> None:
    """Install the hub and start it."""
    from gpuherd.wiring.config import load

    config_text = None if config_file is None else config_file.read_text(encoding="utf-8")
    installation = _installation(**options)
    # What others may not read stays so.
    is_secret = config_file is not None and not config_file.stat().st_mode & 0o004
    outcome = installation.hub(
        _given(listen=listen, base_path=base_path), config_text, is_config_secret=is_secret
    )
    _tell(outcome, **options)
    if not options["as_json"] and installation.is_here and not options["is_only_check"]:
        settings = load(installation.config_file).hub
        # Who has named the proxy already needs no hint.
        is_alone = settings.address.is_loopback and not settings.trusted_proxies
        others = "; other machines reach it through a proxy, see docs/deploy/proxies.md" if is_alone else ""
        click.echo(f"The page: {settings.url_at(settings.address)}{others}")


@command.command()
@click.option("--hub", "hub_url", metavar="URL", help="Hub to report to, e.g. https://gpus.example.org.")
@click.option(
    "--join-token-file",
    metavar="FILE",
    help="File with a join token (- for standard input). Needed until the node is enrolled.",
)
@click.option("--name", metavar="NAME", help="Node name to enrol with. Default: the host name.")
@_common
def agent(hub_url: str | None, join_token_file: str | None, name: str | None, **options: Any) -> None:
    """Install the agent and start it."""
    from gpuherd.agent.enrol import read_secret

    join_token = None if join_token_file is None else read_secret(join_token_file, "join token")
    installation = _installation(**options)
    _tell(installation.agent(_given(hub_url=hub_url, node_name=name), join_token), **options)


@command.command()
@click.argument("part", type=click.Choice(["hub", "agent"]))
@_common
def remove(part: Any, **options: Any) -> None:
    """Stop a service and remove its unit.

    Configuration and data stay.
    """
    _tell(_installation(**options).remove(part), **options)


def _given(**choices: str | None) -> dict[str, str]:
    return {key: value for key, value in choices.items() if value is not None}


def _installation(*, root: Path, no_start: bool, is_only_check: bool, as_json: bool) -> Installation:
    from gpuherd.model.errors import Misconfigured
    from gpuherd.wiring.installing.plan import Installation

    if root == Path("/") and os.geteuid() != 0:
        raise Misconfigured("only root can install services; run this with sudo")
    return Installation(root, is_only_check=is_only_check, may_start=not no_start)


def _tell(outcome: Outcome, *, is_only_check: bool, as_json: bool, **_: object) -> None:
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode(outcome).decode())
        return
    word = "would change" if is_only_check else "changed"
    for what in outcome.changed:
        click.echo(f"{word}: {what}")
    if not outcome.changed:
        click.echo("everything is up to date; nothing to change" if is_only_check else "nothing to change")
    if not is_only_check:
        for sentence in outcome.next:
            click.echo(f"Next: {sentence}")
