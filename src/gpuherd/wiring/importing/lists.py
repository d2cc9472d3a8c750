"""hosts.txt, config.ini, config.yml and Ansible inventories: lists of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import structs

from gpuherd.discovery.ansible.finder import read_inventory
from gpuherd.discovery.ansible.variable_files import VariableFolders
from gpuherd.discovery.complaints import Complaints, numbered_lines
from gpuherd.discovery.hosts_file import parse_hosts
from gpuherd.discovery.ini import read_ini
from gpuherd.discovery.yaml_file import read_yaml
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from gpuherd.wiring.importing.reading import MOST_NOTES, Entry, KeysEntry, NodesEntry, Note, Reading, note_at
from gpuherd.wiring.importing.wishes import ReachedBy, Wishes

__all__ = ["read_ansible_hosts", "read_config_ini", "read_config_yml", "read_hosts_txt"]

_RPC_GROUP = "rpcservers"
_OWN_GROUPS = {"all", "ungrouped"}
_HOST_KEYS = Note(
    None,
    "gpuherd accepts only known host keys, while the old tool accepted any; accept them with `gpuherd hub "
    "accept-key --all`",
)


def read_hosts_txt(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take a list of hosts, one a line; nothing in it tells how they are reached."""
    complaints = Complaints(str(file), is_tolerant=True)
    targets = parse_hosts(text, str(file), complaints)
    wishes, notes = _left_out(complaints, targets, wishes)
    by = wishes.by or "node_info"
    notes += [_host_note(target) for target in targets]
    if wishes.by is None:
        notes.append(
            Note(
                None,
                "assumed to run node_info.py (port 7080); if they do not, choose another connection with "
                "--by",
            )
        )
    entry = _entry(file, "hosts_file", targets, _reach(by, wishes), wishes)
    return Reading(file=str(file), what=f"a list of {_count(targets)}", notes=tuple(notes), entries=(entry,))


