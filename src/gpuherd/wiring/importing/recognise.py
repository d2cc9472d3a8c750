"""Which tool a file belongs to, told by its content; its name decides only where the content could be either."""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from gpuherd.discovery.files import MAX_FILE_BYTES, read_text
from gpuherd.discovery.hosts_file import parse_hosts
from gpuherd.discovery.yaml_file import KEYS as YAML_KEYS
from gpuherd.model.errors import Misconfigured
from gpuherd.model.json_tables import JsonTable, read_tables
from gpuherd.sources.folder_reading import HOSTS_NAME, is_dropped
from gpuherd.wiring.aliases import decoded
from gpuherd.wiring.importing.comments import read_comments_json
from gpuherd.wiring.importing.consul_json import KEY, read_consul_json
from gpuherd.wiring.importing.lists import (
    read_ansible_hosts,
    read_config_ini,
    read_config_yml,
    read_hosts_txt,
)
from gpuherd.wiring.importing.node_script import read_login_env, read_node_script, read_page_env
from gpuherd.wiring.importing.php_page import ARRAY, read_index_php
from gpuherd.wiring.importing.reading import Note, Reading
from gpuherd.wiring.importing.small_files import (
    advice,
    read_aliases_csv,
    read_averages,
    read_drop_folder,
    read_hosts_table,
)
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["read_file"]

Reader = Callable[[str, Path, Wishes], Reading]


def read_file(file: Path, wishes: Wishes) -> Reading:
    """Recognise and read one file; what is not known or not usable comes back as a ``Reading`` without ``what``."""
    file = file.expanduser().absolute()
    if file.is_dir():
        return read_drop_folder(file, wishes) or _unknown(file, "a folder without any HOST_gpus.csv in it")
    if is_dropped(file.name) and file.is_file():
        return advice("dropped", file)
    try:
        text = read_text(file)
    except Misconfigured:
        if _is_bookings(file):
            return read_comments_json(file, wishes)  # which comes in any encoding
        reading = _read_names(file, wishes)
        if reading is None:
            raise
        return reading
    if text.lstrip().startswith("{"):
        return _read_json(text, file, wishes)
    if _is_own(text):
        return _unknown(file, "this is a gpuherd.toml; to add to it, give it with --output")
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
    ("page", re.compile(r"^[ \t]*(export[ \t]+)?VITE_[A-Z_]+[ \t]*=", re.MULTILINE)),
    ("login", re.compile(r"^[ \t]*(export[ \t]+)?AUTH_(USER|PASS)[ \t]*=", re.MULTILINE)),
    (
        "program",
        re.compile(
            r"\A#!|\A\s*<(!doctype|html|\?php)|^(import|from)[ ]\w+|^(const|var)[ ].*require\(",
            re.MULTILINE | re.IGNORECASE,
        ),
    ),
    ("playbook", re.compile(r"^-[ ]+(name:.*\n[ ]+)?hosts:", re.MULTILINE)),
    ("table", re.compile(r"\A,load,load_mem,gpu_idx,")),
    ("ini", re.compile(r"^\[common\][ \t\r]*$", re.MULTILINE)),
    ("yaml", re.compile(rf"^({'|'.join(YAML_KEYS)})[ \t]*:", re.MULTILINE)),
    ("ansible", re.compile(r"^\[[A-Za-z_][\w.-]*(:(children|vars))?\][ \t\r]*([#;].*)?$", re.MULTILINE)),
    ("ansible", re.compile(r"^[\w.-]+:[ \t\r]*(#.*)?\n[ \t]+(hosts|children|vars)[ \t]*:", re.MULTILINE)),
    ("ssh_config", re.compile(r"^[ \t]*Host[ \t]+\S", re.MULTILINE)),
)
_READERS: dict[str, Reader] = {
    "php": read_index_php,
    "script": read_node_script,
    "page": read_page_env,
    "login": read_login_env,
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


def _read_names(file: Path, wishes: Wishes) -> Reading | None:
    """Read a page's or a list's names, which come in any encoding, too; None if it is neither, or too large."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError:
        return None  # whoever tried before says why
    if len(content) > MAX_FILE_BYTES:
        return None
    text = decoded(content)
    if ARRAY.search(text):
        return read_index_php(text, file, wishes)
    return read_aliases_csv(text, file, wishes) if _is_aliases(_bare_lines(text)) else None


def _read_json(text: str, file: Path, wishes: Wishes) -> Reading:
    try:
        content = read_tables(text)
    except (ValueError, RecursionError):
        # comments.json has // comments in the wild, which JSON does not know.
        if '"date"' in text and '"name"' in text:
            return read_comments_json(file, wishes)
        return _unknown(file, _why_no_json(text))
    if not isinstance(content, JsonTable):
        return _unknown(file, f"JSON without {KEY}")
    if KEY in content:
        return read_consul_json(content, file, wishes)
    if {"time", "data"} == content.keys():
        return read_averages(content, file, time.time())
    if content:
        is_named = file.name == HOSTS_NAME and any(isinstance(value, str) for value in content.values())
        if is_named or all(isinstance(value, str) for value in content.values()):
            return read_hosts_table(content, file)
        if all(isinstance(value, list | dict) for value in content.values()):
            return read_comments_json(file, wishes)
    return _unknown(file, f"JSON without {KEY}")


def _why_no_json(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno} is not JSON ({error.msg}); is the file half written? Correct that line"
    except (RecursionError, ValueError):
        pass
    return "not valid JSON: nested too deeply, or with numbers that are too large"


def _bare_lines(text: str) -> list[str]:
    """Give the lines without comments that say something."""
    return [bare for line in text.split("\n") if (bare := line.partition("#")[0].strip())]


def _is_aliases(lines: list[str]) -> bool:
    return any("," in line for line in lines) and all("," in line or _NAME.fullmatch(line) for line in lines)


def _read_lines(text: str, file: Path, wishes: Wishes) -> Reading:
    lines = _bare_lines(text)
    if not lines:
        return _unknown(file, "the file is empty")
    if file.name.endswith(".env"):
        return _unknown(
            file,
            "it contains neither AUTH_USER and AUTH_PASS (old backend) nor VITE_BACKEND (old page); is it "
            "the right file?",
        )
    if all(_DU.match(line) for line in lines):
        return advice("dropped", file)
    if _is_aliases(lines):
        return read_aliases_csv(text, file, wishes)
    words = [line for line in lines if re.fullmatch(r"[\w.:\[\]@=-]+", line)]
    if file.name != "hosts.txt" and 2 * len(words) <= len(
        lines
    ):  # else a list of hosts, perhaps with bad lines
        try:
            parse_hosts(text, str(file))
        except Misconfigured as error:
            return _unknown(file, f"not a file that gpuherd recognises, and not a list of hosts ({error})")
    return read_hosts_txt(text, file, wishes)


_DU = re.compile(r"[\d.,]+[KMGTP]?\s+/")
_NAME = re.compile(r"[\w+-]+")


def _unknown(file: Path, reason: str) -> Reading:
    return Reading(file=str(file), what=None, notes=(Note(None, reason, False),))
