"""TOML as text: entries written out, and put into a file without touching a byte of what is there."""

from __future__ import annotations

import json
import re
from typing import Any

from gpuherd.wiring.importing.reading import (
    BookingsEntry,
    Entry,
    FolderEntry,
    GpustatEntry,
    KeysEntry,
    NodesEntry,
)

__all__ = ["appended", "block", "grown", "insert", "value_text"]


def value_text(value: Any) -> str:
    """Write a text, number, truth, list or inline table."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
        case str():
            # JSON's escapes are TOML's, except that TOML forbids DEL as it is.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
        case list() | tuple():
            return f"[{', '.join(value_text(item) for item in value)}]"
        case dict():
            pairs = ", ".join(f"{_key(key)} = {value_text(item)}" for key, item in value.items())
            return f"{{ {pairs} }}"
        case _:
            raise TypeError(type(value))


def block(entry: Entry, origin: str) -> str:
    """Write an entry as tables of its own, below a comment that says where it came from."""
    comment = f"# From {_comment(origin)}"
    match entry:
        case NodesEntry():
            if entry.find is not None:
                who = f"find = {value_text(entry.find)}"
            else:
                who = "hosts = [\n" + "".join(f"    {value_text(host)},\n" for host in entry.hosts) + "]"
            return f"{comment}\n[[nodes]]\n{who}\nreach = {value_text(entry.reach)}\n"
        case FolderEntry():
            return f"{comment}\n[[folders]]\npath = {value_text(entry.path)}\n"
        case GpustatEntry(networks=()):
            # Nobody is let in before a person has said whom.
            return (
                f"{comment}: nodes post to port {entry.listen.rpartition(':')[2]}.\n# They have no "
                "credential, so you must list the networks they may post from. Import the script\n# again "
                "with --network and the nodes' own network, such as 192.168.0.0/24; that opens the "
                f"port:\n# [legacy.gpustat]\n# listen = {value_text(entry.listen)}\n# networks = [the "
                "nodes' networks]\n"
            )
        case GpustatEntry():
            return (
                f"{comment}\n[legacy.gpustat]\nlisten = {value_text(entry.listen)}\n"
                f"networks = {value_text(entry.networks)}\n"
            )
        case BookingsEntry():
            return (
                f"{comment}\n[bookings.comments]\nfile = {value_text(entry.file)}\nwatch = true\n"
                f"zone = {value_text(entry.zone)}\n"
            )
        case KeysEntry():
            return f"{comment}\n[{entry.table}]\n{_lines(entry.values)}"


def appended(text: str, block_text: str) -> str:
    """Put a block at the end, after an empty line, with the file's own line ends."""
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else end if text.endswith("\n") else end * 2
    return text + gap + block_text.replace("\n", end)


def insert(text: str, entry: KeysEntry, origin: str) -> str | None:
    """Put keys below the header of a table that is there; None if it has no header line of its own."""
    name = r"\s*\.\s*".join(re.escape(part) for part in entry.table.split("."))
    header = re.search(rf"^[ \t]*\[\s*{name}\s*\][ \t]*(#[^\n]*)?\r?$", text, re.MULTILINE)
    if header is None:
        return None
    end = "\r\n" if "\r\n" in text else "\n"
    added = f"# From {_comment(origin)}\n{_lines(entry.values)}".replace("\n", end)
    if header.end() == len(text):
        return f"{text}{end}{added}"
    return f"{text[: header.end() + 1]}{added}{text[header.end() + 1 :]}"


def grown(text: str, key: str, values: list[str]) -> str | None:
    """Put values at the end of a list that is there; None if it is not written as ``key = ["…", …]``."""
    there = re.search(
        rf"""^[ \t]*{key}[ \t]*=[ \t]*\[(?P<inner>(?:[^\]"'#]|"[^"\n]*"|'[^'\n]*'|\#[^\n]*)*)\]""",
        text,
        re.MULTILINE,
    )
    if there is None:
        return None
    bare = re.sub(r"#[^\n]*", "", there["inner"]).rstrip()
    added = ", ".join(value_text(value) for value in values)
    comma = "" if not bare else " " if bare.endswith(",") else ", "
    return f"{text[: there.end('inner')]}{comma}{added}{text[there.end('inner') :]}"


def _lines(values: dict[str, Any]) -> str:
    return "".join(f"{_key(key)} = {value_text(value)}\n" for key, value in values.items())


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else value_text(key)


def _comment(text: str) -> str:
    """Keep a path from ending its comment."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
