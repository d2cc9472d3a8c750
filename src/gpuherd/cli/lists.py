"""Lists for people and scripts: aligned columns with heads on a terminal, tabs elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

__all__ = ["print_list"]


def print_list(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the rows, tab-separated unless a terminal shows them."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(row))
        return
    lines = [tuple(head.upper() for head in heads), *rows]
    widths = [max(len(line[column]) for line in lines if column < len(line)) for column in range(len(heads))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip())
