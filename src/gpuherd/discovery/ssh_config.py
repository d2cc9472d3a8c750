"""~/.ssh/config: its hosts by pattern. What stands below a host is left to the SSH client, which reads it again."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gpuherd.discovery.complaints import Complaints, numbered_lines, quoted
from gpuherd.discovery.files import FileFinder, Stamp, located, read_text, stamp
from gpuherd.discovery.hosts import gather
from gpuherd.discovery.settings import SshConfigSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import NodeWay, Target
from gpuherd.model.text import LABEL_LENGTH

__all__ = ["SshConfigFinder", "matches", "parse_ssh_config"]

_MOST_DEPTH = 16
_MOST_FILES = 256
_KEYWORD = re.compile(r"(?P<keyword>[A-Za-z]+)(\s*=\s*|\s+)(?P<rest>.*)")
_ALIAS = re.compile(r"[A-Za-z0-9_.:\[][A-Za-z0-9_.:%@+\[\]-]*")

Include = Callable[[str], Iterable[tuple[str, str]]]
"""Gives the name and text of every file that an Include pattern means."""


def parse_ssh_config(
    text: str, file: str, patterns: tuple[str, ...], include: Include = lambda pattern: ()
) -> tuple[Target, ...]:
    """Give the hosts that are named without wildcards and match ``patterns``; ``!pattern`` takes hosts out.

    Match blocks are skipped with the files they include. ``Misconfigured`` names every bad line.
    """
    complaints = Complaints(file)
    found = []
    for alias, place in _aliases(text, file, include, complaints, 0):
        if not matches(alias, patterns):
            continue
        if len(alias) > LABEL_LENGTH or not _ALIAS.fullmatch(alias):
            complaints.add_error(Misconfigured(f"{place}: {quoted(alias)} is not a usable host"))
            continue
        found.append((None, Target(name=alias, address=alias, place=place)))
    return gather(found, complaints)


def matches(alias: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether one of the patterns fits and none that begins with ``!``; ``*`` and ``?`` as in ssh_config."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return any(_fits(alias, pattern) for pattern in wanted) and not any(
        _fits(alias, pattern) for pattern in unwanted
    )


class SshConfigFinder(FileFinder):
    """The hosts of an SSH client configuration and of the files it includes."""

    def __init__(
        self, settings: SshConfigSettings, *, base: Path, way: NodeWay = "ssh", home: Path | None = None
    ) -> None:
        file = located(settings.file, base)
        super().__init__(file, self._parse_with_includes, every_seconds=settings.every_seconds)
        self._patterns = settings.patterns
        self._home = home or Path.home()
        # As ssh does it: the system's file includes from its own folder, every other one from ~/.ssh.
        self._include_base = file.parent if file.parent == Path("/etc/ssh") else self._home / ".ssh"
        self._watched: set[Path] = {file}

    def _parse_with_includes(self, text: str, file: str) -> tuple[Target, ...]:
        watched = {Path(file)}

        def include(pattern: str) -> Iterator[tuple[str, str]]:
            if pattern.startswith("~/"):
                pattern = str(self._home / pattern[2:])
            full = self._include_base / pattern
            watched.add(full.parent)  # a file that comes or goes changes its folder
            for name in sorted(glob.glob(str(full))):  # noqa: PTH207 - an absolute pattern
                if len(watched) > _MOST_FILES:
                    raise Misconfigured(f"{file}: includes more than {_MOST_FILES} files; include fewer")
                watched.add(Path(name))
                yield name, read_text(Path(name))

        try:
            return parse_ssh_config(text, file, self._patterns, include)
        finally:
            self._watched = watched

    def _stamps(self) -> tuple[Stamp | None, ...]:
        return tuple(stamp(file) for file in sorted(self._watched))


def _aliases(
    text: str, file: str, include: Include, complaints: Complaints, depth: int
) -> Iterator[tuple[str, str]]:
    """Give each host named without wildcards, with its place."""
    in_match = False
    for number, line in numbered_lines(text):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        parts = _KEYWORD.fullmatch(bare)
        keyword = parts["keyword"].lower() if parts else ""
        if parts is None or keyword not in {"host", "match", "include"}:
            continue  # the SSH client's business
        if keyword == "match":
            in_match = True
            continue
        place = f"{file}:{number}"
        try:
            words = shlex.split(parts["rest"], comments=True)
        except ValueError:
            complaints.add_error(Misconfigured(f"{place}: unclosed quotation mark; close it"))
            continue
        if keyword == "host":
            in_match = False
            yield from ((word, place) for word in words if not set(word) & set("*?!"))
        elif not in_match:
            if depth >= _MOST_DEPTH:
                raise Misconfigured(
                    f"{place}: files include each other more than {_MOST_DEPTH} levels deep; remove the loop"
                )
            for pattern in words:
                for name, content in include(pattern):
                    yield from _aliases(content, name, include, complaints, depth + 1)


def _fits(alias: str, pattern: str) -> bool:
    # Not fnmatch: its [sets] are no wildcard here. Runs of stars are one star, so that matching stays quick.
    shape = re.sub(r"\*+", "*", pattern)
    expression = "".join({"*": ".*", "?": "."}.get(letter) or re.escape(letter) for letter in shape)
    return re.fullmatch(expression, alias, re.DOTALL) is not None
