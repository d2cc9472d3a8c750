"""What the XML-RPC nodes answer to ``gpu_stats()``, as a report. Pure, and safe with hostile XML.

The answer is one string, or a fault. Only that much of XML-RPC is understood; document types, entities, other
encodings and deep nesting, which no answer needs and attacks live on, are refused before they do anything.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

import msgspec

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessSample, UseSample
from gpuherd.model.reports import MAX_DEVICES, Problem, Report
from gpuherd.model.text import clean
from gpuherd.sources.assembly import Assembly, Scrub, command_line
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.old_values import label, mebibytes, number, ratio, value_problems

__all__ = ["StartTimes", "elapsed_seconds", "read_stats", "returned_text"]

DEEPEST_ELEMENT = 16
MAX_ELEMENTS = 64
MAX_PROCESSES_OF_GPU = 1024
START_TOLERANCE_SECONDS = 5.0
_ELAPSED = re.compile(r"(?:(\d{1,5}) days?, )?(\d{1,2}):(\d{2}):(\d{2})(?:\.\d+)?")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class _Answer:
    """Collects the texts of an answer while expat walks through it."""

    def __init__(self) -> None:
        self.path: list[str] = []
        self.elements = 0
        self.returned: str | None = None
        self.fault: dict[str, str] = {}
        self._member = ""
        self._text: list[str] = []

    def start(self, tag: str, _: dict[str, str]) -> None:
        self.path.append(tag)
        self.elements += 1
        self._text.clear()
        if len(self.path) > DEEPEST_ELEMENT or self.elements > MAX_ELEMENTS:
            raise ValueError("it is nested too deeply")

    def text(self, content: str) -> None:
        self._text.append(content)

    def end(self, tag: str) -> None:
        content = "".join(self._text)
        self._text.clear()
        parent = self.path[-2] if len(self.path) > 1 else ""
        is_fault = "fault" in self.path
        self.path.pop()
        if tag == "name":
            self._member = content
        elif parent == "value" or (tag == "value" and content.strip()):  # a bare value is a string
            if is_fault:
                self.fault.setdefault(self._member, content)
            elif self.returned is None:
                self.returned = content


def returned_text(body: bytes, name: str) -> str:
    """Give the string that an XML-RPC answer returns; ``ContactFailed`` otherwise."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContactFailed("garbled", f"{name} returns bytes that are not UTF-8") from error
    if "<!" in text or "\0" in text:
        raise ContactFailed(
            "garbled", f"{name} returns XML with declarations, which XML-RPC never has; it was not read"
        )
    answer = _Answer()
    parser = expat.ParserCreate("utf-8")  # whatever the document says of its encoding
    parser.StartElementHandler = answer.start
    parser.EndElementHandler = answer.end
    parser.CharacterDataHandler = answer.text
    parser.buffer_text = True
    try:
        parser.Parse(text.encode(), True)
    except (expat.ExpatError, ValueError) as error:
        raise ContactFailed("garbled", f"{name} does not return XML-RPC: {clean(str(error), 120)}") from error
    if answer.fault:
        told = clean(answer.fault.get("faultString", "no reason given"), 160)
        raise ContactFailed("no_data", f"gpu_stats() fails on {name}: {told}")
    if answer.returned is None:
        raise ContactFailed("garbled", f"{name} returns XML without a value")
    return answer.returned


def elapsed_seconds(value: object) -> int | None:
    """Read how long a process has run: ``0:05:12`` or ``12 days, 3:04:05``."""
    found = _ELAPSED.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


class StartTimes:
    """Start times made of run times, kept steady: a second's rounding must not make another process of one."""

    def __init__(self) -> None:
        self._known: dict[int, float] = {}
        self._seen: dict[int, float] = {}

    def started_at(self, pid: int, elapsed: int, now: float) -> float:
        """Give when a process started; the time found first stands as long as it is about right."""
        started_at = float(round(now - elapsed))
        before = self._seen.get(pid, self._known.get(pid))
        if before is not None and abs(before - started_at) <= START_TOLERANCE_SECONDS:
            started_at = before
        self._seen[pid] = started_at
        return started_at

    def forget_others(self) -> None:
        """Forget all but those asked for since the last call."""
        self._known, self._seen = self._seen, {}


