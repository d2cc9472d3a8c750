"""docs/man: one manual page for gpuherd and one per command, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterable

from scripts.command_tree import ENVIRONMENT, EXIT_CODES, FILES, Command, commands

__all__ = ["man_pages"]

_ESCAPED = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha"}


def man_pages() -> dict[str, str]:
    """Give the pages by file name. They carry neither date nor version, so that only what has changed changes them."""
    every = list(commands())
    first = [command for command in every if len(command.path) == 1]
    pages = {"gpuherd.1": _main_page(every[0], first)}
    for command in first:
        below = [other for other in every if other.path[:1] == command.path and len(other.path) > 1]
        pages[f"gpuherd-{command.path[0]}.1"] = _command_page(command, below, first)
    return pages


def _main_page(root: Command, first: list[Command]) -> str:
    lines = [
        *_head("GPUHERD", "gpuherd", root.summary),
        *_usage([root]),
        ".SH DESCRIPTION",
        _text(
            "One live view of all GPU servers: which GPUs are free, who uses the others, which are held idle, and what "
            "is broken. A hub collects reports from agents, or connects to the nodes itself. Use its page in a browser "
            "or these commands."
        ),
        ".SH COMMANDS",
        *_items((f"gpuherd-{command.path[0]}(1)", f"{command.summary}.") for command in first),
        ".SH OPTIONS",
        *_options(root),
        ".SH EXIT STATUS",
        *_items(EXIT_CODES),
        ".PP",
        _text("gpuherd run returns the exit code of the command that it runs."),
        ".SH ENVIRONMENT",
        *_items(ENVIRONMENT),
        ".SH FILES",
        *_items(FILES),
        ".SH SEE ALSO",
        *_see_also(f"gpuherd-{command.path[0]}" for command in first),
    ]
    return "\n".join(lines) + "\n"


def _command_page(command: Command, below: list[Command], first: list[Command]) -> str:
    name = f"gpuherd-{command.path[0]}"
    lines = [
        *_head(name.upper(), name, command.summary),
        *_usage([command, *(other for other in below if not other.is_group)]),
        ".SH DESCRIPTION",
        *_description(command),
        ".SH OPTIONS",
        *_options(command),
    ]
    if below:
        lines.append(".SH COMMANDS")
        for other in below:
            lines += [f".SS {_text(other.name)}", *_description(other), *_options(other)]
    lines += [".SH EXIT STATUS", *_items(EXIT_CODES)]
    if any(option.variable for each in (command, *below) for option in each.options):
        lines += [".SH ENVIRONMENT", *_items(ENVIRONMENT)]
    neighbours = (f"gpuherd-{other.path[0]}" for other in first if other is not command)
    lines += [".SH SEE ALSO", *_see_also(("gpuherd", *neighbours))]
    return "\n".join(lines) + "\n"


def _head(title: str, name: str, summary: str) -> list[str]:
    return [
        f'.TH {_text(title)} 1 "" gpuherd "gpuherd manual"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(summary[0].lower() + summary[1:] if summary[1:2].islower() else summary)}",
    ]


def _usage(shown: list[Command]) -> list[str]:
    lines = [".SH SYNOPSIS", ".nf"]
    for command in shown:
        words = command.usage.removeprefix(command.name)
        lines.append(f"\\fB{_text(command.name)}\\fR{_text(words)}")
    return [*lines, ".fi"]


def _description(command: Command) -> list[str]:
    lines: list[str] = []
    for paragraph in command.paragraphs:
        if paragraph.is_verbatim:
            lines += [".PP", ".RS 4", ".nf", *map(_line, paragraph.text.splitlines()), ".fi", ".RE"]
        else:
            lines += [*([".PP"] if lines else []), _line(paragraph.text)]
    return lines


def _options(command: Command) -> list[str]:
    return _items((option.names, option.meaning) for option in command.options)


def _items(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [line for name, meaning in pairs for line in (".TP", f"\\fB{_text(name)}\\fR", _line(meaning))]


def _see_also(names: Iterable[str]) -> list[str]:
    listed = [f".BR {_text(name)} (1)" for name in names]
    return [*(f"{line} ," for line in listed[:-1]), listed[-1]]


def _line(text: str) -> str:
    """Write a line that roff does not take for a request."""
    written = _text(text)
    return f"\\&{written}" if written.startswith((".", "'")) else written


def _text(text: str) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in text)
