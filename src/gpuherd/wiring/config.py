"""gpuherd.toml: read once, typed, and every complaint names the file, the line, the key and the remedy."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gpuherd.agent.settings import AgentSettings
from gpuherd.api.settings import HubSettings
from gpuherd.auth.settings import LoginSettings
from gpuherd.bookings.settings import BookingSettings
from gpuherd.fleet.settings import AvailabilitySettings, DisplaySettings, PrivacySettings
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.sources.settings import FolderSettings
from gpuherd.wiring.complaints import complaint
from gpuherd.wiring.config_text import ConfigText
from gpuherd.wiring.exporting.settings import ExportSettings
from gpuherd.wiring.settings import LegacySettings, NodesSettings

__all__ = ["Config", "default_config_files", "default_state_dir", "load", "read_config"]


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of gpuherd.toml; each table is a part's own settings."""

    hub: HubSettings
    login: LoginSettings = LoginSettings()
    privacy: PrivacySettings = PrivacySettings()
    bookings: BookingSettings = BookingSettings()
    history: HistorySettings = HistorySettings()
    usage: UsageSettings = UsageSettings()
    agent: AgentSettings = AgentSettings()
    availability: AvailabilitySettings = AvailabilitySettings()
    display: DisplaySettings = DisplaySettings()
    nodes: tuple[NodesSettings, ...] = ()
    folders: tuple[FolderSettings, ...] = ()
    export: ExportSettings = ExportSettings()
    legacy: LegacySettings = LegacySettings()
    folder: Path = Path()
    """Where the file lies: other files that it names are looked for from there. Not a key of the file."""
    source: ConfigText = ConfigText("the configuration")
    """What it was read from, for messages. Not a key of the file."""


SYSTEM_CONFIG = Path("/etc/gpuherd/gpuherd.toml")
SYSTEM_STATE_DIR = Path("/var/lib/gpuherd")
PLACED_KEYS = {
    "agent": {
        "credential_file",
        "join_token_file",
        "listen_secret_file",
        "listen_tls_certificate",
        "listen_tls_key",
        "node_info_password_file",
        "state_dir",
        "tls_ca_file",
    },
    "hub": {"state_dir", "tls_certificate", "tls_key"},
}
"""Keys that name files and folders, by table."""


def default_state_dir() -> Path:
    """Give the folder for what must outlive a restart: the system's for root, else the user's own."""
    if os.geteuid() == 0:
        return SYSTEM_STATE_DIR
    return Path(os.environ.get("XDG_STATE_HOME") or _home() / ".local/state") / "gpuherd"


def _home() -> Path:
    """Give the user's own folder; a user whom the system does not know, as in a container, has none but the root."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def default_config_files() -> tuple[Path, ...]:
    """Give the places where a configuration is looked for, the first one found wins."""
    own = Path(os.environ.get("XDG_CONFIG_HOME") or _home() / ".config") / "gpuherd/gpuherd.toml"
    return (own, SYSTEM_CONFIG)


def load(file: Path | None = None, overrides: dict[str, dict[str, Any]] | None = None) -> Config:
    """Read the named file, or the first default one that exists, or none at all: everything has a default.

    ``overrides`` are keys given on the command line, by table. The system's file is about the system's folder, whoever
    reads it: a user who makes a join token without sudo is told so, rather than given one that no hub knows. Raises
    ``Misconfigured``.
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
    state_dir = SYSTEM_STATE_DIR if file == SYSTEM_CONFIG else None
    return read_config(text, str(file), overrides, file.absolute().parent, state_dir)


def read_config(
    text: str,
    name: str,
    overrides: dict[str, dict[str, Any]] | None = None,
    folder: Path | None = None,
    state_dir: Path | None = None,
) -> Config:
    """Turn TOML text into a ``Config``; ``name`` is what complaints call it, ``folder`` where it lies.

    ``state_dir`` is what ``hub.state_dir`` is unless it is set.
    """
    given = {
        f"{table}.{key}"
        for table, keys in (overrides or {}).items()
        for key, value in keys.items()
        if value is not None
    }
    source = ConfigText(name, text, frozenset(given))
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{name}: is not valid TOML: {error}; see docs/configuration.md") from error
    if "folder" in tables:
        place = source.place(("folder",))
        raise Misconfigured(f"{place}: folder: unknown key; a watched folder is a [[folders]] table")
    if "source" in tables:
        known = ", ".join(name for name in Config.__struct_fields__ if name not in ("folder", "source"))
        raise Misconfigured(f"{source.place(('source',))}: source: unknown key; known here: {known}")
    if folder is not None:
        _place(tables, folder)
    for table, keys in (overrides or {}).items():
        target = tables.setdefault(table, {})
        if isinstance(target, dict):
            target.update({key: value for key, value in keys.items() if value is not None})
    hub = tables.setdefault("hub", {})
    if isinstance(hub, dict):
        hub.setdefault("state_dir", str(state_dir or default_state_dir()))
    try:
        config = msgspec.convert(tables, Config, dec_hook=_to_path)
    except msgspec.ValidationError as error:
        raise Misconfigured(complaint(str(error), source, tables, Config)) from error
    with source.locating():
        config.hub.check()
        config.bookings.check()
        config.history.check()
    for number, group in enumerate(config.nodes):
        with source.locating(f"nodes[{number}]"):
            group.check()
    return msgspec.structs.replace(config, folder=folder or Path.cwd(), source=source)


def _place(tables: dict[str, Any], folder: Path) -> None:
    """Let relative paths begin where the file lies: a service and a shell start in different folders.

    What other tables name is put in its place where it is used.
    """
    for table, keys in PLACED_KEYS.items():
        found = tables.get(table)
        if isinstance(found, dict):
            for key in keys & found.keys():
                if isinstance(found[key], str) and found[key] not in ("", "-"):
                    found[key] = str(folder / Path(found[key]).expanduser())


def _to_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise NotImplementedError(kind)
