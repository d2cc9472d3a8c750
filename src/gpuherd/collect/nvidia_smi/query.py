"""Parsers of ``nvidia-smi --query-gpu`` and ``--query-compute-apps`` (CSV without header and units)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from gpuherd.collect.nvidia_smi.row import FIELDS, Row, Words
from gpuherd.collect.nvidia_smi.values import bytes_of
from gpuherd.collect.nvidia_smi.words import number_of, text_of

__all__ = ["APP_FIELDS", "App", "Columns", "parse_apps", "parse_help", "supported_fields"]

MAX_ROW_LENGTH = 2048
"""Of a GPU's row in characters; in truth some 250."""
MAX_PID_DIGITS = 9

APP_FIELDS = ("gpu_uuid", "pid", "used_gpu_memory", "process_name")
"""The name is last, because it may hold commas."""


_NO_ROWS = ("warning", "no running")
"""How lines begin that are printed among the rows and say nothing of processes."""


class App(NamedTuple):
    """A process of ``--query-compute-apps``."""

    gpu_uuid: str
    pid: int
    memory_bytes: int | None


def parse_help(content: bytes) -> frozenset[str]:
    """Find the field names in ``--help-query-gpu``: lines such as ``"clocks.current.sm" or "clocks.sm"``."""
    lines = content.decode(errors="replace").splitlines()
    return frozenset(
        name for line in lines if line.startswith('"') for name in re.findall(r'"([\w.]+)"', line)
    )


def supported_fields(known: frozenset[str]) -> list[str]:
    """Choose the fields to ask for; with nothing known of this nvidia-smi, the first of each."""
    if not known:
        return [names[0] for names in FIELDS]
    return [found for names in FIELDS if (found := next((name for name in names if name in known), None))]


class Columns:
    """The columns that were asked for, in their order: reads the answers to one command again and again."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._count = len(fields)
        chosen = [next((name for name in names if name in fields), None) for names in FIELDS]
        self._names = tuple(name or names[0] for name, names in zip(chosen, FIELDS, strict=True))
        # What was not asked for is one behind the last word.
        self._in_order = itemgetter(*(self._count if name is None else fields.index(name) for name in chosen))

    def rows(self, content: bytes) -> list[Words]:
        """Read the CSV; lines of another shape (warnings, which go to the same place) are left out."""
        rows: list[Words] = []
        for line in content.decode(errors="replace").splitlines():
            words: list[str | None] = [*line.split(", ")]
            if len(words) != self._count:
                words = [word.strip() for word in line.split(",")]
            if (
                len(words) == self._count
                and len(line) <= MAX_ROW_LENGTH
                and number_of(words[0]) is not None  # the index, whatever else was asked for
            ):
                words.append(None)
                rows.append(self._in_order(words))
        return rows

    def named(self, words: Words) -> Row:
        """Give the words of a row by the fields that were asked for."""
        return {name: word for name, word in zip(self._names, words, strict=True) if word is not None}


def parse_apps(content: bytes) -> tuple[list[App], list[str]]:
    """Read the process list in the order of ``APP_FIELDS``; also gives the lines that are no such row."""
    apps = []
    unread = []
    for line in content.decode(errors="replace").splitlines():
        words = line.split(",", 3)
        uuid = words[0].strip()
        pid = words[1].strip() if len(words) >= 3 else ""
        is_pid = pid.isdecimal() and pid.isascii() and len(pid) <= MAX_PID_DIGITS
        if is_pid and (uuid.startswith("GPU-") or text_of(uuid)):
            apps.append(App(uuid, int(pid), bytes_of(words[2].strip()[:64])))
        elif line.strip() and not uuid.lower().startswith(_NO_ROWS):
            unread.append(line)
    return apps, unread
