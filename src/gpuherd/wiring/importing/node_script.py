"""The push monitor: run-this-on-every-node.sh, whose nodes post gpustat, and the .env of backend and page."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from gpuherd.api.legacy.old_login import SHA256, exposure_of, read_login_file
from gpuherd.discovery.complaints import numbered_lines, quoted
from gpuherd.discovery.hosts import is_host, is_port
from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import clean
from gpuherd.wiring.importing.reading import Entry, GpustatEntry, KeysEntry, Note, Reading
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["SERVER", "read_login_env", "read_node_script", "read_page_env"]

_PAGE_PORTS = (5173, 4173)
"""Where Vite serves the old page, in development and as a preview."""
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
    if not host or not is_port(port):
        raise Misconfigured(
            f"{file}:{line}: SERVER={quoted(value)} is not a usable host and port; correct it, as in "
            'SERVER="192.168.0.2:3000/"'
        )
    networks = tuple(_network(network) for network in wishes.networks)
    listen = f"[::]:{port}" if host.startswith("[") else f"0.0.0.0:{port}"
    notes = [
        Note(
            line,
            f"SERVER: nodes post to port {port} of {host}; gpuherd accepts it there, so the nodes need no "
            "change",
        )
    ]
    names, told = _reached_by(authority, line)
    notes += told
    if networks:
        notes.append(Note(None, f"{', '.join(networks)}: can post and read without a login"))
    else:
        notes.append(
            Note(
                None,
                "gpuherd does not guess who may post: give the networks of the nodes, such as --network "
                "192.168.0.0/24",
                False,
            )
        )
    entries = (GpustatEntry(listen=listen, networks=networks), *names)
    return Reading(file=str(file), what="the script that posts gpustat", notes=tuple(notes), entries=entries)


def read_login_env(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take the backend's .env: the file itself is what the hub compares the old page's login with."""
    del wishes
    try:
        read_login_file(file)
    except Misconfigured as error:
        raise Misconfigured(str(error).partition(": ")[2]) from error
    notes = []
    for number, key, value in _assignments(text):
        if key == "AUTH_USER":
            notes.append(Note(number, f"{key}: stays in this file; the login of the old page"))
        elif key == "AUTH_PASS":
            is_hash = SHA256.fullmatch(value) is not None
            form = (
                "the hash that the old page sends" if is_hash else "not 64 hex digits, so the password itself"
            )
            notes.append(Note(number, f"{key}: stays in this file; it is {form}"))
        else:
            notes.append(Note(number, f"{key}: for the old backend only", False))
    if (exposure := exposure_of(file)) is not None:
        notes.append(Note(None, exposure.partition(": ")[2], False))
    entry = KeysEntry(table="legacy.gpustat", values={"login_file": str(file)})
    return Reading(file=str(file), what="the login of an old page", notes=tuple(notes), entries=(entry,))


def read_page_env(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take the name under which the old page asks its backend; the rest is for the old page only."""
    del wishes
    notes: list[Note] = []
    entries: tuple[Entry, ...] = ()
    for number, key, value in _assignments(text):
        if key == "VITE_BACKEND":
            authority = re.sub(r"^[a-z]+://", "", value).partition("/")[0].rpartition("@")[2]
            notes.append(
                Note(
                    number,
                    f"{key}: the old page reads from {quoted(authority)}, which does not change",
                    bool(authority),
                )
            )
            entries, told = _reached_by(authority, number)
            notes += told
        elif key == "VITE_SESSION_DURATION":
            sentence = f"{key}: for the old page only; gpuherd's own setting is login.session_days"
            notes.append(Note(number, sentence, False))
        else:
            notes.append(
                Note(number, f"{key}: for the old page only; gpuherd's own page needs nothing", False)
            )
    if not any(key == "VITE_BACKEND" for _, key, _ in _assignments(text)):
        notes.append(Note(None, "VITE_BACKEND is not in it: nothing to set", False))
    what = "settings of the old push monitor's page"
    return Reading(file=str(file), what=what, notes=tuple(notes), entries=entries)


def _assignments(text: str) -> list[tuple[int, str, str]]:
    """Give the lines ``KEY=value`` of a .env with their numbers; values without quotation marks."""
    found = []
    for number, line in numbered_lines(text):
        key, is_assignment, value = line.strip().removeprefix("export ").partition("=")
        if is_assignment and not key.startswith("#"):
            found.append((number, clean(key.strip(), 60), value.strip().strip("\"'")))
    return found


def _reached_by(authority: str, line: int) -> tuple[tuple[Entry, ...], list[Note]]:
    """Let the hub answer to the name by which it is reached, if it is one, and pages of that machine read."""
    has_port = not authority.endswith("]") and ":" in authority
    host = (authority.rpartition(":")[0] if has_port else authority).strip("[]").lower()
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return (), []  # an address needs nothing
    if not is_host(host):
        reason = f"{quoted(host)} is not a host name; correct it, and import the file again"
        return (), [Note(line, reason, False)]
    origins = [f"http://{host}", *(f"http://{host}:{port}" for port in _PAGE_PORTS), f"https://{host}"]
    names = () if host == "localhost" else (KeysEntry(table="hub", values={"allowed_hosts": [host]}),)
    note = Note(
        line,
        f"{quoted(host)}: the hub accepts this name, and the old page may read from it at the ports "
        f"{_PAGE_PORTS[0]}, {_PAGE_PORTS[1]}, 80 and 443; add another address to legacy.gpustat.origins",
    )
    return (*names, KeysEntry(table="legacy.gpustat", values={"origins": origins})), [note]


def _server(text: str, file: Path) -> tuple[int, str]:
    for number, line in numbered_lines(text):
        if found := SERVER.match(line):
            return number, found["value"]
    raise Misconfigured(f'{file}: there is no line SERVER="…"; add it, so that the port is known')


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise Misconfigured(f"--network {quoted(text)}: {error}; write for example 192.168.0.0/24") from error
