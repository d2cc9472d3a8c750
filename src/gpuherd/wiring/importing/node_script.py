"""run-this-on-every-node.sh: nodes that post the output of gpustat."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from gpuherd.discovery.complaints import numbered_lines, quoted
from gpuherd.discovery.hosts import is_port
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.importing.reading import GpustatEntry, Note, Reading
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["SERVER", "read_node_script"]

SERVER = re.compile(r"""\s*(export\s+)?SERVER=(?P<quote>["']?)(?P<value>[^"'\s;#]*)(?P=quote)""")


def read_node_script(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take the port to which nodes post. Who may post is not in the script and not guessed."""
    line, value = _server(text, file)
    # Without a login that curl takes: it is for the old backend, and not to be shown.
    value = re.sub(r"^(https?://)?[^/]*@", r"\1", value)
    authority = re.sub(r"^https?://", "", value).partition("/")[0]
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, "80"  # what curl does without a port
    if not is_port(port):
        raise Misconfigured(f"{file}:{line}: SERVER={quoted(value)} has no port that can be used; correct it")
    networks = tuple(_network(network) for network in wishes.networks)
    listen = f"[::]:{port}" if host.startswith("[") else f"0.0.0.0:{port}"
    notes = [
        Note(
            line,
            f"SERVER: nodes post to port {port} of {host}; gpuherd takes it there, nodes stay as they are",
        )
    ]
    if networks:
        notes.append(Note(None, f"{', '.join(networks)}: who may post and read, without any login"))
    else:
        notes.append(
            Note(
                None,
                "who may post is not guessed: say from which networks the nodes come, such as --network 192.168.0.0/24",
                False,
            )
        )
    entry = GpustatEntry(listen=listen, networks=networks)
    return Reading(file=str(file), what="the script that posts gpustat", notes=tuple(notes), entries=(entry,))


def _server(text: str, file: Path) -> tuple[int, str]:
    for number, line in numbered_lines(text):
        if found := SERVER.match(line):
            return number, found["value"]
    raise Misconfigured(f'{file}: there is no line SERVER="…"; which port do the nodes post to?')


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise Misconfigured(f"--network {quoted(text)}: {error}; write it as 192.168.0.0/24") from error
