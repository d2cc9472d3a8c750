"""comments.json of an older page: who has which GPU until when, read as it is found in the wild and written again.

``{host: [{name, date, comment}, …]}`` or ``{host: {"0": {name, date, comment}}}``; the place in the list, or the key,
is the GPU's index. ``date`` is local time of the machine that served the page. Reading is pure: bytes in, entries and
complaints out; one bad entry does not cost the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from msgspec import Struct

from gpuherd.model.errors import Refused
from gpuherd.model.json_tables import JsonTable, read_tables
from gpuherd.model.text import LABEL_LENGTH, clean, clip, too_large

__all__ = [
    "COMMENT_LENGTH",
    "MAX_FILE_BYTES",
    "CommentEntry",
    "Comments",
    "Complaint",
    "is_own_form",
    "read_comments",
    "write_comments",
]

MAX_FILE_BYTES = 4 * 2**20
MAX_INDEX = 4096
COMMENT_LENGTH = 2000
_LATEST = 253_402_300_799
_DATE = re.compile(
    r"(?a)(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?\s*(Z|[+-]\d{2}:?\d{2})?"
)
_RELATIVE = re.compile(r"(\d+\s*[wdhm]\s*)+", re.IGNORECASE)
# What JSON does not have and people write all the same: comments, and a comma before a closing bracket. A text is
# matched whole so that nothing inside of it counts; nothing is tried twice, or a hostile file would take for ever.
_NOT_JSON = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*+")
    |//[^\n]*+ | /\*(?>.*?\*/|.*)
    |,(?=(?:\s|//[^\n]*+|/\*(?>.*?\*/|.*))*+[}\]])""",
    re.VERBOSE | re.DOTALL,
)


class CommentEntry(Struct, frozen=True, kw_only=True):
    """One GPU that someone has until a moment; whether that lies in the past is not asked here."""

    host: str
    index: int
    name: str
    until: int
    """UTC epoch seconds: the first that is free again."""
    comment: str
    line: int | None = None
    """Of the file from which it was read."""


class Complaint(Struct, frozen=True, kw_only=True):
    """What of the file cannot be used, and what to do about it."""

    host: str
    index: str | None
    """As it stands in the file; none if it is about the host as a whole."""
    reason: str
    line: int | None = None

    @property
    def sentence(self) -> str:
        """What is wrong, without the line."""
        return f"{self.host}{'' if self.index is None else f':{self.index}'}: {self.reason}"

    def __str__(self) -> str:
        return self.sentence if self.line is None else f"line {self.line}: {self.sentence}"


class Comments(Struct, frozen=True, kw_only=True):
    """What a file says."""

    entries: tuple[CommentEntry, ...]
    complaints: tuple[Complaint, ...]
    hosts: tuple[str, ...] = ()
    """Every host that it names, also those of which nothing is booked."""


def read_comments(content: bytes, zone: tzinfo) -> Comments:
    """Read the file; ``zone`` is where its local times are meant.

    ``Refused`` if it is no such file as a whole, or only half of one; the text names the line.
    """
    if len(content) > MAX_FILE_BYTES:
        raise Refused(
            "comments_too_large", f"{too_large(content, MAX_FILE_BYTES)}, so it is not a comments.json"
        )
    hosts = _read_hosts(_text(content))
    reason = "is in the file twice; keep one, the last is used"
    complaints = [
        Complaint(host=_shown(host), index=None, reason=reason, line=hosts.lines[host])
        for host in hosts.doubled
    ]
    entries: list[CommentEntry] = []
    named: list[str] = []
    for host, gpus in hosts.items():
        if not host or len(host) > LABEL_LENGTH or clean(host) != host:
            reason, line = "is not a host name; correct it", hosts.lines[host]
            complaints.append(Complaint(host=_shown(host), index=None, reason=reason, line=line))
            continue
        named.append(host)
        complaints += _doubled_in(host, gpus)
        for index, entry in _indexed(gpus):
            line = entry.line if isinstance(entry, JsonTable) else hosts.lines[host]
            try:
                read = _entry(host, index, entry, zone, line)
            except _Unusable as error:
                place = None if index is None else _shown(index)
                complaints.append(Complaint(host=host, index=place, reason=str(error), line=line))
            else:
                entries += [] if read is None else [read]
    return Comments(entries=tuple(entries), complaints=tuple(complaints), hosts=tuple(named))


def _doubled_in(host: str, gpus: Any) -> Iterable[Complaint]:
    """Complain of GPUs that stand in a host's table twice, and of entries that say something twice."""
    if isinstance(gpus, JsonTable):
        reason = "is in the file twice; keep one, the last is used"
        for index in gpus.doubled:
            yield Complaint(host=host, index=_shown(index), reason=reason, line=gpus.lines[index])
    for place, entry in _indexed(gpus):
        if place is not None and isinstance(entry, JsonTable):
            for field in entry.doubled:
                reason = f"has {_shown(field)} twice; keep one, the last is used"
                yield Complaint(host=host, index=_shown(place), reason=reason, line=entry.lines[field])


def write_comments(hosts: Mapping[str, Iterable[CommentEntry]], zone: tzinfo) -> bytes:
    """Write the list form, in ASCII and without comments, as the older page's own ``json_decode`` wants it.

    A GPU that nobody has stands as an entry of empty texts, which is how that page writes one that was reset.
    """
    content: dict[str, list[dict[str, str]]] = {}
    for host, entries in hosts.items():
        by_index = {entry.index: entry for entry in entries}
        content[host] = [
            _written(by_index.get(index), zone) for index in range(max(by_index, default=-1) + 1)
        ]
    return (json.dumps(content, indent=2) + "\n").encode("ascii")


