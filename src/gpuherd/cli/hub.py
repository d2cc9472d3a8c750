"""``gpuherd hub``: run the hub, keep join tokens, list and remove nodes, accept host keys."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.account import account, setup_link
from gpuherd.cli.as_owner import become_owner, check_used, is_used
from gpuherd.cli.backup import backup, restore, start_afresh
from gpuherd.cli.comments import export_comments, import_comments
from gpuherd.cli.lists import print_list
from gpuherd.cli.log import log_options, start_log
from gpuherd.model.people import COMMAND_LINE

if TYPE_CHECKING:
    from gpuherd.api.settings import HubSettings
    from gpuherd.auth.enrolment import Enrolment
    from gpuherd.wiring.config import Config

__all__ = ["command"]

log = logging.getLogger(__name__)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _minute(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _duration(text: str) -> float:
    """Read seconds, written as 90s, 30m, 1h or 7d."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text!r} is not a duration; write for example 30m, 1h or 7d")
    return float(int(match[1]) * _UNITS[match[2]])


@click.group()
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Configuration file.")
@click.option("--state-dir", type=click.Path(path_type=Path), help="State folder of the hub.")
@click.pass_context
def command(context: click.Context, config_file: Path | None, state_dir: Path | None) -> None:
    """Run and manage the hub.

    Start it with 'gpuherd hub run'. Five of these commands have a shorter form: gpuherd user, token, node, backup and
    restore.
    """
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


def _enrolment(context: click.Context) -> Enrolment:
    from gpuherd.api.enrolling import open_enrolment

    settings = _load_as_owner(context).hub
    check_used(settings)
    return open_enrolment(settings)


def _log(settings: HubSettings, action: str, subject: str, detail: str) -> None:
    """Record in the audit log what leaves no other trace in the records."""
    import time

    from gpuherd.api.open_records import open_hub_records
    from gpuherd.records.audit import Deed

    with contextlib.closing(open_hub_records(settings)) as records:
        records.audit.append([Deed(action, subject, detail, COMMAND_LINE, time.time())])


@command.command()
@click.pass_context
def init(context: click.Context) -> None:
    """Create the hub's state folder before its first start.

    Then you can create accounts and tokens before the hub runs. Not needed if you start the hub first. An existing
    state folder is not changed.
    """
    from gpuherd.api.open_records import open_hub_records
    from gpuherd.api.state_dir import make_state_dir
    from gpuherd.auth.local_key import make_local_key

    settings = _load_as_owner(context).hub
    if is_used(settings):
        click.echo(f"{settings.state_dir} is already set up")
        return
    make_state_dir(settings.state_dir)
    open_hub_records(settings).close()
    make_local_key(settings.state_dir)
    click.echo(f"prepared {settings.state_dir}")


@command.command()
@click.option(
    "--listen", metavar="ADDRESS:PORT", help="Address and port to listen on. Default: 127.0.0.1:8470."
)
@click.option("--base-path", help="Path prefix of the hub, e.g. /gpus/.")
@click.option(
    "--public", type=click.Choice(["off", "counts", "read"]), help="What viewers without a login can see."
)
@log_options
@click.pass_context
def run(
    context: click.Context,
    listen: str | None,
    base_path: str | None,
    public: str | None,
    log_format: str,
    log_level: str,
) -> None:
    """Run the hub in the foreground."""
    import asyncio

    start_log(log_format, log_level)
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
            log.info("configuration: %s", config.source.name)
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
command.add_command(start_afresh)


@command.group()
def token() -> None:
    """Create, list and revoke join tokens.

    New nodes use a join token to enrol. Run this on the hub's machine.
    """


@token.command("create")
@click.option(
    "--uses",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    help="How many nodes can enrol with it.",
)
@click.option(
    "--expires",
    type=_duration,
    metavar="TIME",
    default="1h",
    show_default=True,
    help="How long the token is valid.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the token, its uses and its expiry as JSON.")
@click.pass_context
def create_token(context: click.Context, uses: int, expires: float, as_json: bool) -> None:
    """Create a join token and print it.

    It is shown only once: the hub stores only a hash of it.
    """
    import json
    import time

    now = time.time()
    with contextlib.closing(_enrolment(context)) as enrolment:
        made = enrolment.create_token(now=now, lifetime_seconds=expires, uses=uses, by=COMMAND_LINE)
    click.echo(json.dumps({"token": made, "uses": uses, "expires_at": now + expires}) if as_json else made)


@token.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_tokens(context: click.Context, as_json: bool) -> None:
    """List the valid join tokens.

    The tokens themselves are not shown: the hub does not store them.
    """
    import json
    import time

    import msgspec

    with contextlib.closing(_enrolment(context)) as enrolment:
        found = enrolment.tokens(now=time.time())
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    rows = []
    for each in found:
        nodes = "1 node" if each.uses_left == 1 else f"{each.uses_left} nodes"
        made, until = _minute(each.created_at), _minute(each.expires_at)
        rows.append((each.id, f"for {nodes}", f"made {made}", f"until {until}"))
    print_list(("id", "nodes", "created", "expires"), rows)


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@click.pass_context
def revoke_token(context: click.Context, token_id: str) -> None:
    """Revoke the join token ID.

    'gpuherd token list' shows the IDs. Nodes that have enrolled with the token are not affected.
    """
    import time

    with contextlib.closing(_enrolment(context)) as enrolment:
        enrolment.revoke_token(token_id, now=time.time(), by=COMMAND_LINE)
    click.echo(f"revoked {token_id}")


