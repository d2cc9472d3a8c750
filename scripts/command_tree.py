"""The commands of gpuherd as data, for everything that is written from them: reference, man pages, tests."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

import click

from gpuherd.cli import _COMMANDS
from gpuherd.cli.group import group

__all__ = ["ENVIRONMENT", "EXIT_CODES", "FILES", "Command", "Option", "Paragraph", "commands"]

EXIT_CODES = (
    ("0", "done"),
    ("1", "cannot reach the hub, or any other error"),
    ("2", "wrong command line"),
    ("3", "taken, against the rules, not found, or nothing free"),
    ("4", "not logged in, or not allowed"),
    ("5", "timeout reached (gpuherd wait --timeout)"),
    ("130", "interrupted with Ctrl-C"),
    ("141", "the program that read the output has ended (broken pipe)"),
)
ENVIRONMENT = (
    ("GPUHERD_HUB", "Address of the hub, if --hub is not given."),
    ("GPUHERD_CA_FILE", "PEM file with the CA certificates to trust when connecting to a hub."),
    ("GPUHERD_LOG_FORMAT", "Format of the log of hub and agent: text or json."),
    ("GPUHERD_LOG_LEVEL", "Lowest level that hub and agent log: debug, info, warning or error."),
    ("NO_COLOR", "If set, turns colours off. Output to a file or pipe never has colours."),
    ("XDG_CONFIG_HOME", "Folder of gpuherd/gpuherd.toml and gpuherd/token. Default: ~/.config."),
    (
        "XDG_STATE_HOME",
        "Folder of the state of gpuherd up, if --state-dir is not given. Default: ~/.local/state.",
    ),
)
FILES = (
    ("~/.config/gpuherd/gpuherd.toml", "Your own configuration."),
    ("/etc/gpuherd/gpuherd.toml", "Configuration of the machine, used if you have none of your own."),
    ("~/.config/gpuherd/token", "API token from gpuherd login, readable only by you."),
)


@dataclass(frozen=True)
class Paragraph:
    """A piece of a help text."""

    text: str
    is_verbatim: bool
    """Lines stay as they are: examples."""


@dataclass(frozen=True)
class Option:
    """An option or an argument."""

    names: str
    """As one writes it, with what it takes: ``--for TIME``."""
    meaning: str
    variable: str | None
    """Environment variable that stands in for it."""


@dataclass(frozen=True)
class Command:
    """One command or sub-command."""

    path: tuple[str, ...]
    summary: str
    """First sentence, without its full stop."""
    paragraphs: tuple[Paragraph, ...]
    usage: str
    options: tuple[Option, ...]
    is_group: bool

    @property
    def name(self) -> str:
        """The command as it is typed."""
        return " ".join(("gpuherd", *self.path))


def commands() -> Iterator[Command]:
    """Give all commands, each before its sub-commands; deprecated and hidden ones are left out."""
    yield from _walk(group, click.Context(group, info_name="gpuherd"), ())


def _walk(command: click.Command, context: click.Context, path: tuple[str, ...]) -> Iterator[Command]:
    yield _described(command, context, path)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _walk(below, click.Context(below, info_name=name, parent=context), (*path, name))


def _described(command: click.Command, context: click.Context, path: tuple[str, ...]) -> Command:
    text = inspect.cleandoc(command.help or "").split("\f")[0].rstrip()
    paragraphs = tuple(_paragraph(part) for part in re.split(r"\n\s*\n", text) if part.strip())
    if not paragraphs:
        raise LookupError(f"gpuherd {' '.join(path)} has no help text")
    records = [
        (option, option.get_help_record(context))
        for option in command.get_params(context)
        if isinstance(option, click.Option)
    ]
    return Command(
        path=path,
        summary=_summary(path, paragraphs),
        paragraphs=paragraphs,
        usage=" ".join(("gpuherd", *path, *command.collect_usage_pieces(context))),
        options=tuple(
            Option(names=record[0], meaning=record[1].replace("  [", " ["), variable=_variable(option))
            for option, record in records
            if record is not None
        ),
        is_group=isinstance(command, click.Group),
    )


def _summary(path: tuple[str, ...], paragraphs: tuple[Paragraph, ...]) -> str:
    if len(path) == 1:
        return _COMMANDS[path[0]][1].rstrip(".")
    return re.split(r"(?<=[.:;])\s", paragraphs[0].text)[0].rstrip(".:;")


def _paragraph(text: str) -> Paragraph:
    first, _, rest = text.partition("\n")
    if first.strip() == "\b":
        return Paragraph(inspect.cleandoc(rest), is_verbatim=True)
    return Paragraph(" ".join(text.split()), is_verbatim=False)


def _variable(option: click.Option) -> str | None:
    variable = option.envvar
    return variable if isinstance(variable, str) else None
