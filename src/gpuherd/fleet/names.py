"""What nodes, GPUs and users are called in front of people, and in which order nodes come."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import ip_address

from msgspec import structs

from gpuherd.fleet.settings import DisplaySettings
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.people import person_key
from gpuherd.model.processes import ProcessTable

__all__ = ["UNKNOWN_TYPE", "Names", "natural_key", "short_name"]

UNKNOWN_TYPE = "unknown type"
"""Short name of a GPU whose product name nobody knows: one that was lost before it could be read."""

UNORDERED = 1_000_000
"""Place of the nodes that the order does not name: after all that it does."""

_MAKER = re.compile(
    r"\b(NVIDIA|AMD|Intel(\(R\))?|Corporation|Graphics Device|GeForce|Tesla|Quadro|Instinct|Radeon|Generation)\b",
    re.IGNORECASE,
)
_FORM = re.compile(r"[- ](SXM\d?|PCIE|PCIe|HBM\d\w?|OAM|NVL)(?=[- ]|$)", re.IGNORECASE)
_PROFILE = re.compile(r"\bMIG\b.*$")
_NO_TYPE = ("", "gpu", "graphics device", "unknown")
"""What is left of a name that says nothing about the type, such as ``NVIDIA GPU``."""
_SEPARATORS = re.compile(r"[-\s]+(?=\d+ ?GB\b)|\s{2,}")


def short_name(facts: DeviceFacts) -> str:
    """Shorten ``NVIDIA A100-SXM4-80GB`` to ``A100 80GB``; a slice gets its profile behind it."""
    name = _shortened(facts.name)
    return f"{name} {facts.profile}" if facts.profile else name


@lru_cache(4096)  # a herd has many devices, but few kinds of them
def _shortened(full_name: str) -> str:
    name = _PROFILE.sub("", full_name)
    name = _FORM.sub(" ", _MAKER.sub(" ", name))
    name = _SEPARATORS.sub(" ", name).strip(" -") or full_name
    return UNKNOWN_TYPE if name.casefold() in _NO_TYPE else name


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort as people count: gpu2 before gpu10, capitals as small letters."""
    return tuple(
        (0, int(part[:18]), part) if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"(\d+)", name.casefold())
        if part
    )


class Names:
    """The names that an operator has chosen, and those we make where he has not."""

    def __init__(self, settings: DisplaySettings, aliases: dict[str, str] | None = None) -> None:
        """``aliases`` come from a file; those in the settings win."""
        self._nodes = settings.nodes
        self._short_node_names = settings.short_node_names
        self._gpus = settings.gpus
        self._order = settings.order
        self._keep_list_order = settings.keep_list_order
        self._users = {**(aliases or {}), **settings.users}
        self._holders = {person_key(alias): user for alias, user in self._users.items()}

    def gpu(self, facts: DeviceFacts) -> str:
        """Give a device's short name; a slice keeps its profile behind a chosen one."""
        chosen = self._gpus.get(facts.name)
        if chosen is None:
            return short_name(facts)
        return f"{chosen} {facts.profile}" if facts.profile else chosen

    def node(self, node_id: str, name: str, hostname: str | None) -> str:
        """Give a node's shown name. A bare address gets what the machine calls itself before it."""
        chosen = self._nodes.get(name) or self._nodes.get(node_id)
        if chosen is not None:
            return chosen
        if _is_address(name):
            return f"{self._host(hostname)} ({name})" if hostname and hostname != name else name
        return self._host(name)

    def _host(self, name: str) -> str:
        label = name.partition(".")[0]
        return label if label and self._short_node_names else name

    def place(self, node_id: str, name: str, list_position: int | None) -> int:
        """Give a number by which to sort nodes before their names are looked at."""
        shown = self._nodes.get(name) or self._nodes.get(node_id) or name
        for place, pattern in enumerate(self._order):
            if any(fnmatchcase(candidate, pattern) for candidate in (node_id, name, shown)):
                return place
        if self._keep_list_order and list_position is not None:
            return len(self._order) + min(list_position, UNORDERED - 1)
        return len(self._order) + UNORDERED

    def user(self, name: str) -> str:
        """Give the user whom a name stands for; itself if it is no alias."""
        return self._users.get(name, name)

    def holder(self, name: str) -> str:
        """Give the user whom the name of a booking's holder stands for; such names are compared by ``person_key``."""
        return self._users.get(name) or self._holders.get(person_key(name), name)

    def with_aliases(self, users: Collection[str]) -> frozenset[str]:
        """Give these users and all names that stand for one of them."""
        return frozenset(users).union(alias for alias, user in self._users.items() if user in users)

    def person(self, users: Collection[str]) -> str | None:
        """Give the one person that all of these users are, as far as aliases tell; none if they are several."""
        persons = {self.user(user) for user in users}
        return persons.pop() if len(persons) == 1 else None

    def table(self, table: ProcessTable) -> ProcessTable:
        """Replace aliases by the users behind them."""
        users = self._users
        if not users or not any(process.user in users for process in table.processes):
            return table
        return structs.replace(
            table,
            processes=tuple(
                structs.replace(process, user=users[process.user])
                if process.user is not None and process.user in users
                else process
                for process in table.processes
            ),
        )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
