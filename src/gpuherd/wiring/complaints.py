"""What is wrong with a configuration, in words that name the line, the key and the remedy."""

from __future__ import annotations

import difflib
import re
from typing import Any, get_args, get_type_hints

from msgspec import Struct

from gpuherd.wiring.config_text import ConfigText, parse_path
from gpuherd.wiring.toml_lines import Path

__all__ = ["complaint"]

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_GOT = re.compile(r"got `(\w+)`")
_KINDS = {"array": "list", "object": "dict"}
_WRONG = re.compile(r"(?P<what>.*?) - at `\$\.?(?P<path>[^`]*)`", re.DOTALL)


def complaint(message: str, source: ConfigText, tables: dict[str, Any], kind: type[Struct]) -> str:
    """Turn the decoder's message into ``FILE:LINE: key: what; remedy``."""
    if unknown := _UNKNOWN.match(message):
        path, key = parse_path(unknown["path"] or ""), unknown["key"]
        known = [name for name in _known_keys(kind, tables, path) if name]
        near = difflib.get_close_matches(key, known, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(known)}"
        return f"{source.place((*path, key))}: {_shown((*path, key))}: unknown key; {hint}"
    if missing := _MISSING.match(message):
        path, key = parse_path(missing["path"] or ""), missing["key"]
        return f"{source.place(path)}: {_shown((*path, key))}: is missing; see docs/configuration.md"
    if wrong := _WRONG.match(message):
        path = _with_key(parse_path(wrong["path"].replace("[...]", "")), wrong["what"], wrong["path"], tables)
        what = wrong["what"][:1].lower() + wrong["what"][1:]
        tags = _tags(kind, tables, path)
        if tags:
            what = f"{what}; known: {', '.join(tags)}"
        return f"{source.place(path)}: {_shown(path)}: {what}; see docs/configuration.md"
    return f"{source.name}: {message}"


def _with_key(path: Path, what: str, told: str, tables: Any) -> Path:
    """Find the key of a table with names of its own, which the decoder calls ``[...]``, by the kind it got."""
    got = _GOT.search(what)
    if not told.endswith("[...]") or got is None:
        return path
    value = tables
    for step in path:
        value = value[step]
    kind = _KINDS.get(got[1], got[1])
    return next(((*path, name) for name, entry in value.items() if type(entry).__name__ == kind), path)


def _shown(path: Path) -> str:
    shown = ""
    for step in path:
        shown += f"[{step}]" if isinstance(step, int) else f".{step}" if shown else step
    return shown


def _structs(hint: Any) -> list[type[Struct]]:
    """Find the structs that an annotation allows."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return [hint]
    return [kind for part in get_args(hint) for kind in _structs(part)]


def _resolve(kind: type[Struct], tables: Any, path: Path) -> list[type[Struct]]:
    """Find the structs that may stand at a path; the tag in the file decides between several."""
    kinds, value = [kind], tables
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
        if isinstance(step, str):
            kinds = [
                found
                for kind in kinds
                if step in kind.__struct_fields__
                for found in _structs(get_type_hints(kind)[step])
            ]
        if len(kinds) > 1 and isinstance(value, dict):
            chosen = [k for k in kinds if value.get(k.__struct_config__.tag_field) == k.__struct_config__.tag]
            kinds = chosen or kinds
    return kinds


def _known_keys(kind: type[Struct], tables: dict[str, Any], path: Path) -> list[str]:
    return list(
        dict.fromkeys(name for found in _resolve(kind, tables, path) for name in found.__struct_fields__)
    )


def _tags(kind: type[Struct], tables: dict[str, Any], path: Path) -> list[str]:
    if not path or not isinstance(path[-1], str):
        return []
    kinds = _resolve(kind, tables, path[:-1])
    return [str(k.__struct_config__.tag) for k in kinds if k.__struct_config__.tag_field == path[-1]]
