"""The file of a backup: gzipped JSON lines.

A header with the tables' revision; for each table its name and columns, then a list per row; at the end the count of
rows and the SHA-256 of all lines before.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gpuherd.model.errors import Refused

__all__ = [
    "BackupHeader",
    "BackupTable",
    "check_backup",
    "partial_name",
    "read_batches",
    "remove_partial_backups",
    "save_backup",
]

FORMAT = 1
BATCH_ROWS = 1000
_PARTIAL = re.compile(r"\..+\.(\d{1,10})\.partial")
_EMPTY_START = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""The start of a file that contains only gzip's header so far."""


class BackupHeader(Struct, frozen=True, kw_only=True):
    """The first line."""

    gpuherd_backup: int = FORMAT
    schema: str
    """Revision of the tables: the name of the last migration."""
    program: str
    created_at: float


class BackupTable(Struct, frozen=True, kw_only=True):
    """The line before a table's rows."""

    table: str
    columns: list[str]
    base64: list[str] = []
    """Columns that hold bytes, which are written so."""


class _End(Struct, frozen=True, kw_only=True):
    rows: int
    sha256: str


def save_backup(
    file: Path, header: BackupHeader, tables: Iterable[tuple[BackupTable, Iterable[Sequence[object]]]]
) -> int:
    """Write a backup that only its owner can read, and give its count of rows. ``OSError`` if that fails.

    A file of that name is replaced only by one that is complete and on the disk.
    """
    remove_partial_backups(file.parent)
    encode = msgspec.json.Encoder().encode
    digest, rows, partial = hashlib.sha256(), 0, partial_name(file)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:

                def write(line: bytes) -> None:
                    digest.update(line + b"\n")
                    packed.write(line + b"\n")

                write(encode(header))
                for head, content in tables:
                    write(encode(head))
                    for row in content:
                        write(encode(_written(row, head)))
                        rows += 1
                write(encode(_End(rows=rows, sha256=digest.hexdigest())))
            raw.flush()
            os.fsync(raw.fileno())
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)
    return rows


def partial_name(file: Path) -> Path:
    """Return the name under which a backup is written until it is complete."""
    return file.with_name(f".{file.name}.{os.getpid()}.partial")


def remove_partial_backups(folder: Path) -> None:
    """Remove partial files of killed backups from a folder: they contain password hashes.

    Only regular files of this user with such a name, whose process is gone and which start like a backup.
    """
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            name = _PARTIAL.fullmatch(path.name)
            with contextlib.suppress(OSError):
                if name is not None and not _is_alive(int(name[1])) and _is_own_beginning(path):
                    path.unlink()


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _is_own_beginning(path: Path) -> bool:
    """Tell whether a file belongs to this user and is the start of a backup, possibly empty."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as raw:
        facts = os.fstat(descriptor)
        if (
            not stat.S_ISREG(facts.st_mode)
            or facts.st_uid != os.geteuid()
            or stat.S_IMODE(facts.st_mode) != 0o600
        ):
            return False
        start = raw.read(4096)
    text = b""
    with contextlib.suppress(zlib.error):
        text = zlib.decompressobj(wbits=31).decompress(start, 64)
    return _EMPTY_START.startswith(start) or text.startswith(b'{"gpuherd_backup"')


def _written(row: Sequence[object], head: BackupTable) -> list[object]:
    return [
        base64.b64encode(value).decode() if name in head.base64 and isinstance(value, bytes) else value
        for name, value in zip(head.columns, row, strict=True)
    ]


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as raw:
            if raw.read(2) != b"\x1f\x8b":
                raise _no_backup(file)
            raw.seek(0)
            with gzip.open(raw, "rb") as packed:
                yield from packed
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(file) from error
    except OSError as error:
        raise Refused("no_backup", f"cannot read {file}: {error.strerror}") from error


def _no_backup(file: Path) -> Refused:
    return Refused("no_backup", f"{file} is not a backup; give a file that `gpuherd backup` wrote")


def _damaged(file: Path) -> Refused:
    return Refused("backup_damaged", f"{file} is damaged or incomplete; copy it again or use another backup")


def check_backup(file: Path, *, newest: str) -> tuple[BackupHeader, int]:
    """Read a backup through and give its header and count of rows.

    ``Refused`` ``no_backup``, ``backup_damaged``, or ``backup_newer`` if it has tables newer than those known here.
    """
    digest, last = hashlib.sha256(), b""
    header: BackupHeader | None = None
    for line in _lines(file):
        if header is None:
            try:
                header = msgspec.json.decode(line, type=BackupHeader)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise _no_backup(file) from error
            if header.gpuherd_backup != FORMAT or header.schema > newest:
                raise Refused(
                    "backup_newer",
                    f"{file} was written by a newer gpuherd ({header.program}); install that version to restore it",
                )
        digest.update(last)
        last = line
    if header is None:
        raise _no_backup(file)
    try:
        end = msgspec.json.decode(last, type=_End)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged(file) from error
    if end.sha256 != digest.hexdigest():
        raise _damaged(file)
    return header, end.rows


def read_batches(file: Path) -> Iterator[tuple[BackupTable, list[dict[str, Any]]]]:
    """Give the rows of a backup that has been checked, table by table, some at a time."""
    head = BackupTable(table="", columns=[])
    batch: list[dict[str, Any]] = []
    for line in _lines(file):
        if line.startswith(b"["):
            values = dict(zip(head.columns, msgspec.json.decode(line, type=list[Any]), strict=True))
            for name in head.base64:
                values[name] = base64.b64decode(values[name])
            batch.append(values)
        if batch and (len(batch) == BATCH_ROWS or line.startswith(b"{")):
            yield head, batch
            batch = []
        if line.startswith(b'{"table"'):
            head = msgspec.json.decode(line, type=BackupTable)
