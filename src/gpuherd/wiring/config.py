"""gpuherd.toml: read once, typed, and every complaint names the file, the line, the key and the remedy."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gpuherd.agent.settings import AgentSettings
from gpuherd.api.settings import HubSettings
from gpuherd.fleet.settings import AvailabilitySettings
from gpuherd.model.errors import Misconfigured

__all__ = ["Config", "default_config_files", "default_state_dir", "load", "read_config"]


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of gpuherd.toml; each table is a part's own settings."""

    hub: HubSettings
    agent: AgentSettings = AgentSettings()
    availability: AvailabilitySettings = AvailabilitySettings()


def default_state_dir() -> Path:
    """Give the folder for what must outlive a restart: the system's for root, else the user's own."""
    if os.geteuid() == 0:
        return Path("/var/lib/gpuherd")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "gpuherd"


def default_config_files() -> tuple[Path, ...]:
    """Give the places where a configuration is looked for, the first one found wins."""
    own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "gpuherd/gpuherd.toml"
    return (own, Path("/etc/gpuherd/gpuherd.toml"))


def load(file: Path | None = None, overrides: dict[str, dict[str, Any]] | None = None) -> Config:
    """Read the named file, or the first default one that exists, or none at all: everything has a default.

    ``overrides`` are keys given on the command line, by table. Raises ``Misconfigured``.
    """
    if file is None:
        file = next((place for place in default_config_files() if place.is_file()), None)
    if file is None:
        return read_config("", "the command line", overrides)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Misconfigured(f"{file}: there is no such file; check the path given with --config") from None
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{file}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise Misconfigured(f"{file}: cannot be read ({error.strerror}); let this user read it") from error
    return read_config(text, str(file), overrides)


def read_config(text: str, name: str, overrides: dict[str, dict[str, Any]] | None = None) -> Config:
    """Turn TOML text into a ``Config``; ``name`` is what complaints call it."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{name}: is not valid TOML: {error}; see docs/configuration.md") from error
    for table, keys in (overrides or {}).items():
        target = tables.setdefault(table, {})
        if isinstance(target, dict):
            target.update({key: value for key, value in keys.items() if value is not None})
    hub = tables.setdefault("hub", {})
    if isinstance(hub, dict):
        hub.setdefault("state_dir", str(default_state_dir()))
    try:
        config = msgspec.convert(tables, Config, dec_hook=_to_path)
    except msgspec.ValidationError as error:
        raise Misconfigured(_complaint(str(error), text, name)) from error
    try:
        config.hub.check()
    except Misconfigured as error:
        raise Misconfigured(f"{name}: {error}") from error
    return config


def _to_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise NotImplementedError(kind)


_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_WRONG = re.compile(r"(?P<what>.*?) - at `\$\.?(?P<path>[^`]*)`", re.DOTALL)


def _complaint(message: str, text: str, name: str) -> str:
    """Turn the decoder's message into one with file, line, key and remedy."""
    if unknown := _UNKNOWN.match(message):
        table, key = unknown["path"] or "", unknown["key"]
        known = _known_keys(table)
        near = difflib.get_close_matches(key, known, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(known)}"
        full = f"{table}.{key}" if table else key
        return f"{name}{_line(text, table, key)}: {full}: unknown key; {hint}"
    if wrong := _WRONG.match(message):
        table, _, key = wrong["path"].rpartition(".")
        what = wrong["what"][:1].lower() + wrong["what"][1:]
        return f"{name}{_line(text, table, key.split('[')[0])}: {wrong['path']}: {what}; see docs/configuration.md"
    return f"{name}: {message}"


def _known_keys(table: str) -> list[str]:
    kinds: dict[str, type[Struct]] = {
        "": Config,
        "hub": HubSettings,
        "agent": AgentSettings,
        "availability": AvailabilitySettings,
    }
    kind = kinds.get(table)
    return [] if kind is None else list(kind.__struct_fields__)


def _line(text: str, table: str, key: str) -> str:
    """Find the line a key stands on, as ``:12``; nothing if it came from elsewhere."""
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            current = header[1]
            if not table and current == key:
                return f":{number}"
        elif current == table and re.match(rf'\s*"?{re.escape(key)}"?\s*=', line):
            return f":{number}"
    return ""
