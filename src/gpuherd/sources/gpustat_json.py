"""What ``gpustat --json`` prints, as the nodes of an older tool post it: read, checked, made a report of."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Refused
from gpuherd.model.hosts import Address, HostFacts
from gpuherd.model.processes import Process, ProcessSample, UseSample
from gpuherd.model.reports import Problem, Report
from gpuherd.model.text import LABEL_LENGTH, clean
from gpuherd.sources.assembly import MAX_PROCESSES, Assembly, Scrub, command_line
from gpuherd.sources.node_clock import naive_seconds, zone_seconds
from gpuherd.sources.old_values import label, mebibytes, number, ratio, value_problems, whole

__all__ = ["GpustatPost", "node_time", "read_post"]

MAX_GPUS = 512
MAX_PROCESSES_OF_GPU = 1024
MAX_ARGUMENTS = 1024
_METRICS = (
    "temperature.gpu",
    "fan.speed",
    "utilization.gpu",
    "utilization.enc",
    "utilization.dec",
    "power.draw",
    "enforced.power.limit",
    "memory.used",
    "memory.total",
)
_PROCESS_NUMBERS = ("gpu_memory_usage", "cpu_percent", "cpu_memory_usage", "pid")
# gpustat lists what draws the screen together with what computes and does not tell them apart. An X server with a few
# MiB on each GPU is usual and takes nothing from anyone; memory and utilisation still count.
_DISPLAY_PROGRAMS = frozenset(
    {"X", "Xorg", "Xorg.bin", "Xwayland", "gnome-shell", "gdm-x-session", "kwin_x11", "kwin_wayland", "sddm"}
)
PLAUSIBLE_SKEW_SECONDS = 120.0


class GpustatPost(Struct, frozen=True, kw_only=True):
    """One post: who it says to be, its report, and the payload in the shape it came in."""

    hostname: str
    report: Report
    payload: dict[str, Any]


def read_post(body: bytes, *, peer: str, wall: float, scrub: Scrub) -> GpustatPost:
    """Read the body of a post; ``Refused`` ``garbled`` if it is not what gpustat prints.

    The payload holds the known fields only, each with a value of the right kind or null, texts made harmless and
    command lines without their secrets. ``wall`` is the hub's clock, ``peer`` the sender's address.
    """
    posted = _decode(body)
    hostname, gpus = posted.get("hostname"), posted.get("gpus")
    if not isinstance(hostname, str) or not hostname:
        raise Refused("garbled", "the body has no hostname; send the output of `gpustat --json`")
    if len(hostname) > LABEL_LENGTH:
        raise Refused("garbled", f"the hostname is longer than {LABEL_LENGTH} characters, the limit")
    if not isinstance(gpus, list):
        raise Refused("garbled", "the body has no list of gpus; send the output of `gpustat --json`")
    payload: dict[str, Any] = {}
    for key, value in posted.items():
        if key in ("hostname", "driver_version", "query_time"):
            payload[key] = clean(value) if isinstance(value, str) else None
        elif key == "gpus":
            payload[key] = _shown_gpus(gpus, scrub)
    time = node_time(posted.get("query_time"), wall)
    report = _report(payload, gpus, peer, wall if time is None else time, scrub)
    return GpustatPost(hostname=hostname, report=report, payload=payload)


def _decode(body: bytes) -> dict[str, Any]:
    try:
        posted = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused("garbled", f"the body is not JSON: {clean(str(error), 120)}") from error
    if not isinstance(posted, dict):
        raise Refused("garbled", "the body is not a JSON object; send the output of `gpustat --json`")
    return posted


def node_time(query_time: object, wall: float) -> float | None:
    """Make the node's clock of a time without a zone: whole quarters of an hour are its zone, the rest is skew.

    ``None`` if what is left over is too much to be a clock that is a little off.
    """
    told = naive_seconds(query_time)
    if told is None:
        return None
    zone = zone_seconds(
        told, wall, behind_seconds=PLAUSIBLE_SKEW_SECONDS, ahead_seconds=PLAUSIBLE_SKEW_SECONDS
    )
    return None if zone is None else told - zone


# -- what is shown again -------------------------------------------------------------------------------------------


def _shown_gpus(gpus: list[Any], scrub: Scrub) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    processes_left = MAX_PROCESSES
    for gpu in gpus[:MAX_GPUS]:
        if isinstance(gpu, dict):
            shown.append(_shown_gpu(gpu, min(processes_left, MAX_PROCESSES_OF_GPU), scrub))
            processes_left -= len(shown[-1]["processes"])
    return shown


def _shown_gpu(gpu: dict[Any, Any], most_processes: int, scrub: Scrub) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, value in gpu.items():
        if key in _METRICS or key == "index":
            shown[key] = _shown_number(value)
        elif key in ("name", "uuid"):
            shown[key] = clean(value) if isinstance(value, str) else None
        elif key == "processes":
            # Null freezes the old page for every node, so an empty list is given instead.
            listed = value[:most_processes] if isinstance(value, list) else []
            shown[key] = [_shown_process(entry, scrub) for entry in listed if isinstance(entry, dict)]
    shown.setdefault("processes", [])
    return shown


def _shown_process(process: dict[Any, Any], scrub: Scrub) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, value in process.items():
        if key in _PROCESS_NUMBERS:
            shown[key] = _shown_number(value)
        elif key == "username":
            shown[key] = clean(value) if isinstance(value, str) else None
        elif key == "command":
            shown[key] = command_line([value], scrub) if isinstance(value, str) else None
        elif key == "full_command":
            shown[key] = [clean(word, 512) for word in scrub(_arguments(value))]
    return shown


def _shown_number(value: object) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -(2**53) < value < 2**53 else None  # false for NaN


def _arguments(value: object) -> list[str]:
    listed = value[:MAX_ARGUMENTS] if isinstance(value, list) else [value]
    return [word for word in listed if isinstance(word, str)]


# -- the report ----------------------------------------------------------------------------------------------------


def _report(payload: dict[str, Any], posted: list[Any], peer: str, time: float, scrub: Scrub) -> Report:
    assembly = Assembly()
    for place, gpu in enumerate(gpu for gpu in posted[:MAX_GPUS] if isinstance(gpu, dict)):
        _add_gpu(assembly, gpu, place, payload["hostname"], scrub)
    host = HostFacts(
        hostname=payload["hostname"],
        driver_version=label(payload.get("driver_version")),
        addresses=(Address(interface="sender", ip=peer),),
    )
    return assembly.report(host, time=time)


def _add_gpu(assembly: Assembly, gpu: dict[Any, Any], place: int, hostname: str, scrub: Scrub) -> None:
    found = whole(gpu.get("index"), 0, 4096)
    index = place if found is None else found
    uuid = label(gpu.get("uuid"), 96) or clean(f"{hostname}-gpu{index}", 96)
    facts = DeviceFacts(
        uuid=uuid,
        index=index,
        name=label(gpu.get("name")) or "GPU",
        memory_total_bytes=mebibytes(gpu.get("memory.total")) or None,
    )
    fan = number(gpu.get("fan.speed"), 0, 200)
    sample = DeviceSample(
        utilization_gpu=ratio(gpu.get("utilization.gpu")),
        utilization_encoder=ratio(gpu.get("utilization.enc")),
        utilization_decoder=ratio(gpu.get("utilization.dec")),
        memory_used_bytes=mebibytes(gpu.get("memory.used")),
        temperature_celsius=number(gpu.get("temperature.gpu"), -60, 250),
        power_watts=number(gpu.get("power.draw"), 0, 100_000),
        power_limit_watts=number(gpu.get("enforced.power.limit"), 0, 100_000),
        fan_ratio=None if fan is None else min(1.0, fan / 100),
    )
    device = assembly.add_device(
        facts,
        sample,
        value_problems(uuid, index, [(name, gpu.get(name)) for name in _METRICS], "utilization.gpu"),
    )
    if device is None:
        return
    processes = gpu.get("processes")
    if not isinstance(processes, list):
        message = f"gpustat does not list the processes of GPU {index}; run it as a user who can see them"
        assembly.add_problem(Problem(code="processes_failed", message=message, device_uuid=uuid))
        return
    for process in processes[:MAX_PROCESSES_OF_GPU]:
        _add_process(assembly, device, process if isinstance(process, dict) else {}, scrub)


def _add_process(assembly: Assembly, device: int, process: dict[Any, Any], scrub: Scrub) -> None:
    pid = assembly.pid_of_use(device, process.get("pid"))
    if pid is None:
        return
    arguments = _arguments(process.get("full_command")) or _arguments(process.get("command"))
    cpu_percent = number(process.get("cpu_percent"), 0, 1e8)
    memory = number(process.get("cpu_memory_usage"), 0, 2**53)
    assembly.add_use(
        device,
        Process(
            pid=pid,
            user=label(process.get("username")),
            command=None if arguments == ["?"] else command_line(arguments, scrub),
        ),
        ProcessSample(
            cpu_cores=None if cpu_percent is None else cpu_percent / 100,
            memory_bytes=None if memory is None else int(memory),
        ),
        UseSample(gpu_memory_bytes=mebibytes(process.get("gpu_memory_usage"))),
        kind="graphics" if label(process.get("command")) in _DISPLAY_PROGRAMS else "compute",
    )
