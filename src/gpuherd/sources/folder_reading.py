"""Safe reading of a folder into which others write: regular files only, never below it, never too much.

A name that is found is matched and shown, but never put together to a path: files are opened by their name in the
folder's own descriptor, and neither links nor pipes are followed or waited for.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gpuherd.model.errors import Failed

__all__ = ["KINDS", "MAX_FILE_BYTES", "Drop", "Stamp", "open_folder", "read_file", "scan"]

MAX_FILE_BYTES = 4 * 2**20
MAX_ENTRIES = 50_000
KINDS = ("gpus", "processes", "users", "status", "cpus", "disks")
_CSV = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]{{0,126}})_({'|'.join(KINDS)})\.csv")
_JSON = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,126})\.json")
_OTHER_JSON = frozenset({"comments", "hosts", "fetch_stats_conf"})
"""Files of the older tool that lie in the same folder and are no reports."""


class Stamp(NamedTuple):
    """By what a changed file is recognised."""

    inode: int
    size: int
    mtime_ns: int


Drop = Mapping[str, Stamp]
"""The files of one host, by kind; ``json`` is a report of our own."""


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Give a descriptor of the folder; ``Failed`` names it and says what to do."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Failed(
            f"the folder {path} cannot be opened: {error.strerror}; make it, mount it, or correct folders.path"
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def scan(folder: int, max_hosts: int) -> tuple[dict[str, Drop], int]:
    """List the hosts' files, and count the hosts that are one too many; ``Failed`` if the folder is no such folder."""
    hosts: dict[str, dict[str, Stamp]] = {}
    left_out: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_ENTRIES:
                    raise Failed(f"the folder has more than {MAX_ENTRIES} entries; clear it out")
                host, kind = _named(entry.name)
                if host is None:
                    continue
                if host not in hosts and len(hosts) >= max_hosts:
                    left_out.add(host)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode):
                        hosts.setdefault(host, {})[kind] = _stamp(found)
    except OSError as error:
        raise Failed(f"the folder cannot be listed: {error.strerror}; allow it to the hub's user") from error
    return dict(hosts), len(left_out)


def _named(file_name: str) -> tuple[str | None, str]:
    found = _CSV.fullmatch(file_name)
    if found is not None:
        return found[1], found[2]
    found = _JSON.fullmatch(file_name)
    if found is not None and found[1] not in _OTHER_JSON:
        return found[1], "json"
    return None, ""


def file_name(host: str, kind: str) -> str:
    """Give the name under which a host's file was found."""
    return f"{host}.json" if kind == "json" else f"{host}_{kind}.csv"


def read_file(folder: int, host: str, kind: str, expected: Stamp) -> bytes | None:
    """Read a file as it was found, of a large CSV only the end; none if it has changed, or changes meanwhile."""
    try:
        descriptor = os.open(
            file_name(host, kind),
            os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
            dir_fd=folder,
        )
    except OSError:
        return None  # gone, replaced by a link, or not for us: the next look tells
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode) or _stamp(before) != expected:
            return None
        start = max(0, before.st_size - MAX_FILE_BYTES) if kind != "json" else 0
        content = os.pread(descriptor, MAX_FILE_BYTES + 1, start)
        if _stamp(os.fstat(descriptor)) != expected or len(content) < min(before.st_size, MAX_FILE_BYTES):
            return None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return content.partition(b"\n")[2] if start else content


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)
