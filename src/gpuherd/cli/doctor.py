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
    "--state-dir", type=click.Path(path_type=Path), help="Folder of the hub, or of this machine's agent."
)
@click.option("--hub", "hub_url", metavar="URL", help="The hub that this machine's agent reports to.")
@click.option("--json", "as_json", is_flag=True, help="Print the steps as JSON.")
def command(
    host: str | None, config_file: Path | None, state_dir: Path | None, hub_url: str | None, as_json: bool
) -> None:
    """Find out what is wrong, and how to mend it.

    With HOST, a node by its name, id or address: walks the whole way that its reports take and stops at the first
    broken step. Without: the configuration, the hub, every list and node, this machine's GPUs and its agent.

    Ends with 0 if all is well, with 1 if something is wrong.
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
