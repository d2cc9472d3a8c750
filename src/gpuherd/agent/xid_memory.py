"""Xids that are faults, remembered over crashed neighbours, new probes and restarts of the agent.

The driver reports an event once, only to those who listen at that moment. A fault ends with the next boot, with another
driver version, or when the GPU was initialised again (reset, driver reload): its energy counter then begins at 0.
"""

from __future__ import annotations

import logging
import math
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd.agent.exchange import Reading
from gpuherd.model.device_memory import boot_of, is_counter_reset, is_driver_reloaded
from gpuherd.model.reports import NodeFacts, Problem
from gpuherd.wire.matrix import CELL_BYTES, LAYOUT

__all__ = ["XidMemory"]

log = logging.getLogger(__name__)

SAVE_SECONDS = 60.0
"""How old the energy counters in the file may be."""
MOST_FAULTS = 1024

_ENERGY = LAYOUT.devices.index("energy_joules")
_CELL = struct.Struct("<d")


class _Fault(Struct):
    problem: Problem
    energy_joules: float | None = None
    """The counter when it was last seen."""


class _State(Struct):
    boot_id: str | None = None
    driver_version: str | None = None
    faults: list[_Fault] = []


class XidMemory:
    """Completes readings. Failing to keep the file is said in the log and harms nothing else."""

    def __init__(self, file: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._monotonic = monotonic
        self._saved_at = monotonic()
        self._rows: dict[str, int] = {}
        self._state = self._load()

    def completed(self, reading: Reading) -> Reading:
        """Add the faults that the probe does not know of (any more)."""
        if reading.facts is not None:
            self._take_facts(reading.facts)
        problems = reading.sample.problems
        told = {
            (problem.device_uuid, problem.xid): problem
            for problem in problems
            if problem.code == "xid" and problem.is_fault and problem.device_uuid is not None
        }
        if not told and not self._state.faults:
            return reading
        self._watch_counters(reading.sample.devices)
        known = {(fault.problem.device_uuid, fault.problem.xid): fault for fault in self._state.faults}
        new = [problem for key, problem in told.items() if key not in known or known[key].problem != problem]
        if new:
            for problem in new:
                fault = known.get((problem.device_uuid, problem.xid))
                if fault is None:
                    self._state.faults.append(_Fault(problem))
                else:
                    fault.problem = problem  # it happened once more
            del self._state.faults[:-MOST_FAULTS]
            self._watch_counters(reading.sample.devices)
        if new or self._monotonic() - self._saved_at >= SAVE_SECONDS:
            self._save()
        forgotten = tuple(
            fault.problem
            for fault in self._state.faults
            if (fault.problem.device_uuid, fault.problem.xid) not in told
            and fault.problem.device_uuid in self._rows
        )
        if not forgotten:
            return reading
        sample = msgspec.structs.replace(reading.sample, problems=problems + forgotten)
        return msgspec.structs.replace(reading, sample=sample)

    def _take_facts(self, facts: NodeFacts) -> None:
        self._rows = {device.uuid: row for row, device in enumerate(facts.devices)}
        state, host = self._state, facts.host
        had_faults = bool(state.faults)
        if is_driver_reloaded(state.boot_id, state.driver_version, host):
            state.faults = []
        state.boot_id = boot_of(host) or state.boot_id
        state.driver_version = host.driver_version or state.driver_version
        if had_faults and not state.faults:
            self._save()

    def _watch_counters(self, matrix: bytes) -> None:
        """Drop the faults of GPUs that were initialised again."""
        kept = []
        for fault in self._state.faults:
            energy = self._energy(matrix, fault.problem.device_uuid)
            if is_counter_reset(fault.energy_joules, energy):
                continue
            if energy is not None:
                fault.energy_joules = energy
            kept.append(fault)
        if len(kept) < len(self._state.faults):
            self._state.faults = kept
            self._save()

    def _energy(self, matrix: bytes, uuid: str | None) -> float | None:
        row = self._rows.get(uuid or "")
        if row is None:
            return None
        offset = (row * len(LAYOUT.devices) + _ENERGY) * CELL_BYTES
        if offset + CELL_BYTES > len(matrix):
            return None
        (energy,) = _CELL.unpack_from(matrix, offset)
        return None if math.isnan(energy) else float(energy)

    def _load(self) -> _State:
        try:
            return msgspec.msgpack.decode(self._file.read_bytes(), type=_State)
        except FileNotFoundError:
            return _State()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("cannot read the saved faults in %s: %s", self._file, error)
            return _State()

    def _save(self) -> None:
        self._saved_at = self._monotonic()
        temporary = self._file.with_name(f".{self._file.name}.new")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(msgspec.msgpack.encode(self._state))
            os.replace(temporary, self._file)  # noqa: PTH105 - the same in one word
        except OSError as error:
            log.warning("cannot save faults to %s: %s", self._file, error.strerror)
