"""docs/reference/cli.md: every command, argument and option, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scripts.command_tree import ENVIRONMENT, EXIT_CODES, FILES, Command, commands

__all__ = ["cli_page"]

INTRODUCTION = """\
# Command line: every command and option

This page lists every command and option. For examples by task, see [In the terminal](../cli.md).
`gpuherd COMMAND --help` and the manual pages (`man gpuherd`, `man gpuherd-book`) show the same texts.

"""
RUN_EXIT = """\
`gpuherd run` returns the exit code of the command that it runs, or 128 + n if signal n ended that command. It returns
125 if gpuherd failed before it started the command, 126 if the command cannot be run, and 127 if it was not found."""


def cli_page() -> str:
    """Put the page together."""
    every = list(commands())
    parts = [INTRODUCTION.rstrip(), _overview(every)]
    parts += [_section(command) for command in every if command.path]
    parts += [
        "## Exit codes\n\n" + _table(("code", "meaning"), EXIT_CODES),
        RUN_EXIT,
        "## Environment\n\n" + _table(("variable", "meaning"), _as_code(ENVIRONMENT)),
        "## Files\n\n" + _table(("file", "meaning"), _as_code(FILES)),
        "`make generate` writes this page from the commands.",
    ]
    return "\n\n".join(parts) + "\n"


def _overview(every: list[Command]) -> str:
    rows = [
        (f"[`{command.name}`](#{_anchor(command)})", _prose(command.summary))
        for command in every
        if len(command.path) == 1
    ]
    return _table(("command", "what it does"), rows)


def _section(command: Command) -> str:
    parts = [f"{'#' * min(len(command.path) + 1, 4)} {command.name}"]
    parts += [
        f"```\n{paragraph.text}\n```" if paragraph.is_verbatim else _prose(paragraph.text)
        for paragraph in command.paragraphs
    ]
    parts.append(f"```\n{command.usage}\n```")
    rows = [(f"`{option.names}`", _prose(option.meaning)) for option in command.options]
    parts.append(_table(("option", "meaning"), rows))
    return "\n\n".join(parts)


def _anchor(command: Command) -> str:
    return re.sub(r"[^a-z0-9-]", "", command.name.lower().replace(" ", "-"))


def _as_code(rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(f"`{name}`", meaning) for name, meaning in rows]


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    lines += [
        f"| {left.replace('|', chr(92) + '|')} | {right.replace('|', chr(92) + '|')} |"
        for left, right in rows
    ]
    return "\n".join(lines)


def _prose(text: str) -> str:
    """Keep what means something in Markdown from meaning it."""
    return re.sub(r"([*<\[\]])", r"\\\1", text)
