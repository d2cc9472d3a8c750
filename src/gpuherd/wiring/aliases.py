"""aliases.csv: lines ``alias1,alias2,user # comment`` that say which names are one person."""

from __future__ import annotations

import logging
from pathlib import Path

from msgspec import Struct

from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import LABEL_LENGTH, too_large

__all__ = ["Aliases", "decoded", "parse_aliases", "read_aliases"]

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 4 * 2**20
COMPLAINTS_LOGGED = 50


class Aliases(Struct, frozen=True):
    """What a file says: alias to user, and of each line that is not taken where it stands and what to do."""

    users: dict[str, str]
    complaints: tuple[str, ...]


def parse_aliases(text: str, file: str) -> Aliases:
    """Read alias to user; a line that cannot be used does not cost the others.

    A line of one name says nothing, and one that ends with a comma hides someone in the older page; neither is wrong.
    """
    users: dict[str, str] = {}
    places: dict[str, int] = {}
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        *aliases, user = (word.strip() for word in line.partition("#")[0].split(","))
        if not user:
            continue
        if any(len(word) > LABEL_LENGTH for word in (*aliases, user)):
            wrong.append(f"{file}:{number}: a name has more than {LABEL_LENGTH} characters; shorten it")
            continue
        for alias in aliases:
            if not alias:
                wrong.append(f"{file}:{number}: write alias,user (several aliases can precede the user)")
            elif users.get(alias, user) != user:
                wrong.append(
                    f'{file}:{number}: "{alias}" is already an alias of {users[alias]} in line {places[alias]}; '
                    "keep one"
                )
            elif _leads_to(alias, user, users):
                wrong.append(
                    f'{file}:{number}: "{user}" is already an alias of "{alias}"; keep one of these lines'
                )
            elif alias != user:
                users[alias], places[alias] = user, number
    return Aliases(users, tuple(wrong))


def _leads_to(alias: str, user: str, users: dict[str, str]) -> bool:
    """Whether someone would stand for themselves, round a few corners."""
    if alias == user:
        return False
    while user in users:
        user = users[user]
        if user == alias:
            return True
    return False


def read_aliases(file: Path) -> dict[str, str]:
    """Read the file and log what of it is not taken; ``Misconfigured`` if it cannot be read as a whole."""
    try:
        with file.expanduser().open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Misconfigured(
            f"display.aliases_file: {file} cannot be read: {error.strerror}; check the path, and let this "
            "user read it"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise Misconfigured(
            f"{file}: {too_large(content, MAX_FILE_BYTES)}; this is not a list of names, choose another file"
        )
    aliases = parse_aliases(decoded(content), str(file))
    for complaint in aliases.complaints[:COMPLAINTS_LOGGED]:
        log.warning("%s", complaint)
    return aliases.users


def decoded(content: bytes) -> str:
    """Decode names as they are found: UTF-8, or what older editors wrote."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
