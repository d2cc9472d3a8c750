"""``gpuherd doctor``: find out what is wrong."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.argument("host", required=False)
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Configuration file.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path), help="State folder of the hub or of this machine's agent."
)
@click.option("--hub", "hub_url", metavar="URL", help="Hub that this machine's agent reports to.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def command(
    host: str | None, config_file: Path | None, state_dir: Path | None, hub_url: str | None, as_json: bool
) -> None:
    """Find out what is wrong and how to fix it.

    With HOST (a node's name, ID or address), checks each step from that node to the hub and stops at the first one that
    fails. Without HOST, checks the configuration, the hub, all node lists and nodes, and this machine's GPUs and agent.

    Exit status: 0 no problem found, 1 problem found.
    """
    import asyncio
    import logging

    import msgspec

    from gpuherd.wiring.doctor.examine import examine
    from gpuherd.wiring.doctor.steps import Journal, Step, is_well
    from gpuherd.wiring.doctor.wording import closing, line

    # What parts log is for a hub that runs for months; here all of it is told as steps.
    logging.getLogger().addHandler(logging.NullHandler())
    is_coloured = not as_json and sys.stdout.isatty()
    is_ascii = "utf" not in (sys.stdout.encoding or "").lower()
    if is_ascii and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")

    def tell(step: Step) -> None:
        if not as_json:
            click.echo(line(step, is_coloured=is_coloured, is_ascii=is_ascii))

    journal = Journal(tell)
    asyncio.run(examine(host, journal, config_file=config_file, state_dir=state_dir, hub_url=hub_url))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(journal.steps)).decode())
    else:
        click.echo("")
        for sentence in closing(journal.steps, host):
            click.echo(sentence)
    sys.exit(0 if is_well(journal.steps) else 1)
