"""What a configuration comes to: every key that is in force, as TOML, without the secrets in it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gpuherd.wiring.config import Config, read_config
from gpuherd.wiring.importing.toml_text import value_text

__all__ = ["config_shown", "effective"]

_NOT_KEYS = ("folder", "source")
_PASSWORD = re.compile(r"(?P<before>://[^/\s:@]*:)\S+(?=@)")
"""The password in a URL such as ``postgresql://user:secret@host/``, up to the last ``@``: people use ``/`` and ``@`` in
passwords without escaping them. Rather hides too much than too little."""
_SECRET_QUERY = re.compile(r"(?i)(?P<before>[?&](?:[a-z_]*(?:password|passwd|token|secret)|key)=)[^&\s]+")


def effective(config: Config, *, only_changed: bool = False) -> dict[str, Any]:
    """Give every table and key that is in force; with ``only_changed`` those that are not as they are by default."""
    told = _told(config)
    if only_changed:
        usual = _told(read_config("", "the defaults"))
        told = _differing(told, usual)
    return {name: value for name, value in told.items() if name not in _NOT_KEYS and value not in ({}, [])}


def config_shown(config: Config, *, only_changed: bool = False) -> str:
    """Write it as TOML. A key without a value stands in a comment: TOML knows no such thing."""
    tables = effective(config, only_changed=only_changed)
    lines: list[str] = []
    for name, table in tables.items():
        if isinstance(table, list):
            for entry in table:
                lines += ["", f"[[{name}]]", *_lines(name, entry)]
        else:
            lines += ["", f"[{name}]", *_lines(name, table)]
    return "\n".join(lines[1:]) + "\n" if lines else ""


def _told(config: Config) -> dict[str, Any]:
    fields = {name: getattr(config, name) for name in config.__struct_fields__ if name not in _NOT_KEYS}
    told = msgspec.to_builtins(fields, enc_hook=str)
    return {name: _without_secrets(value) for name, value in told.items()}


def _without_secrets(value: Any) -> Any:
    match value:
        case str():
            return _SECRET_QUERY.sub(r"\g<before>***", _PASSWORD.sub(r"\g<before>***", value))
        case dict():
            return {key: _without_secrets(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_secrets(item) for item in value]
        case _:
            return value


def _differing(told: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in told.items():
        if isinstance(value, dict) and isinstance(usual.get(key), dict):
            if inner := _differing(value, usual[key]):
                kept[key] = inner
        elif key not in usual or value != usual[key]:
            kept[key] = value
    return kept


def _lines(place: str, table: dict[str, Any]) -> list[str]:
    lines = [_line(key, value) for key, value in table.items() if not isinstance(value, dict) or not value]
    for key, value in table.items():
        if isinstance(value, dict) and value:
            lines.append(f"{key} = {value_text(_without_nothing(value))}")
    return lines


def _line(key: str, value: Any) -> str:
    return f"# {key}: not set" if value is None else f"{key} = {value_text(_without_nothing(value))}"


def _without_nothing(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_nothing(item) for key, item in value.items() if item is not None}
        case list() | tuple():
            return [_without_nothing(item) for item in value if item is not None]
        case _:
            return value
