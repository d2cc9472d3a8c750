"""Parsers of ``nvidia-smi -q -x`` and ``-L``: costly to make (0.4 s), asked for only where CSV does not tell.

That is: MIG slices with their memory and processes, and drivers whose ``--query-gpu`` fails altogether.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, ParseError, fromstring

import msgspec
from msgspec import Struct

from gpuherd.collect.nvidia_smi.row import Row, row_device
from gpuherd.collect.nvidia_smi.values import bounded, bytes_of, index_of
from gpuherd.collect.nvidia_smi.words import label_of, number_of, text_of
from gpuherd.collect.reading import GpuReading, SeenUse
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean

__all__ = ["ListedSlice", "parse_gpu_uuids", "parse_listing", "parse_log"]

MAX_WORD_LENGTH = 128
_PATHS: dict[str, tuple[str, ...]] = {
    "uuid": ("uuid",),
    "name": ("product_name",),
    "pci.bus_id": ("pci/pci_bus_id",),
    "mig.mode.current": ("mig_mode/current_mig",),
    "memory.total": ("fb_memory_usage/total",),
    "memory.reserved": ("fb_memory_usage/reserved",),
    "memory.used": ("fb_memory_usage/used",),
    "utilization.gpu": ("utilization/gpu_util",),
    "utilization.memory": ("utilization/memory_util",),
    "utilization.encoder": ("utilization/encoder_util",),
    "utilization.decoder": ("utilization/decoder_util",),
    "temperature.gpu": ("temperature/gpu_temp",),
    "power.draw": (
        "gpu_power_readings/power_draw",
        "gpu_power_readings/average_power_draw",
        "gpu_power_readings/instant_power_draw",
        "power_readings/power_draw",
    ),
    "enforced.power.limit": (
        "gpu_power_readings/current_power_limit",
        "power_readings/enforced_power_limit",
        "power_readings/power_limit",
    ),
    "power.default_limit": ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
    "fan.speed": ("fan_speed",),
    "clocks.current.sm": ("clocks/sm_clock",),
    "clocks.current.memory": ("clocks/mem_clock",),
    "clocks.max.sm": ("max_clocks/sm_clock",),
    "pstate": ("performance_state",),
    "ecc.errors.corrected.volatile.total": ("ecc_errors/volatile/single_bit/total",),
    "ecc.errors.uncorrected.volatile.total": ("ecc_errors/volatile/double_bit/total",),
    "retired_pages.pending": ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
    "remapped_rows.pending": ("remapped_rows/remapped_row_pending",),
    "remapped_rows.failure": ("remapped_rows/remapped_row_failure",),
    "gpu_recovery_action": ("gpu_recovery_action",),
}
_ECC_PARTS = {
    "ecc.errors.corrected.volatile.total": ("sram_correctable", "dram_correctable"),
    "ecc.errors.uncorrected.volatile.total": (
        "sram_uncorrectable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
        "dram_uncorrectable",
    ),
}
"""Drivers since 450 tell no totals, but parts of them."""
_REASONS = {
    "gpu_idle": 1,
    "applications_clocks_setting": 2,
    "sw_power_cap": 4,
    "hw_slowdown": 8,
    "sync_boost": 16,
    "sw_thermal_slowdown": 32,
    "hw_thermal_slowdown": 64,
    "hw_power_brake_slowdown": 128,
    "display_clocks_setting": 256,
}


class ListedSlice(Struct, frozen=True):
    """A slice as ``nvidia-smi -L`` lists it."""

    gpu_uuid: str
    index: int
    profile: str
    uuid: str


_GPU_LINE = re.compile(r"GPU \d+: .*\(UUID: ([\w\-/]+)\)")
_SLICE_LINE = re.compile(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([\w\-/]+)\)")


def parse_listing(content: bytes) -> list[ListedSlice]:
    """Find the slices in the output of ``nvidia-smi -L``, the only place with their UUIDs."""
    found = []
    gpu_uuid = ""
    for line in content.decode(errors="replace").splitlines():
        if gpu := _GPU_LINE.match(line):
            gpu_uuid = gpu[1]
        elif part := _SLICE_LINE.match(line):
            found.append(ListedSlice(gpu_uuid, int(part[2]), part[1], part[3]))
    return found


def parse_gpu_uuids(content: bytes) -> list[str]:
    """Find the GPUs in the output of ``nvidia-smi -L``, those that cannot be listed left out."""
    lines = content.decode(errors="replace").splitlines()
    return [found[1] for line in lines if (found := _GPU_LINE.match(line))]


def parse_log(content: bytes, listing: list[ListedSlice]) -> GpuReading:
    """Make a reading of the XML log. ``Failed`` if it is no such log."""
    if b"<!ENTITY" in content:
        raise Failed("the XML log of nvidia-smi declares entities, which the real nvidia-smi never does")
    try:
        root = fromstring(content)  # noqa: S314 - without entity declarations there is nothing to expand
    except ParseError as error:
        raise Failed(f"nvidia-smi -q -x did not print XML: {error}") from error
    devices: list[DeviceFacts] = []
    samples: list[DeviceSample] = []
    uses: list[SeenUse] = []
    problems: list[Problem] = []
    # The log is not always in the driver's order, and has no index: it is the order of the PCI addresses.
    gpus = sorted(
        root.iter("gpu"), key=lambda gpu: (gpu.findtext("pci/pci_bus_id") or gpu.get("id") or "").lower()
    )
    for index, gpu in enumerate(gpus):
        facts, sample, found = row_device(_row(gpu, index))
        places: dict[tuple[str | None, str | None], int] = {(None, None): len(devices)}
        devices.append(facts)
        samples.append(sample)
        problems += found
        for element in gpu.iterfind("mig_devices/mig_device"):
            slice_facts = _slice_facts(element, facts, listing)
            places[element.findtext("gpu_instance_id"), element.findtext("compute_instance_id")] = len(
                devices
            )
            devices.append(slice_facts)
            samples.append(DeviceSample(memory_used_bytes=_memory(element, "fb_memory_usage/used")))
        seen, is_whole = _uses(gpu, places)
        uses += seen
        if not is_whole:
            problems.append(
                Problem(
                    code="processes_failed",
                    message=f"the log of nvidia-smi does not list the processes of GPU {index}, or not on which "
                    "slice they are: run it as root",
                    device_uuid=facts.uuid,
                )
            )
            # A slice is no better than the GPU it is cut from.
            problems += (
                msgspec.structs.replace(problems[-1], device_uuid=device.uuid)
                for device in devices
                if device.parent_uuid == facts.uuid
            )
    return GpuReading(
        devices=tuple(devices),
        samples=tuple(samples),
        uses=tuple(uses),
        problems=tuple(problems),
        driver_version=label_of(root.findtext("driver_version")),
        cuda_version=label_of(root.findtext("cuda_version")),
    )


def _row(gpu: Element, index: int) -> Row:
    row = {"index": str(index)}
    for field, paths in _PATHS.items():
        words = [found[:MAX_WORD_LENGTH] for path in paths if (found := gpu.findtext(path)) is not None]
        if words:
            row[field] = next((word for word in words if text_of(word) is not None), words[0])
    if text_of(row.get("pci.bus_id")) is None and (address := gpu.get("id")):
        row["pci.bus_id"] = address[:MAX_WORD_LENGTH]
    for field, parts in _ECC_PARTS.items():
        counts = [number_of(gpu.findtext(f"ecc_errors/volatile/{part}")) for part in parts]
        known = [count for count in counts if count is not None]
        if field not in row and known:
            row[field] = str(int(sum(known)))
    reasons = gpu.find("clocks_event_reasons")
    if reasons is None:
        reasons = gpu.find("clocks_throttle_reasons")
    if reasons is not None and any(child.text in ("Active", "Not Active") for child in reasons):
        active = {
            re.sub(r"^clocks_(?:event|throttle)_reason_", "", child.tag)
            for child in reasons
            if child.text == "Active"
        }
        row["clocks_event_reasons.active"] = hex(sum(bit for name, bit in _REASONS.items() if name in active))
    return row


def _memory(element: Element, path: str) -> int | None:
    return bytes_of((element.findtext(path) or "")[:MAX_WORD_LENGTH])


def _slice_facts(element: Element, parent: DeviceFacts, listing: list[ListedSlice]) -> DeviceFacts:
    index = index_of(element.findtext("index"))
    listed = next((part for part in listing if (part.gpu_uuid, part.index) == (parent.uuid, index)), None)
    instance = element.findtext("gpu_instance_id"), element.findtext("compute_instance_id")
    return DeviceFacts(
        # Without a listing, what NVIDIA used before slices had UUIDs of their own.
        uuid=clean(listed.uuid if listed else f"MIG-{parent.uuid}/{instance[0]}/{instance[1]}", 96),
        index=index,
        name=clean(f"{parent.name} MIG {listed.profile}" if listed else f"{parent.name} MIG"),
        kind="slice",
        parent_uuid=parent.uuid,
        profile=clean(listed.profile) if listed else None,
        memory_total_bytes=_memory(element, "fb_memory_usage/total"),
        pci_bus_id=parent.pci_bus_id,
        compute_capability=parent.compute_capability,
        gpu_instance=None if instance[0] is None else index_of(instance[0]),
    )


def _uses(gpu: Element, places: dict[tuple[str | None, str | None], int]) -> tuple[list[SeenUse], bool]:
    """List the processes; also whether the list is there and all of it could be read."""
    uses: dict[tuple[int, int], SeenUse] = {}
    listed = gpu.find("processes")
    is_whole = listed is not None and not (listed.text or "").strip()
    for element in gpu.iterfind("processes/process_info"):
        pid = bounded(number_of(element.findtext("pid")), 0, 2**32)
        if pid is None:
            is_whole = False
            continue
        instance = (
            text_of(element.findtext("gpu_instance_id")),
            text_of(element.findtext("compute_instance_id")),
        )
        # "C", "G", "C+G" or "M+C"; of one that does not tell it may be anything that computes.
        is_graphics = (element.findtext("type") or "").strip() == "G"
        device = places.get(instance, places[None, None])
        if not is_graphics and len(places) > 1 and device == places[None, None]:
            is_whole = False  # it is on one of the slices, and nobody says on which
        use = SeenUse(
            device=device,
            pid=int(pid),
            kind="graphics" if is_graphics else "compute",
            gpu_memory_bytes=_memory(element, "used_memory"),
        )
        uses.setdefault((use.device, use.pid), use)
    return list(uses.values()), is_whole
