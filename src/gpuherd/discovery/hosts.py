"""Hosts as people write them: ``host``, ``host:port``, ``[::1]:port``, ``user@host``, ``name=host:port``."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Iterable

from msgspec import structs

from gpuherd.discovery.complaints import Complaints, quoted
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from gpuherd.model.text import LABEL_LENGTH, SENTENCE_LENGTH, clip

__all__ = [
    "StaticFinder",
    "gather",
    "is_host",
    "is_name",
    "is_port",
    "is_user",
    "parse_host",
    "parse_host_list",
]

# A leading dash would be taken for an option by programs that are handed the host.
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@\\-]*\$?")
_DOTTED_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+){3}")
_SHAPES = "write host, host:port, [IPv6]:port, user@host or name=host:port"


def parse_host(entry: str, place: str) -> Target:
    """Read one entry; ``Misconfigured`` with ``place``, what is wrong and the remedy.

    The node's name is what stands before ``=``, else the host without user and port.
    """
    whole = entry.strip()
    if not whole:
        raise Misconfigured(f"{place}: the host is empty; {_SHAPES}")
    if any(letter.isspace() or not letter.isprintable() for letter in whole):
        raise Misconfigured(f"{place}: {quoted(whole)} is more than one word; write one host per entry")
    if "://" in whole:
        raise Misconfigured(f"{place}: {quoted(whole)} is a web address; {_SHAPES}")
    given_name, has_name, rest = whole.rpartition("=")
    user, has_user, host = rest.rpartition("@")
    if has_user and ":" in user:
        # Not repeated in the message: it is a password.
        raise Misconfigured(
            f"{place}: there is a password before @; remove it, because hosts are reached with keys"
        )
    host, port = _split_port(host, whole, place)
    if not is_host(host):
        raise Misconfigured(f"{place}: {quoted(whole)}: {_what_is_wrong(host)}")
    if has_user and not is_user(user):
        raise Misconfigured(f"{place}: {quoted(whole)}: {quoted(user)} is not a user name; {_SHAPES}")
    if has_name and not is_name(given_name):
        raise Misconfigured(
            f"{place}: {quoted(whole)}: {quoted(given_name)} is not a name; use letters, digits, '.', '_', "
            "'+' and '-'"
        )
    name = given_name or host.rstrip(".").partition("%")[0]
    return Target(name=name, address=host, port=port, user=user or None, place=clip(place, SENTENCE_LENGTH))


def parse_host_list(entries: Iterable[str], place: str) -> tuple[Target, ...]:
    """Read the entries of ``hosts = […]``; every bad one is named in one ``Misconfigured``."""
    complaints = Complaints(place)
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append((None, parse_host(entry, f"{place}, entry {number}")))
        except Misconfigured as error:
            complaints.add_error(error)
    return gather(found, complaints)


def gather(found: Iterable[tuple[int | None, Target]], complaints: Complaints) -> tuple[Target, ...]:
    """Name each node once: a repetition is noted in the place of the first, a contradiction is a complaint.

    ``found`` has each target with its line. Raises what ``complaints`` holds by then.
    """
    targets: dict[str, Target] = {}
    for line, target in found:
        key = target.name.lower()
        first = targets.get(key)
        if first is None:
            targets[key] = target
        elif _contact(first) == _contact(target):
            again = f"line {line}" if line is not None else target.place
            note = f"{first.place}; again in {again}"
            targets[key] = structs.replace(first, place=clip(note, SENTENCE_LENGTH))
        else:
            complaints.add_error(
                Misconfigured(
                    f"{target.place}: {quoted(target.name)} is already at {first.place} with another "
                    "address, port or user; give one of them another name, such as "
                    f"{target.name}-2={target.address}"
                )
            )
    complaints.raise_if_any()
    return tuple(targets.values())


def is_host(text: str) -> bool:
    """Tell whether this may be a host name or an IP address."""
    if len(text) > LABEL_LENGTH:
        return False
    if ":" in text:
        return _is_ipv6(text)
    if _DOTTED_NUMBERS.fullmatch(text):
        return _is_ipv4(text)
    return _HOST.fullmatch(text) is not None and ".." not in text


def is_name(text: str) -> bool:
    """Tell whether a node may be called so."""
    return len(text) <= LABEL_LENGTH and (_NAME.fullmatch(text) is not None or is_host(text))


def is_user(text: str) -> bool:
    """Tell whether this may be a login name."""
    return len(text) <= LABEL_LENGTH and _USER.fullmatch(text) is not None


def is_port(text: str) -> bool:
    """Tell whether this is a port in decimal digits."""
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65_535


class StaticFinder:
    """Nodes that the configuration itself lists; they change with it only."""

    def __init__(self, targets: tuple[Target, ...], *, place: str = "hosts") -> None:
        self._targets = targets
        self.name = place

    async def find(self) -> tuple[Target, ...]:
        """See ``Finder.find``."""
        return self._targets

    async def wait(self) -> None:
        """Never return: there is nothing to look at again."""
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """Nothing to let go of."""


def _split_port(host: str, whole: str, place: str) -> tuple[str, int | None]:
    if host.startswith("["):
        address, closed, behind = host[1:].partition("]")
        if not closed or (behind and not behind.startswith(":")) or not _is_ipv6(address):
            raise Misconfigured(f"{place}: {quoted(whole)}: write an IPv6 address as [::1]:port")
        host, port, has_port = address, behind[1:], bool(behind)
    elif host.count(":") > 1:
        return host, None  # a bare IPv6 address
    else:
        host, colon, port = host.partition(":")
        has_port = bool(colon)
    if not has_port:
        return host, None
    if not is_port(port):
        raise Misconfigured(f"{place}: {quoted(whole)}: the port must be a number from 1 to 65535")
    return host, int(port)


def _what_is_wrong(host: str) -> str:
    if not host:
        return f"the host is missing; {_SHAPES}"
    if len(host) > LABEL_LENGTH:
        return f"the host is longer than {LABEL_LENGTH} characters; use its short name or IP address"
    if ":" in host:
        return "not an IPv6 address; write it as ::1 or [::1]:port"
    if _DOTTED_NUMBERS.fullmatch(host):
        return "not an IP address; each number must be from 0 to 255"
    if not host.isascii():
        return "the host contains non-ASCII letters; write it in its xn-- form or use its IP address"
    if host.startswith("-"):
        return "a host cannot start with '-'"
    return "not a host name; use letters, digits, '-' and '.'"


def _contact(target: Target) -> tuple[object, ...]:
    return target.address.lower(), target.port, target.user, target.key_file, target.proxy_jump


def _is_ipv6(text: str) -> bool:
    address, _, zone = text.partition("%")
    if zone and not re.fullmatch(r"[A-Za-z0-9_.-]+", zone):
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
