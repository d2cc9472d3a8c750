"""What is said on stderr beside the work: a terminal that is gone or a log on a full disk must not end the work."""

from __future__ import annotations

import io
import sys
from typing import TextIO

import click

__all__ = ["missing_package", "say", "write"]


def say(words: str) -> None:
    """Say something on stderr, if that can be."""
    try:
        click.echo(words, err=True)
    except OSError:
        _forget_unsaid()


def write(text: str, stream: TextIO | None = None) -> None:
    """Write to a terminal or log as it is, if that can be; to stderr unless a stream is named."""
    used = sys.stderr if stream is None else stream
    if used is None:  # Python was started without
        return
    encoding = getattr(used, "encoding", None) or "utf-8"
    try:
        used.write(text.encode(encoding, "replace").decode(encoding))
        used.flush()
    except OSError:
        _forget_unsaid()


def _forget_unsaid() -> None:
    """Go on with a stderr that keeps nothing.

    What could not be written would be tried once more when Python ends, and turn any exit code into 120. The place
    stays the same: there may be room again later, and commands that are started have it as well.
    """
    stderr = sys.stderr
    try:
        raw = io.FileIO(stderr.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):
        return  # it is nothing that the system knows
    sys.stderr = io.TextIOWrapper(
        raw,  # without a buffer between
        encoding=stderr.encoding,
        errors="backslashreplace",
        write_through=True,
    )


def missing_package(error: ModuleNotFoundError) -> str | None:
    """Say which package a command needs, and how to get it; none if it is a part of ourselves."""
    if error.name is None or error.name.startswith("gpuherd"):
        return None
    remedy = "install the hub's parts with: pip install 'gpuherd[hub]'"
    return f"this command needs the Python package {error.name}; {remedy}"
