"""What is wrong with a configuration, in words that name the line, the key and the remedy."""

from __future__ import annotations

import difflib
import re
from typing import Any, get_args, get_type_hints

from msgspec import Struct

__all__ = ["complaint"]

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_WRONG = re.compile(r"(?P<what>.*?) - at `\$\.?(?P<path>[^`]*)`", re.DOTALL)
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\"'-]+)\s*\]")

Path = tuple[str | int, ...]


def complaint(message: str, text: str, tables: dict[str, Any], kind: type[Struct]) -> str:
    """Turn the decoder's message into ``:LINE: key: what; remedy``."""
    if unknown := _UNKNOWN.match(message):
        path, key = _path(unknown["path"]), unknown["key"]
        known = [name for name in _known_keys(kind, tables, path) if name]
        near = difflib.get_close_matches(key, known, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(known)}"
        return f"{_line(text, path, key)}: {_shown((*path, key))}: unknown key; {hint}"
    if missing := _MISSING.match(message):
        path, key = _path(missing["path"]), missing["key"]
        return f"{_line(text, path, '')}: {_shown((*path, key))}: is missing; see docs/configuration.md"
    if wrong := _WRONG.match(message):
        path = _path(wrong["path"])
        what = wrong["what"][:1].lower() + wrong["what"][1:]
        tags = _tags(kind, tables, path)
        if tags:
            what = f"{what}; known are {', '.join(tags)}"
        key = next((step for step in reversed(path) if isinstance(step, str)), "")
        parent = path[: path.index(key)] if key in path else path
        return f"{_line(text, parent, key)}: {_shown(path)}: {what}; see docs/configuration.md"
    return f": {message}"


def _path(text: str | None) -> Path:
    return tuple(name or int(index) for name, index in _STEP.findall(text or ""))


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


def _line(text: str, path: Path, key: str) -> str:
    """Find the line that a key stands on, as ``:12``, or the line of its table; nothing if it came from elsewhere."""
    names = tuple(step for step in path if isinstance(step, str))
    numbers = [step for step in path if isinstance(step, int)]
    place = ""
    counts: dict[tuple[str, ...], int] = {}
    current: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            current = tuple(part.strip("\"'") for part in header[2].split("."))
            if header[1] == "[[":
                counts[current] = counts.get(current, -1) + 1
        if numbers and counts.get(names[:1], -1) != numbers[0]:
            continue
        if header and (current == names or (not names and current == (key,))):
            place = f":{number}"
            if not names:
                return place
        for depth in range(len(names) + 1):
            # A key may stand in a table of its own, or inline in the line of one of the keys above it.
            wanted = names[depth] if depth < len(names) else key
            if (
                wanted
                and current == names[:depth]
                and re.match(rf'\s*["\']?{re.escape(wanted)}["\']?\s*=', line)
            ):
                place = f":{number}"
                if wanted == key:
                    return place
    return place
