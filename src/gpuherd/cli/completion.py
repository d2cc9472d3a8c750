"""``gpuherd completion``: what makes a shell complete commands, options and names."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    It completes commands, options, and the names of nodes and users.

    \b
    bash   gpuherd completion bash > ~/.local/share/bash-completion/completions/gpuherd
    zsh    gpuherd completion zsh > ~/.zfunc/_gpuherd       (add ~/.zfunc to fpath before compinit)
    fish   gpuherd completion fish > ~/.config/fish/completions/gpuherd.fish
    """
    from click.shell_completion import get_completion_class

    from gpuherd.cli.group import group

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} cannot be served")
    click.echo(kind(group, {}, "gpuherd", "_GPUHERD_COMPLETE").source())