def read_stats(
    text: str, *, name: str, node_id: str, wall: float, scrub: Scrub, starts: StartTimes
) -> Report:
    """Read the JSON text that ``gpu_stats()`` returns; ``ContactFailed`` if it is something else.

    The tool tells neither host name, index nor UUID: a device's key is made of the node's id and its place.
    """
    try:
        stats = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ContactFailed(
            "garbled", f"gpu_stats() of {name} does not return JSON: {clean(str(error), 120)}"
        ) from error
    gpus = stats.get("gpus") if isinstance(stats, dict) else None
    if not isinstance(gpus, list):
        raise ContactFailed("garbled", f"gpu_stats() of {name} returns JSON without a list of gpus")
    procs = stats.get("procs")
    assembly = Assembly()
    for index, gpu in enumerate(gpus[: MAX_DEVICES + 1]):
        if not isinstance(gpu, dict):
            raise ContactFailed("garbled", f"gpu_stats() of {name} returns an invalid list of gpus")
        device, uuid = _add_gpu(assembly, gpu, index, node_id)
        if device is None:
            continue
        listed = procs[index] if isinstance(procs, list) and index < len(procs) else None
        if not isinstance(listed, list):
            message = f"the node does not list the processes of GPU {index}"
            assembly.add_problem(Problem(code="processes_failed", message=message, device_uuid=uuid))
            continue
        for entry in listed[:MAX_PROCESSES_OF_GPU]:
            process = entry if isinstance(entry, dict) else {}
            _add_process(assembly, device, process, wall, scrub, starts)
    starts.forget_others()
    return assembly.report(HostFacts(hostname=clean(name)), time=wall)


def _add_gpu(assembly: Assembly, gpu: dict[Any, Any], index: int, node_id: str) -> tuple[int | None, str]:
    uuid = clean(f"{node_id}-gpu{index}", 96)
    facts = DeviceFacts(
        uuid=uuid,
        index=min(index, 4096),
        name=label(gpu.get("model")) or "GPU",
        memory_total_bytes=mebibytes(gpu.get("memory_total")) or None,
        memory_basis="framebuffer_with_reserved",
    )
    sample = DeviceSample(
        utilization_gpu=ratio(gpu.get("utilization")),
        memory_used_bytes=mebibytes(gpu.get("memory_used")),
        temperature_celsius=number(gpu.get("temperature"), -60, 250),
    )
    metrics = [
        (field, gpu.get(field)) for field in ("memory_total", "memory_used", "utilization", "temperature")
    ]
    return assembly.add_device(facts, sample, value_problems(uuid, index, metrics, "utilization")), uuid


def _add_process(
    assembly: Assembly, device: int, process: dict[Any, Any], wall: float, scrub: Scrub, starts: StartTimes
) -> None:
    pid = assembly.pid_of_use(device, process.get("pid"))
    if pid is None:
        return
    elapsed = elapsed_seconds(process.get("time"))
    command = label(process.get("process_name"), 4096)
    memory = number(process.get("used_memory"), 0, 2**53)
    unit = _UNITS.get(str(process.get("unit", "MiB")))
    size = None if memory is None or unit is None else int(memory * unit)
    assembly.add_use(
        device,
        Process(
            pid=pid,
            started_at=None if elapsed is None or elapsed > wall else starts.started_at(pid, elapsed, wall),
            user=label(process.get("userid")),
            command=None if command is None else command_line(command.split(), scrub),
        ),
        ProcessSample(),
        UseSample(gpu_memory_bytes=size if size is not None and size <= 2**53 else None),
    )