@command.group()
def node() -> None:
    """List and remove nodes."""


@node.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_nodes(context: click.Context, as_json: bool) -> None:
    """List all nodes: enrolled, configured, or unlisted senders."""
    import json

    from gpuherd.api.enrolling import open_enrolment
    from gpuherd.api.known_nodes import FILE_NAME, load_known
    from gpuherd.auth.enrolment import node_id_for
    from gpuherd.model.errors import Refused

    config = _load_as_owner(context)
    check_used(config.hub)
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
        origin = f"unlisted sender ({arrival.way})"
        found.append({"id": node_id_for(arrival.name), "name": arrival.name, "origin": origin})
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    print_list(("id", "name", "origin"), [tuple(each.values()) for each in found])


@node.command("remove")
@click.argument("node_id")
@click.pass_context
def remove_node(context: click.Context, node_id: str) -> None:
    """Remove an enrolled node and revoke its credential.

    A running hub closes the node's connection within seconds. To remove a node that comes from a list, delete it from
    the list. An unlisted sender disappears after a week without a report.
    """
    import time

    with contextlib.closing(_enrolment(context)) as enrolment:
        enrolment.remove(node_id, now=time.time(), by=COMMAND_LINE)
    click.echo(f"removed {node_id}")


@node.command("secret")
@click.argument("name")
@click.pass_context
def show_secret(context: click.Context, name: str) -> None:
    """Print the secret of the listening node NAME.

    Put it into the file that agent.listen_secret_file names on that node. 'gpuherd node list' shows the names.
    """
    from gpuherd.auth.enrolment import node_id_for
    from gpuherd.auth.node_secrets import load_or_create_master, node_secret
    from gpuherd.wiring.pull_secrets import master_file

    config = _load_as_owner(context)
    check_used(config.hub)
    node_id = node_id_for(name)
    _log(config.hub, "node.secret", node_id, "shown")
    click.echo(node_secret(load_or_create_master(master_file(config)), node_id))


@command.command("accept-key")
@click.argument("host", required=False)
@click.option("--all", "every", is_flag=True, help="All configured hosts that are reached over SSH.")
@click.option("--replace", is_flag=True, help="Remove the key that was accepted before.")
@click.option("--yes", is_flag=True, help="Do not ask. Use this only on a network you trust.")
@click.pass_context
def accept_key(context: click.Context, host: str | None, every: bool, replace: bool, yes: bool) -> None:
    """Show the SSH host key of HOST and accept it.

    Compare the key before you confirm. With --all, shows the keys of all hosts and asks once. --all never accepts a key
    that has changed: find out why it changed, then accept it with HOST.
    """
    import asyncio

    from gpuherd.sources.ssh.offer import accept_host_key, fetch_host_key, fetch_host_keys
    from gpuherd.wiring.lookup import ssh_target, ssh_targets
    from gpuherd.wiring.ways.surroundings import ACCEPTED_KEYS, located

    if (host is None) != every or (every and replace):
        raise click.UsageError("give one HOST, or --all without --replace")
    config = _load_as_owner(context)
    file = config.hub.state_dir / ACCEPTED_KEYS

    async def fetch() -> list[Any]:
        if host is not None:
            target, settings = await ssh_target(config, host)
            return [await fetch_host_key(target, located(settings, config.folder), accepted_keys_file=file)]
        targets = await ssh_targets(config)
        return await fetch_host_keys(
            [(target, located(settings, config.folder)) for target, settings in targets],
            accepted_keys_file=file,
        )

    shown = asyncio.run(fetch())
    fresh = []
    for one in shown:
        if isinstance(one, Exception):
            click.echo(f"left out: {one}")
            continue
        offered = one.offered
        is_left_out = every and one.is_doubtful
        remark = ", known already" if one.is_known else ""
        remark = f", KEY HAS CHANGED: skipped; run `gpuherd doctor {one.name}`" if is_left_out else remark
        click.echo(
            f"{offered.host} port {offered.port} shows {offered.key.split()[0]} {offered.fingerprint}{remark}"
        )
        if not one.is_known and not is_left_out:
            fresh.append(offered)
    if fresh:
        click.echo("Compare with the machine's own: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
        if not yes:
            click.confirm("Is it the same?" if len(fresh) == 1 else "Are they all the same?", abort=True)
    for offered in fresh:
        if is_used(config.hub):  # else it is for `gpuherd export`, which needs no hub
            _log(config.hub, "node.host_key", offered.host, f"port {offered.port}, {offered.fingerprint}")
        accept_host_key(file, offered, replace=replace)
    if fresh:
        click.echo(f"accepted; saved in {file}")
    if every and any(isinstance(one, Exception) or one.is_doubtful for one in shown):
        context.exit(1)


@command.command("node-script")
def node_script() -> None:
    """Print the script that the hub runs on nodes over SSH.

    Install it on a node if the hub's key has a forced command there.
    """
    from gpuherd.collect.remote import node_script as script

    click.echo(script(), nl=False)
