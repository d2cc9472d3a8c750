"""``gpuherd agent``: report this machine to a hub, or print what would be reported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.log import log_options, start_log

if TYPE_CHECKING:
    from gpuherd.agent.settings import AgentSettings
    from gpuherd.agent.spec import ProbeSpec

__all__ = ["command"]


@click.command()
@click.option("--hub", "hub_url", metavar="URL", help="Hub to report to, e.g. https://gpus.example.org.")
@click.option(
    "--listen",
    metavar="ADDRESS[:PORT]",
    help="Let the hub connect to this node instead (pull), e.g. 0.0.0.0:8472.",
)
@click.option(
    "--listen-secret-file",
    metavar="FILE",
    help="With --listen: file with the secret that 'gpuherd node secret' prints.",
)
@click.option(
    "--join-token-file",
    metavar="FILE",
    help="File with a join token (- for standard input). Needed once, to enrol.",
)
@click.option(
    "--name",
    "node_name",
    metavar="NAME",
    help="Node name to enrol with. Default: the host name.",
)
@click.option("--state-dir", metavar="FOLDER", help="State folder of the agent: its credential and spool.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Configuration file.")
@click.option("--once", is_flag=True, help="Print one report and exit. Needs no hub.")
@click.option(
    "--print", "stream", is_flag=True, help="Print one report per interval, one per line. Needs no hub."
)
@click.option("--json", "as_json", is_flag=True, help="With --once or --print: print JSON (the only format).")
@click.option("--interval", "interval_seconds", type=float, help="Seconds between two samples.")
@click.option(
    "--collector",
    "collectors",
    multiple=True,
    metavar="NAME",
    help="Collector to read GPUs with: nvml, nvidia_smi, … Repeat for several; the first that works is used.",
)
@log_options
def command(
    config_file: Path | None,
    once: bool,
    stream: bool,
    as_json: bool,
    collectors: tuple[str, ...],
    log_format: str,
    log_level: str,
    **given: Any,
) -> None:
    """Report this machine's GPUs to a hub.

    The agent connects to the hub (--hub), or the hub connects to the agent (--listen).
    """
    import asyncio

    import msgspec

    from gpuherd.wiring.catalog import probe_spec
    from gpuherd.wiring.config import load

    if once and stream:
        raise click.UsageError("use either --once or --print")
    if as_json and not (once or stream):
        raise click.UsageError("--json needs --once or --print")
    start_log(log_format, log_level)
    if given["join_token_file"] is None:
        given["join_token_file"] = _systemd_credential("gpuherd-join-token")
    config = load(config_file, {"agent": {**given, "collectors": list(collectors) or None}})
    settings = config.agent
    if settings.listen is not None:
        secret_file = _handed_over(settings.listen_secret_file, "listen-secret")
        settings = msgspec.structs.replace(settings, listen_secret_file=secret_file)
    if settings.node_info_listen is not None:
        password_file = _handed_over(settings.node_info_password_file, "node-password")
        settings = msgspec.structs.replace(settings, node_info_password_file=password_file)
    with config.source.locating():
        spec = probe_spec(settings)
        if once or stream:
            asyncio.run(_print_reports(settings, spec, once=once))
        else:
            asyncio.run(_report(settings, spec))


def _systemd_credential(name: str) -> str | None:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    file = Path(folder) / name if folder else None
    # A blank one is the unit's default, which stands for none.
    return str(file) if file is not None and file.is_file() and file.read_bytes().strip() else None


def _handed_over(file: str | None, name: str) -> str | None:
    """Give the file with a secret: of one in /etc/gpuherd, which is root's, what systemd hands over to the service."""
    if file is None or Path(file) == Path("/etc/gpuherd", name):
        return _systemd_credential(f"gpuherd-{name}") or file
    return file


def _state_dir(settings: AgentSettings) -> Path:
    from gpuherd.wiring.config import default_state_dir

    if settings.state_dir is not None:
        return Path(settings.state_dir).expanduser()
    systemd = os.environ.get("STATE_DIRECTORY")
    return Path(systemd.partition(":")[0]) if systemd else default_state_dir() / "agent"


async def _report(settings: AgentSettings, spec: ProbeSpec) -> None:
    import asyncio
    import signal

    from gpuherd.agent.loop import Agent
    from gpuherd.wiring.agent_pulse import AgentPulse
    from gpuherd.wiring.systemd import Systemd, told

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    agent = Agent(settings, spec, state_dir=_state_dir(settings))
    async with told(Systemd.of(os.environ), AgentPulse(agent, settings)):
        await agent.run(stop)


async def _print_reports(settings: AgentSettings, spec: ProbeSpec, *, once: bool) -> None:
    import asyncio
    import signal
    import sys

    import msgspec

    from gpuherd.agent.printing import ONCE_INTERVAL_SECONDS, reports
    from gpuherd.agent.watch import ProbeWatch

    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    watch = ProbeWatch(spec, deadline_seconds=settings.collect_deadline_seconds)
    interval_seconds = ONCE_INTERVAL_SECONDS if once else settings.interval_seconds
    count = 0
    try:
        async for report in reports(watch, interval_seconds):
            count += 1
            if once and count == 1:
                continue  # rates, such as CPU use, need two looks
            sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
            sys.stdout.buffer.flush()
            if once:
                return
    except BrokenPipeError:
        # The reader has gone; without this Python complains once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except asyncio.CancelledError:
        return
    finally:
        await watch.stop()
