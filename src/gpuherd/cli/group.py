"""All commands as one group that lists them without importing them: an agent stays thin, and help comes at once."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from gpuherd import __version__
from gpuherd.cli import _COMMANDS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["SECTIONS", "group"]

SECTIONS = {
    "Look": ("status", "free", "users", "node", "gpu", "top", "usage", "export"),
    "Book": ("book", "bookings", "release", "login"),
    "Use": ("pick", "wait", "run"),
    "Serve": ("up", "hub", "agent", "demo"),
    "Administer": (
        *("install", "doctor", "config", "import", "token", "user", "backup", "restore", "completion"),
    ),
}
"""The commands as ``gpuherd --help`` shows them."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        listed = [name for names in SECTIONS.values() for name in names if name in _COMMANDS]
        return [*listed, *(name for name in _COMMANDS if name not in listed)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, suggest the nearest."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], _COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(_COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _COMMANDS[name][1]) for name in names if name in _COMMANDS])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands out of the list; click itself would import every one of them."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpuherd")
def group() -> None:
    """See, share and book the GPUs of all your machines.

    Start with 'gpuherd demo', or with 'gpuherd up' on a machine with GPUs. Each command has its own --help.
    """
