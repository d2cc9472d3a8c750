"""The configuration reference, written from the settings themselves so that it cannot be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from gpuherd.wiring.config import Config

__all__ = ["config_reference"]


def _description(annotation: Any) -> str:
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.description:
            return meta.description
    raise TypeError(f"{annotation} has no description")


def _shown(default: Any) -> str:
    if default is msgspec.NODEFAULT or default is None:
        return "–"
    if isinstance(default, tuple):
        default = list(default)
    return f"`{json.dumps(str(default) if isinstance(default, Path) else default)}`"


def config_reference() -> str:
    """Write one Markdown table per table of gpuherd.toml."""
    parts = []
    for table in msgspec.structs.fields(Config):
        settings = get_type_hints(Config)[table.name]
        hints = get_type_hints(settings, include_extras=True)
        lines = [f"## [{table.name}]", "", "| key | default | meaning |", "|---|---|---|"]
        for field in msgspec.structs.fields(settings):
            meaning = _description(hints[field.name]).replace("|", "\\|")
            lines.append(f"| `{field.name}` | {_shown(field.default)} | {meaning} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
