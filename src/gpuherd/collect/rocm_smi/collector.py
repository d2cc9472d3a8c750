"""The rocm-smi collector: one command a read, and what to make of its failures."""

from __future__ import annotations

import msgspec

from gpuherd.collect.commands import CommandFailed, LocalRunner, Runner
from gpuherd.collect.reading import (
    CollectorFailed,
    CollectorUnavailable,
    GpuReading,
    Progress,
    no_progress,
)
from gpuherd.collect.rocm_smi.parsing import parse_cards
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.errors import Failed, Unavailable

__all__ = ["OPTIONS", "RocmSmiCollector"]

PROGRAM = "rocm-smi"
OPTIONS = (
    "--showid", "--showuniqueid", "--showserial", "--showproductname", "--showbus", "--showuse", "--showmemuse",
    "--showmeminfo", "vram", "--showtemp", "--showpower", "--showmaxpower", "--showfan", "--showclocks", "--showpids",
    "--showdriverversion",
)  # fmt: skip
"""What is needed; an older one that does not know all of it is asked for everything (``-a``), which takes longer."""


class RocmSmiCollector:
    """Reads GPUs with one command a read. Known gap: with several GPUs, not on which of them a process is."""

    name = "rocm_smi"

    def __init__(
        self,
        progress: Progress = no_progress,
        runner: Runner | None = None,
        *,
        deadline_seconds: float = 10.0,
    ) -> None:
        self._progress = progress
        self._runner: Runner = runner or LocalRunner()
        self._deadline_seconds = deadline_seconds
        self._options: tuple[str, ...] = OPTIONS
        self._skipped: frozenset[int] = frozenset()
        self._facts: tuple[DeviceFacts, ...] = ()

    def open(self) -> None:
        """See that rocm-smi is there and works."""
        try:
            self.read()
        except CollectorFailed as error:
            raise CollectorUnavailable(error.code, str(error)) from error
        except Unavailable as error:
            raise CollectorUnavailable(
                "no_driver", f"{error}: install AMD's driver and rocm-smi-lib"
            ) from error

    def read(self) -> GpuReading:
        """Read all GPUs."""
        try:
            content = self._run()
        except CommandFailed as error:
            raise CollectorFailed("driver_failed", str(error)) from error
        except Failed as error:
            raise CollectorFailed(
                "driver_hung", f"{error}; the driver may hang: reboot if this persists"
            ) from error
        try:
            reading = parse_cards(content)
        except Failed as error:
            raise CollectorFailed("driver_failed", str(error)) from error
        if not reading.devices:
            raise CollectorFailed("no_gpu", "rocm-smi finds no GPU: check that the amdgpu driver is loaded")
        if self._skipped:
            reading = _without(reading, self._skipped)
        self._facts = self._facts if reading.devices == self._facts else reading.devices
        return msgspec.structs.replace(reading, devices=self._facts)

    def skip(self, devices: frozenset[int]) -> None:
        """Leave these GPUs out. The command still asks all of them."""
        self._skipped = devices

    def close(self) -> None:
        """Nothing stays open."""

    def _run(self) -> bytes:
        self._progress(-1, PROGRAM)
        try:
            return self._runner.run([PROGRAM, *self._options, "--json"], self._deadline_seconds)
        except CommandFailed:
            if self._options == ("-a",):
                raise
            self._options = ("-a",)
            return self._runner.run([PROGRAM, "-a", "--json"], self._deadline_seconds)


def _without(reading: GpuReading, skipped: frozenset[int]) -> GpuReading:
    kept = [place for place, facts in enumerate(reading.devices) if facts.index not in skipped]
    places = {place: new for new, place in enumerate(kept)}
    return msgspec.structs.replace(
        reading,
        devices=tuple(reading.devices[place] for place in kept),
        samples=tuple(reading.samples[place] for place in kept),
        uses=tuple(
            msgspec.structs.replace(use, device=places[use.device])
            for use in reading.uses
            if use.device in places
        ),
    )
