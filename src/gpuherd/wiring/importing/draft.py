"""gpuherd.toml as it will be: entries are added to the text that is there, each one checked before it counts."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

from gpuherd.discovery.files import located
from gpuherd.discovery.settings import AnsibleSettings, ConsulSettings, FindSettings, SlurmSettings
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.targets import Target
from gpuherd.wiring.config import Config, read_config
from gpuherd.wiring.finders import make_finder
from gpuherd.wiring.importing.reading import (
    BookingsEntry,
    Entry,
    FolderEntry,
    GpustatEntry,
    KeysEntry,
    NodesEntry,
)
from gpuherd.wiring.importing.toml_text import appended, block, grown, insert

__all__ = ["Draft"]

_GROWING = {"hub.allowed_hosts", "legacy.gpustat.origins"}
"""Lists to which several files add."""
_NEEDED = "legacy.gpustat"
"""A table that cannot begin with its lesser keys."""
_FILE_KINDS = {"hosts_file", "ini", "yaml", "ansible"}


class Draft:
    """The file as it will be. Each entry is tried on its own: one that does not fit leaves the others alone."""

    def __init__(self, text: str, output: Path) -> None:
        self.text = text
        self.remarks: list[str] = []
        self.added: list[str] = []
        self._output = output
        self._folder = output.absolute().parent
        self._config = self._check(text)
        listed = self._listed()
        self._named = {target.name.lower() for target in listed}
        self._addresses = {target.address.lower() for target in listed}

    def add(self, entry: Entry, origin: str) -> None:
        """Put an entry in, or remark why not."""
        match entry:
            case NodesEntry():
                self._add_nodes(entry, origin)
            case GpustatEntry():
                self._add_gpustat(entry, origin)
            case FolderEntry():
                if any(
                    located(folder.path, self._folder) == Path(entry.path) for folder in self._config.folders
                ):
                    self.remarks.append(f"{entry.path}: is already watched")
                else:
                    self._append(entry, origin)
            case KeysEntry():
                self._add_keys(entry, origin)
            case BookingsEntry():
                self._add_bookings(entry, origin)

    def _add_nodes(self, entry: NodesEntry, origin: str) -> None:
        for number, group in enumerate(self._config.nodes):
            if group.find is not None and self._is_same(group.find, entry, origin):
                self.remarks.append(f"{origin}: is already there (nodes[{number}])")
                return
        if entry.targets:
            doubled = [
                target.name
                for target in entry.targets
                if target.name.lower() in self._named or target.address.lower() in self._addresses
            ]
            if len(doubled) == len(entry.targets):
                self.remarks.append(f"{origin}: all its hosts are already listed; not added twice")
                return
            if doubled:
                self.remarks.append(
                    f"{origin}: {', '.join(doubled[:10])} {'is' if len(doubled) == 1 else 'are'} already "
                    "listed; remove them from one of the lists"
                )
        if self._append(entry, origin):
            self._named |= {target.name.lower() for target in entry.targets or ()}
            self._addresses |= {target.address.lower() for target in entry.targets or ()}

    def _add_gpustat(self, entry: GpustatEntry, origin: str) -> None:
        there = self._config.legacy.gpustat
        if there is not None:
            same = there.listen.rpartition(":")[2] == entry.listen.rpartition(":")[2]
            self.remarks.append(
                f"{origin}: legacy.gpustat is already there"
                + (
                    ""
                    if same
                    else f", but listens at {there.listen}; the nodes post to {entry.listen}: change one of them"
                )
            )
        elif not entry.networks and block(entry, origin) in self.text.replace("\r\n", "\n"):
            self.remarks.append(f"{origin}: is already noted; it still needs --network")
        else:
            self._append(entry, origin)

    def _add_bookings(self, entry: BookingsEntry, origin: str) -> None:
        there = self._config.bookings.comments
        if there is None:
            self._append(entry, origin)
        elif there.file is not None and located(there.file, self._folder) == Path(entry.file):
            self.remarks.append(f"{origin}: is already imported (bookings.comments)")
        else:
            self.remarks.append(f"{origin}: bookings.comments is already set to another value, which is kept")

    def _add_keys(self, entry: KeysEntry, origin: str) -> None:
        there = self._table(entry.table)
        if there is None and entry.table == _NEEDED:
            self.remarks.append(
                f"{origin}: {', '.join(entry.values)} belong to {_NEEDED}, which is missing; import "
                "run-this-on-every-node.sh with --network, then this file again"
            )
            return
        there = there or {}
        fresh: dict[str, Any] = {}
        same: list[str] = []
        for key, value in entry.values.items():
            is_growing = f"{entry.table}.{key}" in _GROWING
            missing = [each for each in value if each not in there.get(key, ())] if is_growing else []
            if key not in there:
                fresh[key] = value
            elif there[key] == value or (is_growing and not missing):
                same.append(key)
            elif is_growing:
                self._grow(entry.table, key, missing, origin)
            else:
                self.remarks.append(
                    f"{origin}: {entry.table}: {key} is already set to another value, which is kept"
                )
        if same:
            self.remarks.append(
                f"{origin}: {entry.table}: {', '.join(same[:10])} {'is' if len(same) == 1 else 'are'} there already"
            )
        if fresh:
            new = KeysEntry(table=entry.table, values=fresh)
            written = block(new, origin)
            text = insert(self.text, new, origin)
            if not self._try(appended(self.text, written) if text is None else text, written):
                self._by_hand(new, origin)

    def _grow(self, table: str, key: str, values: list[str], origin: str) -> None:
        new = KeysEntry(table=table, values={key: values})
        text = grown(self.text, key, values)
        if text is None or not self._try(text, block(new, origin)):
            self._by_hand(new, origin)

    def _append(self, entry: Entry, origin: str) -> bool:
        written = block(entry, origin)
        if self._try(appended(self.text, written), written):
            return True
        self._by_hand(entry, origin)
        return False

    def _try(self, text: str, written: str) -> bool:
        try:
            self._config = self._check(text)
        except Misconfigured:
            return False
        self.text = text
        self.added.append(written)
        return True

    def _by_hand(self, entry: Entry, origin: str) -> None:
        self.remarks.append(
            f"{origin}: could not be added to {self._output}, which has another layout; add this by hand:\n"
            + block(entry, origin)
        )

    def _check(self, text: str) -> Config:
        return read_config(text, str(self._output), folder=self._folder)

    def _table(self, name: str) -> dict[str, Any] | None:
        found: Any = tomllib.loads(self.text)
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None

    def _is_same(self, there: FindSettings, entry: NodesEntry, origin: str) -> bool:
        """Tell whether nodes are found in the same place, however they are reached."""
        new = entry.find or {}
        if isinstance(there, ConsulSettings):
            return there.url == new.get("url")
        if isinstance(there, SlurmSettings) or located(there.file, self._folder) != Path(origin):
            return False
        return not isinstance(there, AnsibleSettings) or list(there.groups) == new.get(
            "groups", list(there.groups)
        )

    def _listed(self) -> list[Target]:
        """Whom the configuration names already, as far as files on this machine tell."""
        targets: list[Target] = []
        for number, group in enumerate(self._config.nodes):
            if group.find is not None and str(group.find.__struct_config__.tag) not in _FILE_KINDS:
                continue
            try:
                finder, fixed = make_finder(group, f"nodes[{number}].hosts", self._folder)
                targets += fixed if fixed is not None else asyncio.run(finder.find())
            except (Failed, Misconfigured):
                continue  # the hub will say so; here it only helps not to add a host twice
        return targets
