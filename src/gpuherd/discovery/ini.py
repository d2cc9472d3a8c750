"""config.ini: a section [common] with user, hosts and key_filename."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from msgspec import Struct

from gpuherd.discovery.complaints import Complaints, numbered_lines, quoted
from gpuherd.discovery.files import FileFinder, located
from gpuherd.discovery.hosts import gather, is_user, parse_host
from gpuherd.discovery.settings import IniSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import NodeWay, Target

__all__ = ["IniConfig", "IniFinder", "parse_ini", "read_ini"]

SECTION = "common"
KEYS = ("user", "hosts", "key_filename")
_HEADER = re.compile(r"\[(?P<name>[^\]]+)\]")
_SETTING = re.compile(r"(?P<key>[^=:]*?)\s*[=:]\s*(?P<value>.*)")

_Value = list[tuple[int, str]]
"""The lines of one value, each with its number."""


class IniConfig(Struct, frozen=True, kw_only=True):
    """What a config.ini says."""

    user: str | None
    key_file: str | None
    targets: tuple[Target, ...]


def parse_ini(text: str, file: str) -> tuple[Target, ...]:
    """Give the hosts with user and key. ``Misconfigured`` names every bad line."""
    return read_ini(text, file).targets


def read_ini(text: str, file: str, complaints: Complaints | None = None) -> IniConfig:
    """Read the file as Python's configparser does, but ``%`` is just a letter and other sections do not matter.

    ``hosts`` is parted by commas or lines. A relative ``key_filename`` begins at the file's folder.
    """
    complaints = complaints or Complaints(file)
    values = _values(text, complaints)
    user = _single(values, "user", complaints)
    if user is not None and not is_user(user):
        complaints.add(
            values["user"][0][0], f"user = {quoted(user)} is not a login name; write for example monitor"
        )
        user = None
    key_file = _single(values, "key_filename", complaints)
    if key_file is not None:
        key_file = str(Path(file).parent / Path(key_file).expanduser())
    found = []
    for line, piece in values.get("hosts", []):
        for entry in piece.split(","):
            if not entry.strip():
                continue
            try:
                target = parse_host(entry, complaints.place(line))
            except Misconfigured as error:
                complaints.add_error(error)
                continue
            found.append((line, _with(target, user, key_file)))
    return IniConfig(user=user, key_file=key_file, targets=gather(found, complaints))


class IniFinder(FileFinder):
    """The hosts of a config.ini."""

    def __init__(self, settings: IniSettings, *, base: Path, way: NodeWay = "ssh") -> None:
        super().__init__(located(settings.file, base), parse_ini, every_seconds=settings.every_seconds)


def _values(text: str, complaints: Complaints) -> dict[str, _Value]:
    """Read the keys of [common] with their lines."""
    values: dict[str, _Value] = {}
    sections: list[str] = []
    section: str | None = None
    current: _Value | None = None
    indent = 0
    for number, line in numbered_lines(text):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        own_indent = len(line) - len(line.lstrip())
        if current is not None and own_indent > indent:
            current.append((number, bare))  # a value goes on in lines that stand further to the right
            continue
        indent = own_indent
        if header := _HEADER.match(bare):
            section, current = header["name"], None
            sections.append(section)
            continue
        if section is None:
            complaints.add(number, f"{quoted(bare)} is before [{SECTION}]; put [{SECTION}] above it")
            break
        setting = _SETTING.fullmatch(bare)
        current = [(number, setting["value"])] if setting else []
        if section != SECTION:
            continue
        if setting is None or not setting["key"]:
            complaints.add(number, f"{quoted(bare)} is neither a setting nor a [section]; write key = value")
            continue
        key = setting["key"].strip().lower()
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"known in [{SECTION}]: {', '.join(KEYS)}"
            complaints.add(number, f"{quoted(key)} is an unknown key; {hint}")
        elif key in values:
            complaints.add(number, f"{quoted(key)} is already in line {values[key][0][0]}; keep one of them")
        else:
            values[key] = current
    if SECTION not in sections and section is not None:
        there = ", ".join(f"[{clean_name}]" for clean_name in (quoted(name)[1:-1] for name in sections[:10]))
        complaints.add(None, f"there is no section [{SECTION}], only {there}; list hosts in [{SECTION}]")
    elif section is None or "hosts" not in values:
        complaints.add(None, f"there are no hosts; write [{SECTION}] and, below it, hosts = host1,host2")
    return values


def _single(values: dict[str, _Value], key: str, complaints: Complaints) -> str | None:
    """Give a value that is one line; empty is as good as none."""
    pieces = values.get(key, [])
    words = [piece for _, piece in pieces if piece]
    if len(words) > 1:
        complaints.add(pieces[1][0], f"{key} continues in this line; it must be one line")
    return words[0] if words else None


def _with(target: Target, user: str | None, key_file: str | None) -> Target:
    return Target(
        name=target.name,
        address=target.address,
        port=target.port,
        user=target.user or user,
        key_file=key_file,
        place=target.place,
    )
