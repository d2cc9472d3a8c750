"""hosts.txt: one host a line."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from gpuherd.discovery.complaints import Complaints, numbered_lines
from gpuherd.discovery.files import FileFinder, located
from gpuherd.discovery.hosts import gather, parse_host
from gpuherd.discovery.settings import HostsFileSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import NodeWay, Target

__all__ = ["HostsFileFinder", "parse_hosts"]

_COMMENT = re.compile(r"(^|\s)#.*")


def parse_hosts(text: str, file: str, complaints: Complaints | None = None) -> tuple[Target, ...]:
    """Read a list of hosts; ``#`` begins a comment. ``Misconfigured`` names every bad line.

    A line of the kind ``192.168.0.1 gpu01 …``, as in /etc/hosts, gives the node gpu01 at that address.
    """
    complaints = complaints or Complaints(file)
    found = []
    for number, line in numbered_lines(text):
        words = _COMMENT.sub("", line).split()
        if not words:
            continue
        entry = f"{words[1]}={words[0]}" if len(words) > 1 and _is_address(words[0]) else " ".join(words)
        try:
            found.append((number, parse_host(entry, complaints.place(number))))
        except Misconfigured as error:
            complaints.add_error(error)
    return gather(found, complaints)


class HostsFileFinder(FileFinder):
    """The hosts of a text file."""

    def __init__(self, settings: HostsFileSettings, *, base: Path, way: NodeWay = "ssh") -> None:
        super().__init__(located(settings.file, base), parse_hosts, every_seconds=settings.every_seconds)


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True
