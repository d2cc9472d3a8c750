"""The whole tree of commands, as click knows it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import click

from gpuherd.cli import _COMMANDS

__all__ = ["Leaf", "leaves"]

Leaf = tuple[tuple[str, ...], tuple[click.Command, ...]]
"""The words of a command, and the groups that lead to it with the command itself at the end."""


def leaves() -> Iterator[Leaf]:
    """Give every command that does something."""
    for name, (module, _) in _COMMANDS.items():
        yield from _below((name,), (importlib.import_module(module).command,))


def _below(words: tuple[str, ...], chain: tuple[click.Command, ...]) -> Iterator[Leaf]:
    command = chain[-1]
    if not isinstance(command, click.Group):
        yield words, chain
        return
    if command.invoke_without_command:
        yield words, chain
    context = click.Context(command, info_name=words[-1])
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None, (words, name)
        yield from _below((*words, name), (*chain, found))
