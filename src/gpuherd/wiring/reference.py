"""The configuration reference, written from the settings themselves so that it cannot be wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

from gpuherd.discovery.settings import FindSettings
from gpuherd.sources.settings import ReachSettings
from gpuherd.wiring.config import Config
from gpuherd.wiring.config_text import ConfigText
from gpuherd.wiring.settings import LegacySettings, NodesSettings

__all__ = ["config_reference"]

_TABLE = re.compile(r"^\w+ ``\S+`` table( of gpuherd\.toml)?[:.] ?")


def _description(annotation: Any) -> str:
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.description:
            return meta.description
    raise TypeError(f"{annotation} has no description")


def _shown(field: FieldInfo) -> str:
    default = field.default
    if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if default is msgspec.NODEFAULT or default is None:
        return "–"
    if isinstance(default, tuple):
        default = list(default)
    if isinstance(default, Struct):
        config = default.__struct_config__
        return f'`{{ {config.tag_field} = "{config.tag}" }}`'
    return f"`{json.dumps(str(default) if isinstance(default, Path) else default)}`"


def config_reference() -> str:
    """Write one Markdown table per table of gpuherd.toml, and one per way and finder."""
    parts = []
    for table in msgspec.structs.fields(Config):
        hint = get_type_hints(Config)[table.name]
        if table.name == "nodes":
            parts += _nodes()
        elif get_origin(hint) is tuple:
            parts.append(_section(f"## [[{table.name}]]", get_args(hint)[0]))
        elif hint not in (Path, ConfigText):
            if hint is not LegacySettings:  # it holds nothing but tables
                parts.append(_section(f"## [{table.name}]", hint))
            lists = [name for name, field in get_type_hints(hint).items() if get_origin(field) is tuple]
            parts += [
                _section(
                    f"## [[{table.name}.{name}]]" if name in lists else f"## [{table.name}.{name}]", kind
                )
                for name, kind in _optional_tables(hint).items()
            ]
            parts += _choices(hint)
    return "\n\n".join(parts) + "\n"


def _nodes() -> list[str]:
    parts = [_section("## [[nodes]]", NodesSettings)]
    for key, kinds in (("reach", get_args(ReachSettings)), ("find", get_args(FindSettings))):
        parts += [_choice(key, kind) for kind in kinds]
    return parts


def _choices(settings: type[Struct]) -> list[str]:
    """Describe what may be chosen where a key takes one of several tables."""
    return [
        _choice(name, kind)
        for name, hint in get_type_hints(settings).items()
        if len(get_args(hint)) > 2 and all(_is_table(kind) for kind in get_args(hint))
        for kind in get_args(hint)
    ]


def _choice(key: str, kind: type[Struct]) -> str:
    config = kind.__struct_config__
    return _section(f'### {key} = {{ {config.tag_field} = "{config.tag}", … }}', kind)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _optional_tables(settings: type[Struct]) -> dict[str, type[Struct]]:
    """Give the tables below a table, which get sections of their own."""
    return {
        name: kind
        for name, hint in get_type_hints(settings).items()
        for kind in get_args(hint)
        if len(get_args(hint)) == 2 and _is_table(kind)
    }


def _section(heading: str, settings: type[Struct]) -> str:
    hints = get_type_hints(settings, include_extras=True)
    summary = _TABLE.sub("", (settings.__doc__ or "").splitlines()[0])
    lines = [heading, "", *([summary[0].upper() + summary[1:], ""] if summary else [])]
    fields = msgspec.structs.fields(settings)
    if not fields:
        return "\n".join([*lines, "No further keys."])
    lines += ["| key | default | meaning |", "|---|---|---|"]
    for field in fields:
        if field.name in _optional_tables(settings):
            continue
        meaning = _description(hints[field.name]).replace("|", "\\|")
        lines.append(f"| `{field.name}` | {_shown(field)} | {meaning} |")
    return "\n".join(lines)
