"""aliases.csv, folders of drop files, and files that are recognised only to say what becomes of them."""

from __future__ import annotations

from pathlib import Path

from gpuherd.discovery.complaints import quoted
from gpuherd.wiring.aliases import parse_aliases
from gpuherd.wiring.importing.reading import DisplayEntry, FolderEntry, Note, Reading
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["advice", "read_aliases_csv", "read_drop_folder"]

_ADVICE = {
    "password": (
        "a program of the HTTP monitor with its password",
        "PASSWD: the password is not copied; put it into a file of its own and import hosts.txt with --password-file",
    ),
    "login": (
        "the login of an old page",
        "AUTH_USER and AUTH_PASS are not copied; name this file as legacy.gpustat.login_file for the old page",
    ),
    "ssh_config": (
        "an SSH client configuration",
        'gpuherd reads it as it is: write find = { in = "ssh_config", patterns = ["gpu*"] } into a [[nodes]] table',
    ),
}


def advice(kind: str, file: Path) -> Reading:
    """Say of a recognised file why nothing is taken from it."""
    what, sentence = _ADVICE[kind]
    return Reading(file=str(file), what=what, notes=(Note(None, sentence, False),))


def read_aliases_csv(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take lines ``alias1,alias2,user # comment``."""
    users = parse_aliases(text, str(file))
    notes = tuple(Note(None, f"{quoted(alias)} is {quoted(user)}") for alias, user in users.items())
    if wishes.copy:
        entry = DisplayEntry(table="users", values=dict(users))
    else:
        entry = DisplayEntry(table="", values={"aliases_file": str(file)})
    return Reading(file=str(file), what="names of the same person", notes=notes, entries=(entry,))


def read_drop_folder(folder: Path) -> Reading | None:
    """Take a folder into which nodes drop ``HOST_gpus.csv``; None if there is no such file in it."""
    hosts = sorted(file.name.removesuffix("_gpus.csv") for file in folder.glob("*_gpus.csv"))[:1000]
    if not hosts:
        return None
    notes = tuple(Note(None, f"host {quoted(host)[1:-1]} drops its files here") for host in hosts)
    entry = FolderEntry(path=str(folder))
    return Reading(file=str(folder), what="a folder of drop files", notes=notes, entries=(entry,))
