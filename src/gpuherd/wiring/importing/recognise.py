"""Which tool a file belongs to, told by its content; its name decides only where the content could be either."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec

from gpuherd.discovery.files import MAX_FILE_BYTES, read_text
from gpuherd.discovery.yaml_file import KEYS as YAML_KEYS
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.importing.comments import read_comments_json
from gpuherd.wiring.importing.consul_json import KEY, read_consul_json
from gpuherd.wiring.importing.lists import (
    read_ansible_hosts,
    read_config_ini,
    read_config_yml,
    read_hosts_txt,
)
from gpuherd.wiring.importing.node_script import read_node_script
from gpuherd.wiring.importing.php_page import ARRAY, read_index_php
from gpuherd.wiring.importing.reading import Note, Reading
from gpuherd.wiring.importing.small_files import advice, read_aliases_csv, read_drop_folder
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["read_file"]

Reader = Callable[[str, Path, Wishes], Reading]


def read_file(file: Path, wishes: Wishes) -> Reading:
    """Recognise and read one file; what is not known or not usable comes back as a ``Reading`` without ``what``."""
    file = file.expanduser().absolute()
    if file.is_dir():
        return read_drop_folder(file) or _unknown(file, "a folder without any HOST_gpus.csv in it")
    try:
        text = read_text(file)
    except Misconfigured:
        if not _is_bookings(file):
            raise
        return read_comments_json(file)  # which comes in any encoding
    if text.lstrip().startswith("{"):
        return _read_json(text, file, wishes)
    if _is_own(text):
        return _unknown(file, "this is a gpuherd.toml itself; name it with --output to add to it")
    for kind, shape in _SHAPES:
        if shape.search(text):
            reader = _READERS.get(kind)
            return advice(kind, file) if reader is None else reader(text, file, wishes)
    return _read_lines(text, file, wishes)


# The first shape that fits counts.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("php", ARRAY),
    ("script", re.compile(r"^[ \t]*(export[ \t]+)?SERVER=", re.MULTILINE)),
    ("password", re.compile(r"^PASSWD[ \t]*=", re.MULTILINE)),
    ("login", re.compile(r"^AUTH_(USER|PASS)[ \t]*=", re.MULTILINE)),
    ("ini", re.compile(r"^\[common\][ \t\r]*$", re.MULTILINE)),
    ("yaml", re.compile(rf"^({'|'.join(YAML_KEYS)})[ \t]*:", re.MULTILINE)),
    ("ansible", re.compile(r"^\[[A-Za-z_][\w.-]*(:(children|vars))?\][ \t\r]*([#;].*)?$", re.MULTILINE)),
    ("ansible", re.compile(r"^[\w.-]+:[ \t\r]*(#.*)?\n[ \t]+(hosts|children|vars)[ \t]*:", re.MULTILINE)),
    ("ssh_config", re.compile(r"^[ \t]*Host[ \t]+\S", re.MULTILINE)),
)
_READERS: dict[str, Reader] = {
    "php": read_index_php,
    "script": read_node_script,
    "ini": read_config_ini,
    "yaml": read_config_yml,
    "ansible": read_ansible_hosts,
}


def _is_own(text: str) -> bool:
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return not {"hub", "nodes", "availability", "legacy", "display"}.isdisjoint(tables)


def _is_bookings(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES)
    except OSError:
        return False
    is_table = content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    return is_table and b'"date"' in content and b'"name"' in content


def _read_json(text: str, file: Path, wishes: Wishes) -> Reading:
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        # comments.json has // comments in the wild, which JSON does not know.
        is_bookings = '"date"' in text and '"name"' in text
        return read_comments_json(file) if is_bookings else _unknown(file, "not valid JSON")
    if isinstance(content, dict) and KEY in content:
        return read_consul_json(content, file, wishes)
    if (
        isinstance(content, dict)
        and content
        and all(isinstance(value, list | dict) for value in content.values())
    ):
        return read_comments_json(file)
    return _unknown(file, f"JSON without {KEY}")


def _read_lines(text: str, file: Path, wishes: Wishes) -> Reading:
    lines = [line.partition("#")[0].strip() for line in text.split("\n")]
    lines = [line for line in lines if line]
    if not lines:
        return _unknown(file, "there is nothing in it")
    if all("," in line for line in lines):
        return read_aliases_csv(text, file, wishes)
    try:
        return read_hosts_txt(text, file, wishes)
    except Misconfigured as error:
        words = [line for line in lines if re.fullmatch(r"[\w.:\[\]@=-]+", line)]
        if file.name == "hosts.txt" or 2 * len(words) > len(lines):
            raise  # a list of hosts with bad lines
        return _unknown(file, f"none of the files that gpuherd knows, and no list of hosts either ({error})")


def _unknown(file: Path, reason: str) -> Reading:
    return Reading(file=str(file), what=None, notes=(Note(None, reason, False),))
