"""aliases.csv: lines ``alias1,alias2,user # comment`` that say which names are one person."""

from __future__ import annotations

from pathlib import Path

from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import LABEL_LENGTH

__all__ = ["parse_aliases", "read_aliases"]


def parse_aliases(text: str, file: str) -> dict[str, str]:
    """Read alias to user. ``Misconfigured`` with the lines that cannot be used and what to do."""
    users: dict[str, str] = {}
    places: dict[str, int] = {}
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        words = [word.strip() for word in line.partition("#")[0].split(",")]
        if words == [""]:
            continue
        *aliases, user = words
        if not aliases or not all(words):
            wrong.append(f"{file}:{number}: write alias,user (several aliases may stand before the user)")
        elif any(len(word) > LABEL_LENGTH for word in words):
            wrong.append(f"{file}:{number}: a name of more than {LABEL_LENGTH} letters; shorten it")
        for alias in aliases:
            if users.get(alias, user) != user:
                wrong.append(
                    f'{file}:{number}: "{alias}" stands for {users[alias]} in line {places[alias]} already; keep one'
                )
            users[alias], places[alias] = user, number
    if wrong:
        raise Misconfigured(". ".join(wrong))
    return users


def read_aliases(file: Path) -> dict[str, str]:
    """Read the file; ``Misconfigured`` if it cannot be."""
    try:
        return parse_aliases(file.expanduser().read_text(encoding="utf-8-sig"), str(file))
    except OSError as error:
        raise Misconfigured(
            f"display.aliases_file: {file} cannot be read: {error.strerror}; check the path, and let this "
            "user read it"
        ) from error
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{file}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