def read_config_ini(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take a config.ini: hosts that are reached over SSH."""
    complaints = Complaints(str(file), is_tolerant=True)
    config = read_ini(text, str(file), complaints)
    wishes, notes = _left_out(complaints, config.targets, wishes)
    by = wishes.by or "ssh"
    notes += [_host_note(target) for target in config.targets]
    if config.user is not None:
        notes.append(Note(_line(text, "user"), f"user {config.user}: the user to log in as"))
    if config.key_file is not None:
        notes.append(Note(_line(text, "key_filename"), f"key {config.key_file}: the key to log in with"))
        if not Path(config.key_file).is_file():
            notes.append(
                Note(_line(text, "key_filename"), f"there is no key {config.key_file} on this machine", False)
            )
    reach = _reach(by, wishes)
    if by == "ssh":
        notes.append(_HOST_KEYS)
        if wishes.copy and config.user is not None:
            reach["user"] = config.user
        if wishes.copy and config.key_file is not None:
            reach["key_files"] = [config.key_file]
    entries: list[Entry] = [_entry(file, "ini", config.targets, reach, wishes)]
    if wishes.copy:
        # Hosts that a config.ini lists keep its order by themselves.
        entries.append(KeysEntry(table="display", values={"keep_list_order": True}))
    what = f"the config.ini of the SSH monitor with {_count(config.targets)}"
    return Reading(file=str(file), what=what, notes=tuple(notes), entries=tuple(entries))


def read_config_yml(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take a config.yml: hosts that answer XML-RPC."""
    complaints = Complaints(str(file), is_tolerant=True)
    config = read_yaml(text, str(file), complaints)
    wishes, notes = _left_out(complaints, config.targets, wishes)
    by = wishes.by or "xmlrpc"
    reach = _reach(by, wishes)
    notes += [_host_note(target) for target in config.targets]
    is_rpc = by == "xmlrpc"
    if config.rpc_port is not None:
        sentence = (
            f"rpc_port {config.rpc_port}: the nodes' port" if is_rpc else "rpc_port: not needed with --by"
        )
        notes.append(Note(_line(text, "rpc_port"), sentence, is_rpc))
        if is_rpc and wishes.copy:
            reach["port"] = config.rpc_port
    if config.rpc_timeout_seconds is not None:
        seconds = min(max(config.rpc_timeout_seconds, 0.1), 300.0)
        sentence = (
            f"rpc_timeout: wait {seconds:g} s for a response"
            if is_rpc
            else "rpc_timeout: not needed with --by"
        )
        notes.append(Note(_line(text, "rpc_timeout"), sentence, is_rpc))
        if is_rpc:
            reach["deadline_seconds"] = seconds
    if config.web_port is not None:
        sentence = f"web_port {config.web_port}: the page listens on hub.listen; set that to use this port"
        notes.append(Note(_line(text, "web_port"), sentence, False))
    if wishes.copy and not config.targets:
        raise Misconfigured(f"{file}: contains no hosts; there is nothing to copy")
    entry = _entry(file, "yaml", config.targets, reach, wishes)
    what = f"the config.yml of the XML-RPC monitor with {_count(config.targets)}"
    return Reading(file=str(file), what=what, notes=tuple(notes), entries=(entry,))


def read_ansible_hosts(text: str, file: Path, wishes: Wishes) -> Reading:
    """Take groups of an Ansible inventory."""
    inventory = read_inventory(text, str(file))
    there = [name for name in inventory.groups if name not in _OWN_GROUPS]
    groups = wishes.groups or ((_RPC_GROUP,) if _RPC_GROUP in there else tuple(there[:1]))
    if not wishes.groups and _RPC_GROUP not in there and len(there) != 1:
        names = ", ".join(there[:20]) or "none"
        raise Misconfigured(
            f"{file}: which of its groups are GPU nodes? Choose with --group; there are {names}"
        )
    by: ReachedBy = wishes.by or ("xmlrpc" if groups == (_RPC_GROUP,) else "ssh")
    folders = VariableFolders(file.parent)
    if not set(groups) - set(there):
        inventory.complaints.is_tolerant = True  # a group that is not there is no line of the file
    targets = inventory.targets(groups, with_port=by == "ssh", folders=folders)
    wishes, notes = _left_out(inventory.complaints, targets, wishes)
    notes += [Note(None, remark, False) for remark in folders.remarks]
    notes += [Note(None, f"group {name}: GPU nodes, reached by {by}") for name in groups]
    notes += [_host_note(target) for target in targets]
    notes += [
        Note(None, f"group {name}: skipped; add --group {name} if its hosts have GPUs", False)
        for name in there
        if name not in groups
    ]
    if by == "ssh":
        notes.append(_HOST_KEYS)
        notes += _lost_in_copy(targets) if wishes.copy else []
    entry = _entry(file, "ansible", targets, _reach(by, wishes), wishes, groups=list(groups))
    what = f"an Ansible inventory with {_count(targets)}"
    return Reading(file=str(file), what=what, notes=tuple(notes), entries=(entry,))


def _left_out(
    complaints: Complaints, targets: tuple[Target, ...], wishes: Wishes
) -> tuple[Wishes, list[Note]]:
    """Say which lines cannot be used; ``Misconfigured`` if nothing is left.

    The hub follows a list without faults only, as one that is half written must not cost it nodes. So the hosts of
    another are copied.
    """
    if not complaints.sentences:
        return wishes, []
    if not targets:
        complaints.is_tolerant = False
        complaints.raise_if_any()
    notes = [note_at(sentence, complaints.file) for sentence in complaints.sentences[:MOST_NOTES]]
    if len(complaints.sentences) > MOST_NOTES:
        notes.append(Note(None, f"{len(complaints.sentences) - MOST_NOTES} more lines cannot be used", False))
    sentence = (
        "the readable hosts are copied, because the hub can only follow a list that it can read completely"
    )
    return structs.replace(wishes, copy=True), [*notes, Note(None, sentence)]


def _entry(
    file: Path, kind: str, targets: tuple[Target, ...], reach: dict[str, Any], wishes: Wishes, **more: Any
) -> NodesEntry:
    if not wishes.copy:
        return NodesEntry(reach=reach, find={"in": kind, "file": str(file), **more}, targets=targets)
    return NodesEntry(reach=reach, hosts=tuple(_written(target) for target in targets), targets=targets)


def _reach(by: ReachedBy, wishes: Wishes) -> dict[str, Any]:
    reach: dict[str, Any] = {"by": by}
    if by == "node_info" and wishes.password_file is not None:
        reach["password_file"] = str(wishes.password_file.absolute())
    return reach


def _written(target: Target) -> str:
    """Write a target as ``hosts = […]`` takes it."""
    host = f"[{target.address}]" if ":" in target.address and target.port is not None else target.address
    host = f"{target.user}@{host}" if target.user else host
    host = f"{host}:{target.port}" if target.port is not None else host
    return host if target.name == target.address else f"{target.name}={host}"


def _lost_in_copy(targets: tuple[Target, ...]) -> list[Note]:
    """Say what ``hosts = […]`` has no place for."""
    return [
        Note(
            _place_of(target)[0],
            f"{what} of {target.name}: not copied, because gpuherd.toml has no key for it; put it into "
            "~/.ssh/config, or leave out --copy",
            False,
        )
        for target in targets
        for what in (
            f"key {target.key_file}" if target.key_file else None,
            f"jump host {target.proxy_jump}" if target.proxy_jump else None,
        )
        if what is not None
    ]


def _host_note(target: Target) -> Note:
    line, again = _place_of(target)
    where = target.address if target.port is None else f"{target.address}, port {target.port}"
    named = target.name if target.name == where else f"{target.name} ({where})"
    return Note(line, f"host {named}{f'; named {again}' if again else ''}")


def _place_of(target: Target) -> tuple[int | None, str]:
    """Give the line on which it stands, and where it does so again."""
    place, _, again = target.place.partition("; ")
    line = place.rpartition(":")[2]
    return int(line) if line.isdigit() else None, again


def _line(text: str, key: str) -> int | None:
    return next(
        (number for number, line in numbered_lines(text) if line.strip().lower().startswith(key)), None
    )


def _count(targets: tuple[Target, ...]) -> str:
    return f"{len(targets)} host{'' if len(targets) == 1 else 's'}"
