"""aliases.csv, folders of drop files, and files that are recognised only to say what becomes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec import ValidationError, convert

from gpuherd.discovery.complaints import quoted
from gpuherd.history.settings import EarlierAverages
from gpuherd.model.errors import Failed
from gpuherd.model.json_tables import JsonTable
from gpuherd.sources.folder_reading import HOSTS_NAME, MAX_FILE_BYTES, open_folder, parse_hosts_json, scan
from gpuherd.wiring.aliases import parse_aliases
from gpuherd.wiring.importing.reading import MOST_NOTES, Entry, FolderEntry, KeysEntry, Note, Reading, note_at
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["advice", "read_aliases_csv", "read_averages", "read_drop_folder", "read_hosts_table"]

_ADVICE = {
    "password": (
        "a program of the HTTP monitor with its password",
        "PASSWD: the password is not copied; put it in a separate file and import hosts.txt with --password-file",
    ),
    "dropped": (
        "a drop file of a host",
        "nothing to import: it is read with the other files of its folder; import that folder",
    ),
    "program": (
        "a program or page of an old tool",
        "nothing to import: gpuherd replaces it; you can keep it for as long as you like",
    ),
    "playbook": (
        "an Ansible playbook",
        "nothing to import here; import its inventory (hosts). gpuherd has its own role: docs/deploy/ansible.md",
    ),
    "table": (
        "the table that fetch_data.py writes",
        "nothing to import: import config.ini instead; `gpuherd export --csv` writes such a table",
    ),
    "ssh_config": (
        "an SSH client configuration",
        'read directly: put find = { in = "ssh_config", patterns = ["gpu*"] } into a [[nodes]] table',
    ),
}

_BESIDE = {
    "comments.json": ("bookings", "import it by its name"),
    "aliases.csv": ("names of the same person", "import it by its name"),
    "statsV2.json": ("averages of *Who to ask*", "import it by its name"),
}


def advice(kind: str, file: Path) -> Reading:
    """Say of a recognised file why nothing is taken from it."""
    what, sentence = _ADVICE[kind]
    return Reading(file=str(file), what=what, notes=(Note(None, sentence, False),))


def read_aliases_csv(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take lines ``alias1,alias2,user # comment``."""
    found = parse_aliases(text, str(file))
    notes = [Note(None, f"{quoted(alias)} is {quoted(user)}") for alias, user in found.users.items()]
    notes += [note_at(complaint, str(file)) for complaint in found.complaints]
    if wishes.copy:
        entry = KeysEntry(table="display.users", values=dict(found.users))
    else:
        entry = KeysEntry(table="display", values={"aliases_file": str(file)})
    return Reading(file=str(file), what="names of the same person", notes=tuple(notes), entries=(entry,))


def read_averages(content: JsonTable, file: Path, now: float) -> Reading:
    """Take a statsV2.json ``{time, data: {user: {emas: [2 h, 24 h, 1 week]}}}``: averages of gpuherd's own kind."""
    what, until = "averages of an old page", content["time"]
    if isinstance(until, bool) or not isinstance(until, int | float) or not 0 < until <= now + 60:
        reason = "its time is none, or is in the future; open the old page once, and import the file again"
        return Reading(file=str(file), what=what, notes=(Note(content.lines["time"], reason, False),))
    people, notes, gone = content["data"], [], 0
    taken: dict[str, list[float]] = {}
    for name, entry in people.items() if isinstance(people, JsonTable) else ():
        gpus = entry.get("emas") if isinstance(entry, JsonTable) else None
        try:
            found = convert({"until": 1, "gpus": {name: gpus}}, EarlierAverages)
        except ValidationError:
            reason = "its averages are not three numbers; left out"
            notes.append(Note(people.lines[name], f"{quoted(name)}: {reason}", False))
        else:
            rounded = [round(each, 4) for each in found.gpus[name]]
            gone += not any(rounded)
            taken |= {name: rounded} if any(rounded) else {}
    if gone:
        notes.append(Note(None, f"{gone} without any use: left out", False))
    if not taken:
        return Reading(file=str(file), what=what, notes=(*notes, Note(None, "nobody has used a GPU", False)))
    count = f"{len(taken)} {'person' if len(taken) == 1 else 'people'}"
    sentence = f"averages of {count} until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
    notes.append(Note(None, f"{sentence}; those of *Who to ask* begin with them, and fade them out"))
    entries = (
        KeysEntry(table="usage.earlier", values={"until": int(until)}),
        KeysEntry(table="usage.earlier.gpus", values=taken),
    )
    return Reading(file=str(file), what=what, notes=tuple(notes), entries=entries)


