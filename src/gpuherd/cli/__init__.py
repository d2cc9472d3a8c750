"""The ``gpuherd`` command: one module per command, imported only when it runs."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from gpuherd import __version__
from gpuherd.model.errors import GpuherdError

__all__ = ["main"]

_COMMANDS = {
    "up": ("gpuherd.cli.up", "Watch this machine: hub, page and agent in one go."),
    "demo": ("gpuherd.cli.demo", "Show a simulated herd; needs no GPU."),
    "hub": ("gpuherd.cli.hub", "Run and administer the hub that everyone looks at."),
    "agent": ("gpuherd.cli.agent", "Report this machine's GPUs to a hub."),
    "book": ("gpuherd.cli.book", "Book GPUs for yourself or your group."),
    "bookings": ("gpuherd.cli.bookings", "List, extend and cancel bookings."),
    "release": ("gpuherd.cli.release", "Give booked GPUs back early."),
    "usage": ("gpuherd.cli.usage", "Tell who used how much, and whom to ask for a GPU."),
    "login": ("gpuherd.cli.login", "Log in to a hub, to book from this machine."),
    "token": ("gpuherd.cli.token", "Make join tokens, on the hub's machine."),
    "user": ("gpuherd.cli.user", "List, create and change accounts, on the hub's machine."),
    "backup": ("gpuherd.cli.backup_", "Write all records to a file, on the hub's machine."),
    "restore": ("gpuherd.cli.restore", "Put records back out of a backup."),
    "import": ("gpuherd.cli.import_", "Take over the configuration of another tool."),
    "export": ("gpuherd.cli.export", "Write the herd as a page and tables, for any web server."),
    "config": ("gpuherd.cli.config", "Check the configuration or show what it can hold."),
    "doctor": ("gpuherd.cli.doctor", "Find out what is wrong, and how to mend it."),
}


class _LazyGroup(click.Group):
    """Lists commands without importing them, so that ``gpuherd --version`` stays fast and an agent thin."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(_COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(cls=_LazyGroup)
@click.version_option(__version__, prog_name="gpuherd")
def _group() -> None:
    """See, share and book every GPU you own."""


def main() -> None:
    """Run the command line; an expected error is one sentence on stderr and exit code 1."""
    try:
        _group(prog_name="gpuherd")
    except GpuherdError as error:
        click.echo(f"gpuherd: {error}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("gpuherd"):
            raise
        remedy = "install the hub's parts with: pip install 'gpuherd[hub]'"
        click.echo(f"gpuherd: this command needs the Python package {error.name}; {remedy}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