def is_own_form(content: bytes) -> bool:
    """Whether a file is as ``write_comments`` writes it: nothing but what was exported is lost with it."""
    try:
        return (json.dumps(json.loads(content), indent=2) + "\n").encode("ascii") == content
    except (ValueError, RecursionError):
        return False


def _written(entry: CommentEntry | None, zone: tzinfo) -> dict[str, str]:
    if entry is None:
        return {"name": "", "date": "", "comment": ""}
    # The page knows no seconds; a booking must not look shorter than it is.
    moment = datetime.fromtimestamp(-(-entry.until // 60) * 60, UTC).astimezone(zone)
    return {"name": entry.name, "date": f"{moment:%Y-%m-%d %H:%M}", "comment": entry.comment}


def _text(content: bytes) -> str:
    """Decode; lines that are not UTF-8 are what an older editor wrote, Windows-1252 or Latin-1."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return "\n".join(_line(line) for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"))


def _line(line: bytes) -> str:
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")


def _plain_json(text: str) -> str:
    """Take comments and stray commas out; lines keep their numbers."""

    def replacement(found: re.Match[str]) -> str:
        return found[0] if found["text"] is not None else "\n" * found[0].count("\n") or " "

    return _NOT_JSON.sub(replacement, text)


class _Unusable(Exception):  # noqa: N818 - says what the entry is
    """Why an entry is not taken."""


def _read_hosts(text: str) -> JsonTable:
    """Read the outermost object; ``Refused`` if there is none."""
    if not text.strip():
        return JsonTable([], 1, [])  # as a page has it before the first booking
    try:
        content = read_tables(_plain_json(text), strict=False)
    except json.JSONDecodeError as error:
        raise Refused(
            "comments_not_json",
            f"line {error.lineno} is not JSON ({error.msg}); is the file half written? Correct that line",
        ) from None
    except (RecursionError, ValueError):
        raise Refused(
            "comments_not_json", "is nested too deeply, or contains numbers that are too large"
        ) from None
    if content == []:
        return JsonTable([], 1, [])  # how PHP writes an empty table
    if not isinstance(content, JsonTable):
        raise Refused("comments_not_json", 'is not a table of hosts; write {"host": [{"name": …}, …]}')
    return content


def _indexed(gpus: Any) -> Iterable[tuple[str | None, Any]]:
    match gpus:
        case list():
            return ((str(index), entry) for index, entry in enumerate(gpus))
        case dict():
            return gpus.items()
        case None:
            return ()
        case _:
            return ((None, gpus),)


def _entry(host: str, index: str | None, entry: Any, zone: tzinfo, line: int) -> CommentEntry | None:
    """Give what one entry says, none if it is empty; ``_Unusable`` says why it cannot be used."""
    if index is None:
        raise _Unusable("is neither a list nor a table of GPUs; write [{…}, …] with one entry per GPU")
    if entry is None or entry in ("", [], {}):
        return None
    if not isinstance(entry, dict):
        raise _Unusable('is not an entry; write {"name": …, "date": …, "comment": …}')
    name = clean(_field(entry, "name"), LABEL_LENGTH)
    date = _field(entry, "date")
    if not name and not date:
        return None
    if not index.isascii() or not index.isdigit() or str(int(index[:9])) != index or int(index) > MAX_INDEX:
        raise _Unusable("is not the index of a GPU; write 0, 1, 2, …")
    if not name:
        raise _Unusable("has a date but no name; add the name, or remove the date")
    if not date:
        raise _Unusable(f'{name} has no date; write when the booking ends, such as "2026-07-01 18:00"')
    return CommentEntry(
        host=host,
        index=int(index),
        name=name,
        until=_moment(date, zone),
        comment=clean(_field(entry, "comment"), COMMENT_LENGTH),
        line=line,
    )


def _field(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Unusable(f"its {key} is not a string; write it in quotation marks")
    return " ".join(str(value).split())


def _moment(date: str, zone: tzinfo) -> int:
    """Read a date as UTC epoch seconds; without a time it means midnight, at which that day begins.

    Of a local time that occurs twice the later is meant, so that nothing ends early; one that never occurs is moved on
    by what the clocks skip.
    """
    found = _DATE.fullmatch(date)
    if found is None:
        shown = clip(date, 40)
        if _RELATIVE.fullmatch(date):
            raise _Unusable(f'its date "{shown}" is a duration without a start; write YYYY-MM-DD HH:MM')
        raise _Unusable(f'its date "{shown}" cannot be read; write YYYY-MM-DD HH:MM')
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    next_day = timedelta(days=1) if (hour, minute, second) == (24, 0, 0) else timedelta()
    try:
        begin = 0 if next_day else hour
        local = datetime(year, month, day, begin, minute, second, tzinfo=_offset(found[7]) or zone) + next_day
        moment = max(int(local.replace(fold=fold).timestamp()) for fold in (0, 1))
    except (ValueError, OverflowError):
        raise _Unusable(f'its date "{clip(date, 40)}" does not exist; write YYYY-MM-DD HH:MM') from None
    if not 0 <= moment <= _LATEST:
        raise _Unusable(f'its date "{clip(date, 40)}" is out of range; write YYYY-MM-DD HH:MM')
    return moment


def _offset(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    return timezone((1 if text[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))


def _shown(text: str) -> str:
    return clean(text, 60) or '""'
