"""``gpuherd hub``: run the hub, keep join tokens, list and remove nodes, accept host keys."""

from __future__ import annotations

import contextlib
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.account import account, setup_link
from gpuherd.cli.as_owner import become_owner, check_used
from gpuherd.cli.backup import backup, restore
from gpuherd.cli.comments import export_comments, import_comments

if TYPE_CHECKING:
    from gpuherd.auth.enrolment import Enrolment
    from gpuherd.wiring.config import Config

__all__ = ["command"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _minute(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _duration(text: str) -> float:
    """Read seconds, written as 90s, 30m, 1h or 7d."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text!r} is no duration; write for example 30m, 1h or 7d")
    return float(int(match[1]) * _UNITS[match[2]])


@click.group()
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Configuration file.")
@click.option("--state-dir", type=click.Path(path_type=Path), help="Folder for what the hub keeps.")
@click.pass_context
def command(context: click.Context, config_file: Path | None, state_dir: Path | None) -> None:
    """Run and administer the hub that everyone looks at."""
    context.obj = (config_file, state_dir)


def _load(context: click.Context, **hub: object) -> Config:
    from gpuherd.wiring.config import load

    config_file, state_dir = context.obj
    return load(config_file, {"hub": {"state_dir": None if state_dir is None else str(state_dir), **hub}})


def _load_as_owner(context: click.Context) -> Config:
    """Load the configuration, and be whom the hub's folder belongs to from then on."""
    config = _load(context)
    become_owner(config.hub.state_dir)
    return config


def _enrolment(context: click.Context, *, is_look: bool = False) -> Enrolment:
    from gpuherd.api.enrolling import open_enrolment

    settings = _load_as_owner(context).hub
    check_used(settings, is_look=is_look)
    return open_enrolment(settings)


@command.command()
@click.option("--listen", metavar="ADDRESS:PORT", help="Where to listen; the default is 127.0.0.1:8470.")
@click.option("--base-path", help="Path under which the hub is reached, such as /gpus/.")
@click.option(
    "--public", type=click.Choice(["off", "counts", "read"]), help="What is shown to those without a login."
)
@click.pass_context
def run(context: click.Context, listen: str | None, base_path: str | None, public: str | None) -> None:
    """Run the hub in the foreground until it is told to stop."""
    import asyncio

    config = _load(context, listen=listen, base_path=base_path, public=public)
    asyncio.run(_run(config))


async def _run(config: Config) -> None:
    from gpuherd.wiring.hub_pulse import hub_pulse
    from gpuherd.wiring.outfit import configured_hub
    from gpuherd.wiring.systemd import Systemd, told, told_of_start
    from gpuherd.wiring.up import stop_signals, tell_setup_link

    stop = stop_signals()
    systemd = Systemd.of(os.environ)
    with config.source.locating():
        async with contextlib.AsyncExitStack() as running:
            with told_of_start(systemd):
                hub = await running.enter_async_context(configured_hub(config))
            click.echo(f"gpuherd hub: {hub.url}")
            if (
                not systemd.is_there
            ):  # what a service prints is kept in the journal: no place for a link that logs in
                await tell_setup_link(hub, click.echo)
            async with told(systemd, lambda: hub_pulse(hub)):
                await hub.run_until(stop)


command.add_command(account)
command.add_command(import_comments)
command.add_command(export_comments)
command.add_command(setup_link)
command.add_command(backup)
command.add_command(restore)


@command.group()
def token() -> None:
    """Make, list and revoke join tokens."""


@token.command("create")
@click.option(
    "--uses", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Nodes it admits."
)
@click.option(
    "--expires", type=_duration, metavar="TIME", default="1h", show_default=True, help="How long it is valid."
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, with its uses and when it ends.")
@click.pass_context
def create_token(context: click.Context, uses: int, expires: float, as_json: bool) -> None:
    """Print a new join token. It is shown this once; the hub keeps only its digest."""
    import json
    import time

    now = time.time()
    with contextlib.closing(_enrolment(context)) as enrolment:
        made = enrolment.create_token(now=now, lifetime_seconds=expires, uses=uses)
    click.echo(json.dumps({"token": made, "uses": uses, "expires_at": now + expires}) if as_json else made)


@token.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
@click.pass_context
def list_tokens(context: click.Context, as_json: bool) -> None:
    """List the join tokens that still admit nodes. The tokens themselves are not kept."""
    import json
    import time

    import msgspec

    with contextlib.closing(_enrolment(context, is_look=True)) as enrolment:
        found = enrolment.tokens(now=time.time())
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    for each in found:
        nodes = "1 node" if each.uses_left == 1 else f"{each.uses_left} nodes"
        click.echo(
            f"{each.id}\tfor {nodes}\tmade {_minute(each.created_at)}\tuntil {_minute(each.expires_at)}"
        )


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@click.pass_context
def revoke_token(context: click.Context, token_id: str) -> None:
    """Let a join token admit nobody any more; ID is as in the list. Nodes that have joined with it stay."""
    import time

    with contextlib.closing(_enrolment(context)) as enrolment:
        enrolment.revoke_token(token_id, now=time.time())
    click.echo(f"revoked {token_id}")


@command.group()
def node() -> None:
    """List and remove nodes."""


@node.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
@click.pass_context
def list_nodes(context: click.Context, as_json: bool) -> None:
    """List the nodes: enrolled, listed in the configuration, or come by themselves."""
    import json

    from gpuherd.api.enrolling import open_enrolment
    from gpuherd.api.known_nodes import FILE_NAME, load_known
    from gpuherd.auth.enrolment import node_id_for
    from gpuherd.model.errors import Refused

    config = _load_as_owner(context)
    check_used(config.hub, is_look=True)
    found: list[dict[str, str]] = []
    with contextlib.closing(open_enrolment(config.hub)) as enrolment:
        for record in enrolment.nodes():
            origin = f"enrolled {_minute(record.enrolled_at)}"
            found.append({"id": record.id, "name": record.name, "origin": origin})
    known = load_known(config.hub.state_dir / FILE_NAME)
    for name, targets in known.groups.items():
        for target in targets:
            with contextlib.suppress(Refused):  # a name that makes no id is left out by the hub, too
                node_id = node_id_for(target.name)
                found.append({"id": node_id, "name": target.name, "origin": f"listed in {name}"})
    for arrival in known.arrivals:
        origin = f"came by itself ({arrival.way})"
        found.append({"id": node_id_for(arrival.name), "name": arrival.name, "origin": origin})
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        click.echo("\t".join(each.values()))


@node.command("remove")
@click.argument("node_id")
@click.pass_context
def remove_node(context: click.Context, node_id: str) -> None:
    """Forget an enrolled node; its credential is void, and a running hub closes its link within seconds.

    A listed node goes when it is taken off its list; one that came by itself after a week of silence.
    """
    with contextlib.closing(_enrolment(context)) as enrolment:
        enrolment.remove(node_id)
    click.echo(f"removed {node_id}")


@node.command("secret")
@click.argument("name")
@click.pass_context
def show_secret(context: click.Context, name: str) -> None:
    """Print the secret of a listening node, for its agent.listen_secret_file. NAME is as in the list of nodes."""
    from gpuherd.auth.enrolment import node_id_for
    from gpuherd.auth.node_secrets import load_or_create_master, node_secret
    from gpuherd.wiring.pull_secrets import master_file

    config = _load_as_owner(context)
    node_id = node_id_for(name)
    click.echo(node_secret(load_or_create_master(master_file(config)), node_id))


@command.command("accept-key")
@click.argument("host")
@click.option("--replace", is_flag=True, help="Forget the key that was accepted before.")
@click.option("--yes", is_flag=True, help="Do not ask; only where nobody can stand in between.")
@click.pass_context
def accept_key(context: click.Context, host: str, replace: bool, yes: bool) -> None:
    """Show the SSH host key of HOST and remember it once you have compared it."""
    import asyncio

    from gpuherd.sources.ssh.offer import accept_host_key, fetch_host_key
    from gpuherd.wiring.lookup import ssh_target
    from gpuherd.wiring.ways.surroundings import ACCEPTED_KEYS, located

    config = _load_as_owner(context)
    file = config.hub.state_dir / ACCEPTED_KEYS

    async def fetch() -> tuple[Any, bool]:
        target, settings = await ssh_target(config, host)
        return await fetch_host_key(target, located(settings, config.folder), accepted_keys_file=file)

    offered, is_known = asyncio.run(fetch())
    click.echo(f"{offered.host} port {offered.port} shows {offered.key.split()[0]} {offered.fingerprint}")
    if is_known:
        click.echo("this key is known already")
        return
    click.echo("Compare it with the machine's own: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
    if not yes:
        click.confirm("Is it the same?", abort=True)
    accept_host_key(file, offered, replace=replace)
    click.echo(f"accepted; kept in {file}")


@command.command("node-script")
def node_script() -> None:
    """Print the script that runs on nodes reached over SSH, to install it for a key with a forced command."""
    from gpuherd.collect.remote import node_script as script

    click.echo(script(), nl=False)
