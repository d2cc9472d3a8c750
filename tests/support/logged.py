"""The messages that gpuherd logs, read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import gpuherd

__all__ = ["logged_messages"]

_LEVELS = {
    "info": "info",
    "warning": "warning",
    "error": "error",
    "exception": "error",
    "unexpected": "error",
    "log": "",
}
_LOGGERS = {"log", "_log", "sparing", "_sparing"}
_FIELD = re.compile(r"%[-+ #0]*[\d.*]*[sdrgfxo]")


def logged_messages() -> dict[str, str]:
    """Return the levels of all messages from info on; "…" stands for what is filled in."""
    package = Path(gpuherd.__file__).parent
    return {
        message: level
        for file in sorted(package.rglob("*.py"))
        if "simulated" not in file.parts
        for message, level in _messages(ast.parse(file.read_text(encoding="utf-8")))
        if message.strip(" …:")
    }


def _messages(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        logger, method = call.func.value, call.func.attr
        name = logger.attr if isinstance(logger, ast.Attribute) else getattr(logger, "id", "")
        if name not in _LOGGERS or method not in _LEVELS:
            continue
        message = next(
            (text for argument in call.args if (text := _text(argument)) is not None and " " in text), None
        )
        if message is not None:
            yield message, _LEVELS[method] or _level(call.args[0])


def _level(argument: ast.expr) -> str:
    return argument.attr.lower() if isinstance(argument, ast.Attribute) else "info or warning"


def _text(argument: ast.expr) -> str | None:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return _FIELD.sub("…", argument.value)
    if isinstance(argument, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in argument.values)
    return None
