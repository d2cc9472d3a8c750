"""GPUs that were there, and faults that were seen: what one report after the other does not tell."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice

from msgspec import structs

from gpuherd.model.device_memory import (
    DeviceFault,
    KnownDevice,
    MemoryChanges,
    boot_of,
    is_counter_reset,
    is_driver_reloaded,
)
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import MAX_DEVICES, Problem

__all__ = ["DeviceMemory", "clock_time", "described", "missing_problem"]

MAX_NAMED = 4
MAX_FAULTS = 1024
"""Remembered of one node: it may invent ever new ones."""
MAX_CHANGES = 1024
"""Of each kind in one transaction: while it lasts nobody else can write, and a new herd has tens of thousands."""
MAX_NOTES = 256
"""Entries in the audit log about one node's GPUs in an hour: a node may let them come and go all the time."""
ECC = "ecc"

_XID_CODE = re.compile(r"xid ([0-9]{1,4})")

DeviceKey = tuple[str, str]
FaultKey = tuple[str, str, str]


class DeviceMemory:
    """Of all nodes. Owned by the fleet, on its event loop; the hub writes the changes into the records."""

    def __init__(self) -> None:
        self._devices: dict[str, dict[str, KnownDevice]] = {}
        self._faults: dict[str, dict[tuple[str, str], DeviceFault]] = {}
        self._changed_devices: set[DeviceKey] = set()
        self._changed_faults: set[FaultKey] = set()
        self.notes: list[tuple[str, str, str]] = []
        """For the audit log: action, subject, detail."""
        self._noted: dict[str, tuple[int, int]] = {}
        """By node, an hour and how many entries there were in it."""
        self._now = 0.0
        self._last: dict[str, tuple[tuple[DeviceFacts, ...], int | None, tuple[KnownDevice, ...]]] = {}
        """By node, what was last reported and what came of it: most reports say the same again."""

    # -- records -----------------------------------------------------------------------------------------------

    def load(self, devices: Iterable[KnownDevice], faults: Iterable[DeviceFault]) -> None:
        """Take what the records have, at the start."""
        for device in devices:
            self._devices.setdefault(device.node_id, {})[device.facts.uuid] = device
        for fault in faults:
            self._faults.setdefault(fault.node_id, {})[fault.uuid, fault.code] = fault

    def take_changes(self) -> MemoryChanges:
        """Return changes to write, at most ``MAX_CHANGES`` of each kind; call it again until there are none."""
        devices = set(islice(self._changed_devices, MAX_CHANGES))
        faults = set(islice(self._changed_faults, MAX_CHANGES))
        changes = MemoryChanges(
            devices={(node_id, uuid): self._devices.get(node_id, {}).get(uuid) for node_id, uuid in devices},
            faults={
                (node_id, uuid, code): self._faults.get(node_id, {}).get((uuid, code))
                for node_id, uuid, code in faults
            },
            notes=tuple(self.notes[:MAX_CHANGES]),
        )
        self._changed_devices -= devices
        self._changed_faults -= faults
        del self.notes[:MAX_CHANGES]
        return changes

    def put_back(self, changes: MemoryChanges) -> None:
        """Give changes again with the next call: they could not be written."""
        self._changed_devices.update(changes.devices)
        self._changed_faults.update(changes.faults)
        self.notes = [*changes.notes, *self.notes]

    def forget_node(self, node_id: str) -> None:
        """Forget a node that was removed."""
        self._last.pop(node_id, None)
        self._noted.pop(node_id, None)
        self._changed_devices.update((node_id, uuid) for uuid in self._devices.pop(node_id, {}))
        self._changed_faults.update((node_id, *key) for key in self._faults.pop(node_id, {}))

    # -- devices -----------------------------------------------------------------------------------------------

    def see(
        self, node_id: str, reported: tuple[DeviceFacts, ...], expected: int | None, now: float
    ) -> tuple[KnownDevice, ...]:
        """Take the devices that a node reports; give the whole GPUs that it no longer does, by index.

        A GPU in whose slot another one is reported was replaced, and is forgotten. With as many GPUs as are
        ``expected``, none is missing. ``now``: wall clock.
        """
        self._now = now
        last = self._last.get(node_id)
        if last is not None and last[0] is reported and last[1] == expected:
            return last[2]
        missing = self._compare(node_id, reported, expected, now)
        self._last[node_id] = (reported, expected, missing)
        return missing

    def _compare(
        self, node_id: str, reported: tuple[DeviceFacts, ...], expected: int | None, now: float
    ) -> tuple[KnownDevice, ...]:
        known = self._devices.setdefault(node_id, {})
        gpus = {facts.uuid: facts for facts in reported if facts.kind == "gpu" and _is_lasting(facts.uuid)}
        # Slots of GPUs that are new here. The slot numbers of those that were here before may have changed.
        slots: set[str | None] = set()
        for uuid, facts in gpus.items():
            before = known.get(uuid)
            if before is None or before.missing_since is not None:
                slots.add(facts.pci_bus_id)
            device = KnownDevice(node_id=node_id, facts=_naming(facts))
            if before != device:
                if before is not None and before.missing_since is not None:
                    self._note("gpu.back", node_id, _subject(before.facts))
                known[uuid] = device
                self._changed_devices.add((node_id, uuid))
        slots.discard(None)
        for uuid, device in list(known.items()):
            if uuid in gpus:
                continue
            if device.facts.pci_bus_id in slots:
                self._forget_device(node_id, uuid)
                self._note("gpu.replaced", node_id, _subject(device.facts))
            elif device.missing_since is None:
                known[uuid] = structs.replace(device, missing_since=now)
                self._changed_devices.add((node_id, uuid))
                self._note("gpu.missing", node_id, _subject(device.facts))
        self._bound(node_id)
        if expected is not None and sum(facts.kind == "gpu" for facts in reported) >= expected:
            return ()
        missing = (device for device in known.values() if device.missing_since is not None)
        return tuple(sorted(missing, key=lambda device: device.facts.index))[: MAX_DEVICES - len(reported)]

    def plan_forget(self, node_id: str, uuid: str) -> MemoryChanges | None:
        """Give what changes if a missing GPU was taken out; None if it is not missing."""
        device = self._devices.get(node_id, {}).get(uuid)
        if device is None or device.missing_since is None:
            return None
        return MemoryChanges(
            devices={(node_id, uuid): None},
            faults={(node_id, *key): None for key in self._faults.get(node_id, {}) if key[0] == uuid},
            notes=(("gpu.forget", node_id, _subject(device.facts)),),
        )

    def settle(self, changes: MemoryChanges) -> None:
        """Take over what an admin has said and what is written."""
        for node_id, uuid in changes.devices:
            self._devices.get(node_id, {}).pop(uuid, None)
            self._last.pop(node_id, None)
        for (node_id, uuid, code), fault in changes.faults.items():
            faults = self._faults.setdefault(node_id, {})
            if fault is None:
                faults.pop((uuid, code), None)
            else:
                faults[uuid, code] = fault

    def move(self, node_id: str, uuid: str) -> None:
        """Forget a missing GPU that another node reports now."""
        device = self._devices.get(node_id, {}).get(uuid)
        if device is not None and device.missing_since is not None:
            self._forget_device(node_id, uuid)
            self._note("gpu.moved", node_id, _subject(device.facts))

    def _forget_device(self, node_id: str, uuid: str) -> None:
        del self._devices[node_id][uuid]
        self._last.pop(node_id, None)
        self._changed_devices.add((node_id, uuid))
        for key in [key for key in self._faults.get(node_id, {}) if key[0] == uuid]:
            del self._faults[node_id][key]
            self._changed_faults.add((node_id, *key))

    def _bound(self, node_id: str) -> None:
        """Remember no more GPUs than a node may have: it may invent ever new ones."""
        known = self._devices[node_id]
        excess = len(known) - MAX_DEVICES
        if excess > 0:
            longest = sorted(known.values(), key=lambda device: device.missing_since or math.inf)[:excess]
            for device in longest:
                self._forget_device(node_id, device.facts.uuid)

    def _note(self, action: str, node_id: str, detail: str) -> None:
        """Remember something that a node reports for the audit log, unless there was too much of it."""
        hour, count = int(self._now // 3600), 0
        if node_id in self._noted and self._noted[node_id][0] == hour:
            count = self._noted[node_id][1]
        self._noted[node_id] = (hour, count + 1)
        if count == MAX_NOTES - 1:
            detail = f"{detail} (more changes to this node's GPUs in this hour are not listed)"
        if count < MAX_NOTES:
            self.notes.append((action, node_id, detail))

    # -- faults ------------------------------------------------------------------------------------------------

    def has_faults(self, node_id: str) -> bool:
        """Whether any fault or acknowledgement of a node's devices is remembered."""
        return bool(self._faults.get(node_id))

    def problems(
        self,
        node_id: str,
        host: HostFacts,
        problems: tuple[Problem, ...],
        energy: Mapping[str, float],
        now: float,
    ) -> tuple[Problem, ...]:
        """Give a node's problems with those that it has forgotten, and without the fault in those acknowledged.

        ``energy``: the devices' energy counters in joules, as far as they are known, by uuid.
        """
        self._now = now
        self._clear(node_id, host, energy)
        faults = self._faults.get(node_id, {})
        shown, seen = [], set()
        for problem in problems:
            if problem.code != "xid" or not problem.is_fault or problem.device_uuid is None:
                shown.append(problem)
                continue
            key = (problem.device_uuid, _xid_code(problem))
            since = now if problem.since is None else problem.since
            before = faults.get(key)
            seen.add(key)
            if before is not None and before.acknowledged_at is not None and since == before.since:
                shown.append(structs.replace(problem, is_fault=False))
                continue
            shown.append(problem)
            if len(faults) < MAX_FAULTS if before is None else before.acknowledged_at is not None:
                self._faults.setdefault(node_id, {})[key] = DeviceFault(
                    node_id=node_id,
                    uuid=key[0],
                    code=key[1],
                    message=problem.message,
                    since=since,
                    boot_id=boot_of(host),
                    driver_version=host.driver_version,
                    energy_joules=energy.get(key[0]),
                )
                self._changed_faults.add((node_id, *key))
                self._note("gpu.fault", node_id, f"{key[0]}: {problem.message}")
        for key, fault in faults.items():
            if key not in seen and fault.acknowledged_at is None:
                shown.append(
                    Problem(
                        code="xid",
                        message=fault.message,
                        device_uuid=fault.uuid,
                        is_fault=True,
                        since=fault.since,
                        xid=_xid_number(fault.code),
                    )
                )
        return tuple(shown)

    def note_energy(self, node_id: str, energy: Mapping[str, float]) -> bool:
        """Take the energy counters; give whether one of a GPU with a remembered fault starts again."""
        faults = self._faults.get(node_id, {})
        is_any_reset = False
        for key, fault in faults.items():
            counted = energy.get(fault.uuid)
            if is_counter_reset(fault.energy_joules, counted):
                is_any_reset = True
            elif counted is not None:
                faults[key] = structs.replace(fault, energy_joules=counted)
                if fault.energy_joules is None:
                    self._changed_faults.add((node_id, *key))
        return is_any_reset

    def _clear(self, node_id: str, host: HostFacts, energy: Mapping[str, float]) -> None:
        faults = self._faults.get(node_id, {})
        for key, fault in list(faults.items()):
            if is_driver_reloaded(fault.boot_id, fault.driver_version, host) or is_counter_reset(
                fault.energy_joules, energy.get(fault.uuid)
            ):
                del faults[key]
                self._changed_faults.add((node_id, *key))
                if fault.acknowledged_at is None:
                    self._note("gpu.fault_gone", node_id, f"{fault.uuid}: {fault.message}")

    def plan_acknowledge(
        self,
        node_id: str,
        uuid: str,
        host: HostFacts,
        ecc_errors: int,
        energy_joules: float | None,
        now: float,
    ) -> MemoryChanges:
        """Give what changes if a device's remembered faults, and its ECC errors so far, are taken as known."""
        faults = {
            (node_id, *key): structs.replace(fault, acknowledged_at=now)
            for key, fault in self._faults.get(node_id, {}).items()
            if key[0] == uuid and fault.acknowledged_at is None
        }
        if ecc_errors > self.ecc_baseline(node_id, uuid):
            faults[node_id, uuid, ECC] = DeviceFault(
                node_id=node_id,
                uuid=uuid,
                code=ECC,
                message=f"{ecc_errors} uncorrected ECC errors",
                since=now,
                boot_id=boot_of(host),
                driver_version=host.driver_version,
                energy_joules=energy_joules,
                acknowledged_at=now,
                acknowledged_count=ecc_errors,
            )
        told = "; ".join(fault.message for fault in faults.values())
        notes = (("gpu.acknowledge", node_id, f"{uuid}: {told}"),) if faults else ()
        return MemoryChanges(devices={}, faults={**faults}, notes=notes)

    def ecc_baseline(self, node_id: str, uuid: str) -> int:
        """Give how many uncorrected ECC errors of a device an admin has acknowledged."""
        fault = self._faults.get(node_id, {}).get((uuid, ECC))
        return 0 if fault is None else fault.acknowledged_count


def _is_lasting(uuid: str) -> bool:
    """Whether an id is the card's; others are made up as long as the driver does not tell."""
    return not uuid.endswith("-without-uuid")


def _naming(facts: DeviceFacts) -> DeviceFacts:
    return DeviceFacts(
        uuid=facts.uuid,
        index=facts.index,
        name=facts.name,
        vendor=facts.vendor,
        memory_total_bytes=facts.memory_total_bytes,
        pci_bus_id=facts.pci_bus_id,
        serial=facts.serial,
    )


def _xid_code(problem: Problem) -> str:
    if problem.xid is not None:
        return f"xid {problem.xid}"
    return " ".join(problem.message.replace(",", ":").partition(":")[0].lower().split())[:32]


def _xid_number(code: str) -> int | None:
    found = _XID_CODE.fullmatch(code)
    return None if found is None else int(found[1])


def _subject(facts: DeviceFacts) -> str:
    return f"{facts.uuid}: {described(facts)}"


def described(facts: DeviceFacts) -> str:
    """Name a GPU so that it is found in the machine."""
    parts = [f"GPU {facts.index}", facts.name.removeprefix("NVIDIA ")]
    if facts.serial:
        parts.append(f"serial {facts.serial}")
    if facts.pci_bus_id:
        domain, _, rest = facts.pci_bus_id.lower().partition(":")
        parts.append(f"slot {domain[-4:]}:{rest}")
    return ", ".join(parts)


def clock_time(at: float, now: float) -> str:
    """Write a time of the hub's clock in its own zone, with the date if it is not of the last day."""
    moment = datetime.fromtimestamp(at).astimezone()
    return moment.strftime("%H:%M" if now - at < 86_400 else "%d %b %H:%M")


def missing_problem(missing: tuple[KnownDevice, ...], now: float) -> Problem | None:
    """Say which GPUs a node misses; None if it misses none."""
    if not missing:
        return None
    since = min(device.missing_since or now for device in missing)
    named = "; ".join(described(device.facts) for device in missing[:MAX_NAMED])
    more = f"; and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    count = "1 GPU" if len(missing) == 1 else f"{len(missing)} GPUs"
    return Problem(
        code="gpus_missing",
        message=f"{count} missing since {clock_time(since, now)}: {named}{more}",
        since=since,
    )
