"""Safe reading of a folder into which others write: regular files only, never below it, never too much.

A name that is found is matched and shown, but never put together to a path: files are opened by their name in the
folder's own descriptor, and neither links nor pipes are followed or waited for.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gpuherd.model.errors import Failed
from gpuherd.model.text import clean, too_large

__all__ = [
    "HOSTS_NAME",
    "KINDS",
    "MAX_FILE_BYTES",
    "Drop",
    "Stamp",
    "is_dropped",
    "open_folder",
    "parse_hosts_json",
    "read_file",
    "read_hosts_json",
    "scan",
]

MAX_FILE_BYTES = 4 * 2**20
MAX_ENTRIES = 50_000
KINDS = ("gpus", "processes", "users", "status", "cpus", "disks", "local")
_CSV = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]{{0,126}})_(?:({'|'.join(KINDS[:-1])})\.csv|(local)\.txt)")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_JSON = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,126})\.json")
HOSTS_NAME = "hosts.json"
_OTHER_JSON = frozenset({"comments", "hosts", "fetch_stats_conf", "stats", "statsV2"})
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
            f"the folder {path} cannot be opened: {error.strerror}; create it, mount it, or correct "
            "folders.path"
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def scan(
    folder: int, max_hosts: int, is_known: Callable[[str], bool] = lambda _: False
) -> tuple[dict[str, Drop], int]:
    """List the hosts' files, and count the hosts above the limit; ``Failed`` if it is not such a folder.

    Known hosts come first, so that files with made-up names cannot take their place.
    """
    found: dict[str, list[tuple[str, os.DirEntry[str]]]] = {}
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_ENTRIES:
                    raise Failed(f"the folder has more than {MAX_ENTRIES} entries; clean it up")
                host, kind = _named(entry.name)
                if host is None:
                    continue
                found.setdefault(host, []).append((kind, entry))
        hosts: dict[str, Drop] = {}
        left_out = 0
        for host in sorted(found, key=lambda name: not is_known(name)):
            if len(hosts) >= max_hosts:
                left_out += 1
            elif drop := _stamps(found[host]):
                hosts[host] = drop
    except OSError as error:
        raise Failed(f"the folder cannot be listed: {error.strerror}; let the hub's user read it") from error
    return hosts, left_out


def _stamps(entries: Iterable[tuple[str, os.DirEntry[str]]]) -> Drop:
    """Find the files of one host; links, folders and pipes are ignored."""
    stamps: dict[str, Stamp] = {}
    for kind, entry in entries:
        with contextlib.suppress(FileNotFoundError):
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                stamps[kind] = _stamp(found)
    return stamps


def _named(file_name: str) -> tuple[str | None, str]:
    found = _CSV.fullmatch(file_name)
    if found is not None:
        return found[1], found[2] or found[3]
    found = _JSON.fullmatch(file_name)
    if found is not None and found[1] not in _OTHER_JSON:
        return found[1], "json"
    return None, ""


def is_dropped(file_name: str) -> bool:
    """Whether a file is one of those that a host drops, by its name; a report of our own is not meant."""
    return _CSV.fullmatch(file_name) is not None


def file_name(host: str, kind: str) -> str:
    """Give the name under which a host's file was found."""
    return f"{host}.json" if kind == "json" else f"{host}_{kind}.{'txt' if kind == 'local' else 'csv'}"


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


def read_hosts_json(folder: int) -> dict[str, str] | None:
    """Read the older page's hosts with their shown names; None if there is no file, ``Failed`` if it is damaged."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(HOSTS_NAME, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failed(
            f"{HOSTS_NAME} cannot be opened ({error.strerror}); let the hub's user read it"
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Failed(f"{HOSTS_NAME} is not a file; replace it with one, or remove it")
        content = os.pread(descriptor, MAX_FILE_BYTES + 1, 0)
    except OSError as error:
        raise Failed(f"{HOSTS_NAME} cannot be read ({error.strerror})") from error
    finally:
        os.close(descriptor)
    return parse_hosts_json(content)


def parse_hosts_json(content: bytes) -> dict[str, str]:
    """Read ``{host: shown name}`` without entries that are no names; ``Failed`` says what is wrong with the whole."""
    if len(content) > MAX_FILE_BYTES:
        raise Failed(f"{too_large(content, MAX_FILE_BYTES)}; this is not a valid {HOSTS_NAME}")
    try:
        found = json.loads(content.decode("utf-8-sig", errors="replace"))
    except json.JSONDecodeError as error:
        raise Failed(
            f"line {error.lineno} is not JSON ({error.msg}); is it half written? Correct that line"
        ) from None
    except (RecursionError, ValueError):
        raise Failed("is nested too deeply, or contains numbers that are too large; write it again") from None
    if not isinstance(found, dict):
        raise Failed('is not a table of hosts; write {"gpu01": "gpu01.example.org"}')
    return {
        host: clean(name.strip() or host)
        for host, name in found.items()
        if isinstance(name, str) and _HOST.fullmatch(host)
    }
