"""Facts, tables and problems from a node, checked and made harmless before anything keeps or shows them."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from msgspec import Struct, structs

from gpuherd.fleet.pseudonyms import without_mark
from gpuherd.model.errors import Refused
from gpuherd.model.processes import Process, ProcessTable
from gpuherd.model.reports import NodeFacts, Problem
from gpuherd.model.text import COMMAND_LENGTH, LABEL_LENGTH, SENTENCE_LENGTH, clean
from gpuherd.model.xids import is_xid_fault

__all__ = ["clean_facts", "clean_problems", "clean_table"]

S = TypeVar("S", bound=Struct)
MAX_ADDRESSES = 64
MAX_DISKS = 64
"""Every disk is a number in every message to every viewer."""
_XID = re.compile(r"Xid (\d{1,4})\b")
"""As agents write it that do not tell the number apart."""
_LENGTHS = {"command": COMMAND_LENGTH, "message": SENTENCE_LENGTH}


def _clean(thing: S) -> S:
    """Clean every text field; gives the same object back when there was nothing to do."""
    changes: dict[str, Any] = {}
    for name in thing.__struct_fields__:
        value = getattr(thing, name)
        if isinstance(value, str):
            cleaned = clean(value, _LENGTHS.get(name, LABEL_LENGTH))
            if cleaned != value:
                changes[name] = cleaned
        elif isinstance(value, tuple) and any(
            isinstance(word, str) and clean(word) != word for word in value
        ):
            changes[name] = tuple(clean(word) for word in value)
    return structs.replace(thing, **changes) if changes else thing


def clean_facts(facts: NodeFacts) -> NodeFacts:
    """Clean all names; refuse devices that cannot be told apart, slices without a parent before them, and more
    disks than any report may have. A GPU with slices is partitioned, whatever the node says of it.
    """
    if len(facts.host.disks) > MAX_DISKS:
        raise Refused("too_many_disks", f"{len(facts.host.disks)} disks exceed the limit of {MAX_DISKS}")
    devices = tuple(_clean(device) for device in facts.devices)
    seen: set[str] = set()
    for device in devices:
        if device.uuid in seen:
            raise Refused(
                "duplicate_device", f"two devices have the uuid {device.uuid}; each must have its own"
            )
        if device.parent_uuid is not None and device.parent_uuid not in seen:
            raise Refused(
                "orphan_slice", f"slice {device.uuid} must come after its parent {device.parent_uuid}"
            )
        seen.add(device.uuid)
    parents = {device.parent_uuid for device in devices}
    devices = tuple(
        structs.replace(device, is_partitioned=True)
        if device.uuid in parents and not device.is_partitioned
        else device
        for device in devices
    )
    host = structs.replace(
        _clean(facts.host),
        addresses=tuple(_clean(address) for address in facts.host.addresses[:MAX_ADDRESSES]),
        disks=tuple(_clean(disk) for disk in facts.host.disks),
    )
    return NodeFacts(host=host, devices=devices)


def clean_table(table: ProcessTable, device_count: int) -> ProcessTable:
    """Clean all names and commands; no user is called like a pseudonym. Refuse uses that point nowhere."""
    for position, use in enumerate(table.uses):
        if use.device >= device_count or use.process >= len(table.processes):
            raise Refused(
                "use_out_of_range",
                f"uses[{position}] names device {use.device} of {device_count} "
                f"and process {use.process} of {len(table.processes)}",
            )
    return structs.replace(table, processes=tuple(_clean_process(process) for process in table.processes))


def _clean_process(process: Process) -> Process:
    process = _clean(process)
    if process.user is None or (user := without_mark(process.user)) == process.user:
        return process
    return structs.replace(process, user=user)


def clean_problems(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Clean all texts; call an Xid a fault if NVIDIA's catalogue does, also those of older agents."""
    return tuple(_with_xid(_clean(problem)) for problem in problems)


def _with_xid(problem: Problem) -> Problem:
    if problem.code != "xid" or problem.is_fault or problem.device_uuid is None:
        return problem
    number = problem.xid
    if number is None and (told := _XID.match(problem.message)):
        number = int(told[1])
    return structs.replace(problem, is_fault=True) if number and is_xid_fault(number) else problem
