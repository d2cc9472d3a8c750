"""Host patterns of an inventory: ``node[01:10].x``, ``db-[a:c]``, ``host:2222``, ``[::1]:22``."""

from __future__ import annotations

import re
import string

__all__ = ["expand", "split_port"]

_RANGE = re.compile(r"\[(?P<first>[A-Za-z]+|[0-9]*):(?P<last>[A-Za-z]+|[0-9]+)(:(?P<step>[0-9]+))?\]")
_IPV6 = re.compile(r"\[(?P<host>[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[^\]]*)?)\](:(?P<port>[0-9]+))?")
_MOST = 10_000


def expand(pattern: str) -> list[str]:
    """Give the names that a pattern stands for; ``ValueError`` says what is wrong with it."""
    match = _RANGE.search(pattern)
    if match is None:
        return [pattern]
    before, behind = pattern[: match.start()], pattern[match.end() :]
    middles, rests = _steps(match), expand(behind)
    if len(middles) * len(rests) > _MOST:
        raise ValueError(f"the range gives more than {_MOST} hosts")
    return [f"{before}{middle}{rest}" for middle in middles for rest in rests]


def split_port(pattern: str) -> tuple[str, str | None]:
    """Part a pattern from its port; ``:`` inside of brackets belongs to a range or an IPv6 address."""
    ipv6 = _IPV6.fullmatch(pattern)
    if ipv6 is not None and not _RANGE.match(pattern):
        return ipv6["host"], ipv6["port"]
    outside = re.sub(r"\[[^\]]*\]", "", pattern)
    if outside.count(":") != 1:
        return pattern, None
    host, _, port = pattern.rpartition(":")
    return (host, port) if port.isascii() and port.isdigit() else (pattern, None)


def _steps(match: re.Match[str]) -> list[str]:
    first, last, step = match["first"], match["last"], int(match["step"] or 1)
    if not step:
        raise ValueError("the range has a step of 0")
    if last.isdigit():
        first = first or "0"
        if not first.isdigit():
            raise ValueError("the range must be from number to number or from letter to letter")
        width = 0
        if len(first) > 1 and first.startswith("0"):
            if len(first) != len(last):
                raise ValueError("both ends of the range must have the same number of digits")
            width = len(first)
        if int(last) < int(first):
            raise ValueError("the range ends before it starts")
        if (int(last) - int(first)) // step >= _MOST:
            raise ValueError(f"the range gives more than {_MOST} hosts")
        numbers = range(int(first), int(last) + 1, step)
        return [str(number).zfill(width) for number in numbers]
    letters = string.ascii_letters
    if len(first) != 1 or len(last) != 1 or letters.find(first) > letters.find(last) or first.isdigit():
        raise ValueError("the range must be from number to number or from letter to letter")
    return list(letters[letters.index(first) : letters.index(last) + 1 : step])
