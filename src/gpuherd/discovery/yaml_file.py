"""config.yml: web_port, rpc_port, rpc_timeout and hosts."""

from __future__ import annotations

import difflib
from functools import partial
from pathlib import Path

from msgspec import Struct, structs

from gpuherd.discovery.complaints import Complaints, quoted
from gpuherd.discovery.files import FileFinder, located
from gpuherd.discovery.hosts import gather, is_port, parse_host
from gpuherd.discovery.settings import YamlSettings
from gpuherd.discovery.yaml_text import Sequence as YamlSequence
from gpuherd.discovery.yaml_text import YamlNode, is_null, line_of, load_yaml, pairs, text_of
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import NodeWay, Target

__all__ = ["YamlConfig", "YamlFinder", "parse_yaml", "read_yaml"]

KEYS = ("web_port", "rpc_port", "rpc_timeout", "hosts")


class YamlConfig(Struct, frozen=True, kw_only=True):
    """What a config.yml says; None where it says nothing."""

    web_port: int | None
    rpc_port: int | None
    rpc_timeout_seconds: float | None
    targets: tuple[Target, ...]


def parse_yaml(text: str, file: str, way: NodeWay = "xmlrpc") -> tuple[Target, ...]:
    """Give the hosts; ``rpc_port`` is theirs only if they are asked by XML-RPC."""
    config = read_yaml(text, file)
    if way != "xmlrpc" or config.rpc_port is None:
        return config.targets
    port = config.rpc_port
    return tuple(
        target if target.port is not None else structs.replace(target, port=port) for target in config.targets
    )


def read_yaml(text: str, file: str, complaints: Complaints | None = None) -> YamlConfig:
    """Read the file; ``Misconfigured`` names every bad line."""
    complaints = complaints or Complaints(file)
    ports: dict[str, int] = {}
    timeout: float | None = None
    found: list[tuple[int | None, Target]] = []
    root = load_yaml(text, file)
    for key, line, value in [] if root is None else pairs(root, file, "the file"):
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(KEYS)}"
            complaints.add(line, f"{quoted(key)} is an unknown key; {hint}")
        elif key == "hosts":
            found = _hosts(value, complaints)
        elif is_null(value):
            continue
        elif key == "rpc_timeout":
            timeout = _seconds(value, complaints)
        else:
            word = text_of(value) or ""
            if is_port(word):
                ports[key] = int(word)
            else:
                complaints.add(line, f"{key} must be a number from 1 to 65535")
    return YamlConfig(
        web_port=ports.get("web_port"),
        rpc_port=ports.get("rpc_port"),
        rpc_timeout_seconds=timeout,
        targets=gather(found, complaints),
    )


class YamlFinder(FileFinder):
    """The hosts of a config.yml."""

    def __init__(self, settings: YamlSettings, *, base: Path, way: NodeWay = "xmlrpc") -> None:
        super().__init__(
            located(settings.file, base), partial(parse_yaml, way=way), every_seconds=settings.every_seconds
        )


def _hosts(value: YamlNode, complaints: Complaints) -> list[tuple[int | None, Target]]:
    if is_null(value):
        return []
    if not isinstance(value, YamlSequence):
        complaints.add(line_of(value), "hosts must be a list; write each host on its own line after a dash")
        return []
    found: list[tuple[int | None, Target]] = []
    for item in value.value:
        line = line_of(item)
        word = text_of(item)
        if word is None or is_null(item):
            complaints.add(line, "not a host; write one host after each dash")
            continue
        try:
            found.append((line, parse_host(word, complaints.place(line))))
        except Misconfigured as error:
            complaints.add_error(error)
    return found


def _seconds(value: YamlNode, complaints: Complaints) -> float | None:
    try:
        seconds = float(text_of(value) or "")
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        complaints.add(line_of(value), "rpc_timeout must be a number of seconds above 0")
        return None
    return seconds
