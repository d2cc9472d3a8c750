"""/etc/gpuherd/gpuherd.toml as `gpuherd install` writes it, and whether one that is there is still ours."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.wiring.config import read_config

__all__ = ["CONFIG_PATH", "Choices", "config_with", "render"]

CONFIG_PATH = "/etc/gpuherd/gpuherd.toml"
Choices = dict[str, dict[str, str]]
"""Keys that were chosen on the command line, by table."""

_HEAD = """\
# gpuherd's services on this machine. `gpuherd config reference` prints all keys; after a change:
#   gpuherd config check && systemctl restart gpuherd-hub gpuherd-agent
# As long as only `gpuherd install` has written it, `gpuherd install` may write it again; never after you edited it.
# Everyone may read it: keep secrets in files of their own and name those here.
"""
_TABLES: Choices = {
    "hub": {"state_dir": "/var/lib/gpuherd"},
    "agent": {"state_dir": "/var/lib/gpuherd-agent"},
}
_KEYS = {"hub": ("state_dir", "listen", "base_path"), "agent": ("state_dir", "hub_url", "node_name")}


def render(choices: Choices) -> str:
    """Write the file for these choices."""
    parts = [_HEAD]
    for table, keys in _KEYS.items():
        values = {**_TABLES[table], **choices.get(table, {})}
        # A JSON string is a TOML string too, except for the escapes of what is not ASCII.
        lines = [f"{key} = {json.dumps(values[key], ensure_ascii=False)}" for key in keys if key in values]
        parts.append("\n".join((f"[{table}]", *lines, "")))
    return "\n".join(parts)


def config_with(choices: Choices, before: str | None, place: str) -> str:
    """Give the file's text with these choices: ``before`` if it has them already.

    Raises ``Refused`` if it lacks them and someone has edited it: then it is theirs, and told what to write.
    """
    if before is None:
        return _checked(render(choices), place)
    tables = _tables(before, place)
    missing = [
        f"[{table}] {key} = {json.dumps(value, ensure_ascii=False)}"
        for table, keys in choices.items()
        for key, value in keys.items()
        if _value(tables, table, key) != value
    ]
    if not missing:
        return _checked(before, place)
    if not _is_ours(before, tables):
        raise Refused(
            "config_edited", f"{place} has been edited and is not changed; set in it: {'; '.join(missing)}"
        )
    merged = {table: {**_ours(tables, table), **choices.get(table, {})} for table in _KEYS}
    return _checked(render(merged), place)


def _tables(text: str, place: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{place}: is not valid TOML: {error}; fix it or move it aside") from error


def _value(tables: dict[str, Any], table: str, key: str) -> object:
    found = tables.get(table)
    return found.get(key) if isinstance(found, dict) else None


def _ours(tables: dict[str, Any], table: str) -> dict[str, str]:
    values = ((key, _value(tables, table, key)) for key in _KEYS[table])
    return {key: value for key, value in values if isinstance(value, str)}


def _is_ours(text: str, tables: dict[str, Any]) -> bool:
    """Tell whether we would write the very same: then nobody has put anything of their own into it."""
    return render({table: _ours(tables, table) for table in _KEYS}) == text


def _checked(text: str, place: str) -> str:
    read_config(text, place)
    return text