def read_drop_folder(folder: Path, wishes: Wishes) -> Reading | None:
    """Take a folder into which nodes drop ``HOST_gpus.csv``; None if there is no such file in it."""
    with open_folder(folder) as descriptor:
        drops, _ = scan(descriptor, MOST_NOTES)
    hosts = {host: drop for host, drop in sorted(drops.items()) if "gpus" in drop or "json" in drop}
    if not any("gpus" in drop for drop in hosts.values()):
        return None
    listed: dict[str, str] | None = None
    notes: list[Note] = []
    if (folder / HOSTS_NAME).is_file():
        try:
            listed = _hosts_of(folder / HOSTS_NAME)
            notes.append(Note(None, f"{HOSTS_NAME}: defines which hosts are shown, and their names"))
        except Failed as error:
            notes.append(Note(None, f"{HOSTS_NAME}: {error}; until then all hosts are shown", False))
    for host, drop in hosts.items():
        if listed and host not in listed and "json" not in drop:
            notes.append(Note(None, f"host {host} is not in {HOSTS_NAME}; not shown", False))
            continue
        notes.append(Note(None, f"host {host} puts its files here: {', '.join(sorted(drop))}"))
        if "json" not in drop and "processes" not in drop:
            notes.append(
                Note(
                    None,
                    f"host {host} has no {host}_processes.csv: none of its GPUs can be shown as free",
                    False,
                )
            )
    notes += [
        Note(None, f"host {host} has no {host}_gpus.csv: its other files are not read", False)
        for host in sorted(drops.keys() - hosts.keys())
    ]
    imported = {file.expanduser().absolute() for file in wishes.files}
    for name, (what, sentence) in _BESIDE.items():
        if (folder / name).is_file() and folder / name not in imported:
            notes.append(Note(None, f"{name}: {what}; {sentence}", False))
    entry = FolderEntry(path=str(folder))
    return Reading(file=str(folder), what="a folder of drop files", notes=tuple(notes), entries=(entry,))


def read_hosts_table(table: JsonTable, file: Path) -> Reading:
    """Take a hosts.json: nothing to set if its folder is watched; else its names are shown."""
    listed = _hosts_of(file)
    notes = [
        Note(table.lines.get(host), f"{quoted(host)} is shown as {quoted(shown)}")
        for host, shown in list(listed.items())[:MOST_NOTES]
    ]
    for host, shown in table.items():
        if host not in listed:
            what = "the displayed name is not a string; write it in quotation marks"
            reason = "is not a host name; correct it" if isinstance(shown, str) else what
            notes.append(Note(table.lines[host], f"{quoted(host)}: {reason}", False))
        elif host in table.doubled:
            reason = "is in it twice; keep one, the last is used"
            notes.append(Note(table.lines[host], f"{quoted(host)} {reason}", False))
    if next(file.parent.glob("*_gpus.csv"), None) is not None:
        notes.append(Note(None, f"read in place, with its folder {file.parent}"))
        entries: tuple[Entry, ...] = (FolderEntry(path=str(file.parent)),)
    else:
        entries = (KeysEntry(table="display.nodes", values=dict(listed)),)
    return Reading(
        file=str(file), what="the hosts of a PHP monitor's page", notes=tuple(notes), entries=entries
    )


def _hosts_of(file: Path) -> dict[str, str]:
    try:
        with file.open("rb") as opened:
            return parse_hosts_json(opened.read(MAX_FILE_BYTES + 1))
    except OSError as error:
        raise Failed(f"cannot be read ({error.strerror}); let this user read it") from error
