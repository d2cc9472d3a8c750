"""Options of a group that stand before one of its commands, where they would do nothing."""

from __future__ import annotations

import click

__all__ = ["refuse_misplaced"]


def refuse_misplaced(context: click.Context, *, allowed: tuple[str, ...] = ("hub_url", "token_file")) -> None:
    """Refuse a command line whose options stand before the command; those may that say which hub is asked, and as whom.

    They would be dropped in silence: a command has options of its own.
    """
    group, name = context.command, context.invoked_subcommand
    if not isinstance(group, click.Group) or name is None:
        return
    given = click.core.ParameterSource.COMMANDLINE
    early = [
        option.opts[0]
        for option in group.params
        if option.name not in allowed and context.get_parameter_source(option.name) is given
    ]
    if not early:
        return
    own = {word for option in group.commands[name].params for word in option.opts}
    foreign = [word for word in early if word not in own]
    if foreign:
        raise click.UsageError(
            f"{context.command_path} {name} has no {' and no '.join(foreign)}: only {context.command_path} itself has"
        )
    raise click.UsageError(
        f"write {' and '.join(early)} after {name}: {context.command_path} {name} {early[0]} …"
    )
