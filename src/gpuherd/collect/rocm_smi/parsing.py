"""Parser of ``rocm-smi … --json``: one object a card, every value a text, names that change between versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gpuherd.collect.json_output import printed_json
from gpuherd.collect.reading import GpuReading, SeenUse, impossible_values
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean

__all__ = ["parse_cards"]

Card = Mapping[str, Any]

_NUMBER = re.compile(r"\(?(\d{1,20}(?:\.\d{1,20})?)\s*(?:[Mm][Hh]z)?\)?", re.ASCII)
_NAMES = ("Card Series", "Card series", "Device Name", "Card Model", "Card model")
_UTILIZATION = ("GPU use (%)",)
_MEMORY_ACTIVITY = ("GPU Memory Read/Write Activity (%)", "GPU memory use (%)")
_TEMPERATURE = ("Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)")
_POWER = ("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)")
_MEMORY_TOTAL = ("VRAM Total Memory (B)", "vram Total Memory (B)")
_MEMORY_USED = ("VRAM Total Used Memory (B)", "vram Total Used Memory (B)")
_PROCESS = re.compile(r"PID(\d{1,9})", re.ASCII)


def parse_cards(content: bytes) -> GpuReading:
    """Make a reading. ``Failed`` if there is no such JSON; a reading without devices if it lists no card."""
    try:
        found = msgspec.convert(printed_json(content), dict[str, Any])
    except msgspec.DecodeError as error:
        raise Failed(f"rocm-smi did not print JSON: {clean(str(error), 200)}") from error
    cards = {
        int(name[4:]): card
        for name, card in found.items()
        if re.fullmatch(r"card[0-9]{1,4}", name) and isinstance(card, dict)
    }
    told = found.get("system")
    system = told if isinstance(told, dict) else {}
    devices: dict[str, DeviceFacts] = {}
    samples = []
    problems: list[Problem] = []
    for index, card in sorted(cards.items()):
        facts = _facts(card, min(index, 4096))
        if facts.uuid in devices:
            facts = msgspec.structs.replace(facts, uuid=f"{facts.uuid[:80]}-{index}")
        devices[facts.uuid] = facts
        sample = _sample(card, facts.memory_total_bytes)
        samples.append(sample)
        problems += impossible_values("rocm-smi", facts, _impossible(card, facts, sample))
    uses, unplaced = _uses(system, len(cards))
    if cards and not system:
        message = "rocm-smi does not list processes: run 'rocm-smi --showpids --json' and check its output"
        problems.append(Problem(code="processes_failed", message=message))
    return GpuReading(
        devices=tuple(devices.values()),
        samples=tuple(samples),
        uses=uses,
        problems=(*problems, *unplaced),
        driver_version=_text(system, "Driver version"),
    )


def _text(card: Card, *names: str) -> str | None:
    for name in names:
        found = card.get(name)
        if (
            isinstance(found, str)
            and found.strip()
            and found.strip().lower() not in ("n/a", "none", "unknown")
        ):
            return clean(found.strip())
    return None


def _number(card: Card, high: float, *names: str) -> float | None:
    for name in names:
        found = _NUMBER.fullmatch(_text(card, name) or "")
        if found and float(found[1]) <= high:
            return float(found[1])
    return None


def _ratio(card: Card, *names: str) -> float | None:
    percent = _number(card, 100, *names)
    return None if percent is None else percent / 100


def _hertz(card: Card, *names: str) -> float | None:
    megahertz = _number(card, 1e6, *names)
    return None if megahertz is None else megahertz * 1e6


def _bytes(card: Card, *names: str) -> int | None:
    number = _number(card, 2**53, *names)
    return None if number is None else int(number)


def _facts(card: Card, index: int) -> DeviceFacts:
    """A GPU is known by its unique id, as ``GPU-…`` in the way of ROCm, else by serial number or address."""
    unique = _text(card, "Unique ID") or ""
    serial = _text(card, "Serial Number")
    address = _text(card, "PCI Bus")
    if re.fullmatch(r"(?:0x)?[0-9A-Fa-f]{1,16}", unique) and int(unique, 16):
        identity = f"GPU-{int(unique, 16):016x}"
    elif serial is not None and serial.strip("0x"):
        identity = f"amd-{serial}"
    else:
        identity = f"amd-at-{address.lower()}" if address else f"amd-card-{index}"
    names = [name for key in _NAMES if (name := _text(card, key)) and not name.startswith("0x")]
    return DeviceFacts(
        uuid=clean(identity, 96),
        index=index,
        name=names[0] if names else "AMD GPU",
        vendor="amd",
        memory_total_bytes=_bytes(card, *_MEMORY_TOTAL) or None,
        pci_bus_id=address,
    )


def _impossible(card: Card, facts: DeviceFacts, sample: DeviceSample) -> dict[str, object]:
    """Give what was said, by column, where a number that decides is unknown although the card has one."""
    told = {
        "memory_total_bytes": (facts.memory_total_bytes, _MEMORY_TOTAL),
        "memory_used_bytes": (sample.memory_used_bytes, _MEMORY_USED),
        "utilization_gpu": (sample.utilization_gpu, _UTILIZATION),
    }
    return {
        column: word
        for column, (value, names) in told.items()
        if value is None and (word := _text(card, *names)) is not None
    }


def _sample(card: Card, memory_total_bytes: int | None) -> DeviceSample:
    used = _bytes(card, *_MEMORY_USED)
    if used is not None and memory_total_bytes is not None and used > memory_total_bytes:
        used = None  # more than there is
    return DeviceSample(
        utilization_gpu=_ratio(card, *_UTILIZATION),
        utilization_memory=_ratio(card, *_MEMORY_ACTIVITY),
        memory_used_bytes=used,
        temperature_celsius=_number(card, 250, *_TEMPERATURE),
        power_watts=_number(card, 100_000, *_POWER),
        power_limit_watts=_number(card, 100_000, "Max Graphics Package Power (W)"),
        fan_ratio=_ratio(card, "Fan speed (%)", "Fan Speed (%)"),
        clock_sm_hertz=_hertz(card, "sclk clock speed:", "sclk clock speed"),
        clock_memory_hertz=_hertz(card, "mclk clock speed:", "mclk clock speed"),
    )


def _uses(system: Card, cards: int) -> tuple[tuple[SeenUse, ...], tuple[Problem, ...]]:
    """List the processes. rocm-smi says on how many GPUs one is, not on which: with several it stays open."""
    uses = []
    unplaced = []
    for key, value in system.items():
        found = _PROCESS.fullmatch(key)
        # Name (which may hold commas), number of GPUs, bytes of memory, and two more.
        words = value.rsplit(",", 4) if isinstance(value, str) else []
        if found is None or (len(words) == 5 and words[1].strip() == "0"):
            continue
        if cards == 1 and len(words) == 5:
            memory = _NUMBER.fullmatch(words[2].strip())
            uses.append(
                SeenUse(
                    device=0, pid=int(found[1]), gpu_memory_bytes=int(float(memory[1])) if memory else None
                )
            )
        else:
            unplaced.append(found[1])
    if not unplaced:
        return tuple(uses), ()
    named = ", ".join(sorted(unplaced)[:8]) + (", …" if len(unplaced) > 8 else "")
    message = f"rocm-smi does not report which GPUs the processes {named} use: install amd-smi, which does"
    return tuple(uses), (Problem(code="processes_failed", message=clean(message, 512)),)
