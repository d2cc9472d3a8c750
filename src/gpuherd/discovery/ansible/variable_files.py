"""The folders ``group_vars`` and ``host_vars`` beside an inventory, for what they say about reaching hosts.

Such files hold anything: templates, aliases, secrets, roles' settings of any depth. They are read as a stream of
events, nothing is built or expanded; of each, the words on its top level are kept and the rest is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import yaml

from gpuherd.discovery.complaints import quoted
from gpuherd.discovery.files import MAX_FILE_BYTES, read_text
from gpuherd.discovery.yaml_text import telling_faults
from gpuherd.model.errors import Misconfigured

__all__ = ["VariableFolders", "Word", "parse_variables"]

MOST_FILES = 20_000
MOST_BYTES = 16 * MAX_FILE_BYTES
MOST_DEPTH = 8
MOST_REMARKS = 3
MOST_WATCHED = 1000

_EXTENSIONS = ("", ".yml", ".yaml", ".json")
_VAULT = "$ANSIBLE_VAULT;"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Word(str):
    """A value with the place where it stands."""

    __slots__ = ("place",)
    place: str

    def __new__(cls, text: str, place: str) -> Self:
        """Say where it stands."""
        word = super().__new__(cls, text)
        word.place = place
        return word


class VariableFolders:
    """The variables of groups and hosts, read from folders; for one look at an inventory.

    ``Misconfigured`` for a file that cannot be read or understood, as Ansible would refuse it too. What is encrypted is
    passed over and told in ``remarks``.
    """

    def __init__(self, folder: Path) -> None:
        self._roots = {kind: folder / kind for kind in ("group_vars", "host_vars")}
        self._entries = {kind: _entries(root) for kind, root in self._roots.items()}
        self._files: list[Path] = []
        self._folders: list[Path] = list(self._roots.values())
        self._bytes = 0
        self._vaulted: list[str] = []

    def group(self, name: str) -> dict[str, Word]:
        """Give what the files of a group say."""
        return self._variables("group_vars", name)

    def host(self, name: str) -> dict[str, Word]:
        """Give what the files of a host say."""
        return self._variables("host_vars", name)

    @property
    def looked_at(self) -> tuple[Path, ...]:
        """What shows a change: the folders, whose stamps change when a file comes or goes, and files.

        Of more than some files a change is noticed when the list is read again anyway.
        """
        return (*self._folders, *self._files[:MOST_WATCHED])

    @property
    def remarks(self) -> tuple[str, ...]:
        """What people should know of files that were not read."""
        shown = [
            f"{place}: is encrypted (ansible-vault) and not read; the variables that say how to reach a "
            "host must not be encrypted"
            for place in self._vaulted[:MOST_REMARKS]
        ]
        if len(self._vaulted) > MOST_REMARKS:
            shown.append(f"{len(self._vaulted) - MOST_REMARKS} more encrypted entries are not read")
        return tuple(shown)

    def _variables(self, kind: str, name: str) -> dict[str, Word]:
        variables: dict[str, Word] = {}
        for file in self._files_of(kind, name):
            variables.update(self._read(file))
        return variables

    def _files_of(self, kind: str, name: str) -> list[Path]:
        """Give the files of a name as Ansible finds them: the first spelling that is there, or a whole folder."""
        # Only names that a listing of the folder has given are opened: no name leads out of it.
        found = next((name + end for end in _EXTENSIONS if name + end in self._entries[kind]), None)
        if found is None:
            return []
        path = self._roots[kind] / found
        return list(self._below(path, 0)) if path.is_dir() else [path]

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        self._folders.append(folder)
        if depth >= MOST_DEPTH:
            raise Misconfigured(f"{folder}: nested more than {MOST_DEPTH} folders deep; use fewer levels")
        for entry in sorted(_entries(folder)):
            path = folder / entry
            if entry.startswith(".") or entry.endswith("~"):
                continue
            if path.is_dir():
                if not path.suffix:
                    yield from self._below(path, depth + 1)
            elif path.suffix in _EXTENSIONS:
                yield path

    def _read(self, file: Path) -> dict[str, Word]:
        if len(self._files) >= MOST_FILES:
            raise Misconfigured(f"{file}: more than {MOST_FILES} variable files; this is not a list of hosts")
        self._files.append(file)
        text = read_text(file)
        self._bytes += len(text)
        if self._bytes > MOST_BYTES:
            raise Misconfigured(
                f"{file}: variable files of more than {MOST_BYTES >> 20} MiB; this is not a list of hosts"
            )
        if text.lstrip().startswith(_VAULT):
            self._vaulted.append(str(file))
            return {}
        variables, vaulted = parse_variables(text, str(file))
        self._vaulted += vaulted
        return variables


def _entries(folder: Path) -> frozenset[str]:
    """List a folder; one that is not there, or is no folder, is empty."""
    try:
        with os.scandir(folder) as found:
            return frozenset(entry.name for entry in found)
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError as error:
        raise Misconfigured(
            f"{folder}: cannot be listed ({error.strerror}); let the hub's user read it"
        ) from error


def parse_variables(text: str, file: str) -> tuple[dict[str, Word], list[str]]:
    """Read the words on the top level, and the places of those among them that are encrypted.

    An alias of a word counts as that word; lists, mappings and what ``<<`` merges say nothing about reaching a host.
    """
    with telling_faults(file):
        return _TopLevel(file).read(text)


class _TopLevel:
    def __init__(self, file: str) -> None:
        self._file = file
        self._words: dict[str, Word] = {}
        self._anchors: dict[str, str] = {}
        self._vaulted: list[str] = []

    def read(self, text: str) -> tuple[dict[str, Word], list[str]]:
        depth = 0
        key: str | None = None
        is_key = True
        for event in yaml.parse(text, Loader=_Loader):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.ScalarEvent) and event.anchor:
                self._anchors[event.anchor] = str(event.value)
            if isinstance(event, yaml.CollectionStartEvent):
                if depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                    raise self._no_mapping(line)
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif not isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
                continue
            elif depth == 0:
                if isinstance(event, yaml.ScalarEvent) and event.value in _NULLS:
                    continue
                raise self._no_mapping(line)
            elif depth == 1 and not is_key and key is not None:
                self._take(key, event, line)
            if depth != 1 or (depth == 1 and isinstance(event, yaml.MappingStartEvent)):
                continue
            # On the top level a key or a value has just ended.
            if is_key:
                key = event.value if isinstance(event, yaml.ScalarEvent) else None
            is_key = not is_key
        return self._words, self._vaulted

    def _no_mapping(self, line: int) -> Misconfigured:
        return Misconfigured(f"{self._file}:{line}: variables must be keys with values; write key: value")

    def _take(self, key: str, event: yaml.Event, line: int) -> None:
        place = f"{self._file}:{line}"
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self._anchors:
                self._words[key] = Word(self._anchors[event.anchor], place)
            return
        if not isinstance(event, yaml.ScalarEvent):
            return
        if event.tag == "!vault":
            self._vaulted.append(f"{place}, {quoted(key)}")
            return
        is_null = event.implicit[0] and event.value in _NULLS
        self._words[key] = Word("" if is_null else str(event.value), place)
