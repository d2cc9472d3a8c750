"""The log of the hub and the agent: one line per message on standard error, as text or JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["log_arguments", "log_options", "start_log"]

F = TypeVar("F", bound=Callable[..., Any])
LEVELS = ("debug", "info", "warning", "error")


def log_options(function: F) -> F:
    """Add the options of a command that writes a log."""
    for option in (
        click.option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            envvar="GPUHERD_LOG_FORMAT",
            help="Format of the log on standard error. Also set by GPUHERD_LOG_FORMAT.",
        ),
        click.option(
            "--log-level",
            type=click.Choice(LEVELS),
            default="info",
            show_default=True,
            envvar="GPUHERD_LOG_LEVEL",
            help="Lowest level to log. Also set by GPUHERD_LOG_LEVEL.",
        ),
    ):
        function = option(function)
    return function


def log_arguments(log_format: str, log_level: str) -> list[str]:
    """Return the options that give another process the same log."""
    return ["--log-format", log_format, "--log-level", log_level]


def start_log(log_format: str, log_level: str) -> None:
    """Write what gpuherd logs from ``log_level`` on, and warnings of other packages."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if log_format == "json" else _TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("gpuherd").setLevel(log_level.upper())


def _escaped(text: str) -> str:
    """Escape line breaks, control and invisible characters, so that no text of others can forge a line."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


class _TextLines(logging.Formatter):
    """``2026-11-18 13:05:01,123 WARNING message``; a traceback follows, indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = _escaped(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        lines = super().formatException(ei).splitlines()
        return "\n".join(f"    {_escaped(line)}" for line in lines)


class _JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
